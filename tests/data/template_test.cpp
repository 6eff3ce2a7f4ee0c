#include "data/template.h"

#include <gmock/gmock.h>

#include "data/sft_folder.h"

namespace underkeel::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Template, IsFoundByNameOrByTheNearestOne) {
  EXPECT_EQ((*find_template("llama3"))->name, "llama3");
  const auto misspelt = find_template("lama3");
  ASSERT_FALSE(misspelt);
  EXPECT_EQ(misspelt.error().what, "there is no template `lama3`");
  EXPECT_EQ(misspelt.error().fix, "write `llama3`");
  EXPECT_EQ(all_templates().size(), 29u);
}

TEST(Template, KnowsWhatEndsAnAnswer) {
  EXPECT_EQ(turn_end_word(**find_template("chatml")), "<|im_end|>");
  EXPECT_EQ(turn_end_word(**find_template("yi")), "<|im_end|>");
  EXPECT_EQ(turn_end_word(**find_template("mistral")), "");
  EXPECT_TRUE(ends_with_end_token(**find_template("mistral")));
  EXPECT_TRUE(ends_with_end_token(**find_template("fewshot")));
  EXPECT_FALSE(ends_with_end_token(**find_template("empty")));
}

class Encoder : public SftFolder {
 protected:
  std::vector<Turn> encode(const Conversation& talk) const {
    return *ChatEncoder(*tokenizer, options.style).encode(talk);
  }
};

TEST_F(Encoder, PutsTheSystemTextIntoTheFirstUsersWordsWhereTheTemplateSaysSo) {
  use_template("llama2");

  const auto turns = encode({.system = "S",
                             .messages = {{Role::user, "q1"},
                                          {Role::assistant, "a1"},
                                          {Role::user, "q2"},
                                          {Role::assistant, "a2"}}});

  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(text_of(turns[0].source), "?[INST] <<SYS>>\nS\n<</SYS>>\n\nq1 [/INST]");
  EXPECT_EQ(text_of(turns[0].target), "a1?");
  EXPECT_EQ(text_of(turns[1].source), "?[INST] q2 [/INST]");
}

TEST_F(Encoder, MakesAPromptOfAConversationThatWaitsForAnAnswer) {
  use_template("qwen3");
  const Conversation talk{.messages = {{Role::user, "a"},
                                       {Role::assistant, "<think>\nx\n</think>\n\nb"},
                                       {Role::user, "c"}}};

  const auto thinking = ChatEncoder(*tokenizer, options.style).encode_prompt(talk);
  options.style.enable_thinking = false;
  const auto not_thinking = ChatEncoder(*tokenizer, options.style).encode_prompt(talk);

  const std::string expected = "?user\na?\n?assistant\nb?\n?user\nc?\n?assistant\n";
  EXPECT_EQ(text_of(*thinking), expected);
  EXPECT_EQ(text_of(*not_thinking), expected + "<think>\n\n</think>\n\n");
}

TEST_F(Encoder, StopsAtTheTokenThatTheModelLearnsFirst) {
  use_template("chatml");
  EXPECT_THAT(stop_tokens(*tokenizer, *options.style.style), ElementsAre(259, 258));
  use_template("yi");
  EXPECT_THAT(stop_tokens(*tokenizer, *options.style.style), ElementsAre(259, 257));
  use_template("default");
  EXPECT_THAT(stop_tokens(*tokenizer, *options.style.style), ElementsAre(257));
}

TEST_F(Encoder, RefusesToTrainPromptsWhereOneEndTokenStandsBehindAllTurns) {
  use_template("fewshot");
  options.train_on_prompt = true;
  write("data.jsonl", R"({"instruction":"a","output":"b"})");

  const auto data = load();

  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().where, "train_on_prompt");
}

}  // namespace
}  // namespace underkeel::data
