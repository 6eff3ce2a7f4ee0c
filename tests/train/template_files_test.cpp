// What a saved folder says about the template that a model was trained under.

#include "train/template_files.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "data/template_tokens.h"
#include "support/byte_tokenizer.h"
#include "support/temporary_folder.h"
#include "support/text_files.h"
#include "support/value_of.h"

namespace underkeel::train {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class TemplateFolder : public testing::Test {
 protected:
  /// Of the byte tokenizer: id 0 is <|endoftext|>, which ends and pads, 1 <|im_start|>, 2 <|im_end|>.
  TemplateFiles made_for(std::string_view name) {
    test::write_byte_tokenizer(folder.path());
    const data::Template& style = *test::value_of(data::find_template(name));
    const auto plain = test::value_of(data::Tokenizer::load(folder.path()));
    const auto changed = test::value_of(plain.with(data::template_changes(plain, style)));
    return template_files_of(changed, data::ChatStyle::of(style));
  }
  json applied(const TemplateFiles& style, const std::string& name) {
    auto changed = files;
    EXPECT_TRUE(apply_template(style, changed));
    for (const ExtraFile& file : changed)
      if (file.name == name) return json::parse(file.text);
    return nullptr;
  }

  test::TemporaryFolder folder;
  std::vector<ExtraFile> files = {
      {"config.json", R"({"eos_token_id":0,"hidden_size":64})"},
      {"generation_config.json", R"({"eos_token_id":0,"pad_token_id":0})"},
      {"tokenizer_config.json", R"({"eos_token":"<|endoftext|>","pad_token":"<|endoftext|>"})"}};
};

TEST_F(TemplateFolder, StopsAtTheTemplatesEndTokenBeforeTheModelsOwn) {
  const TemplateFiles style = made_for("chatml");

  EXPECT_THAT(applied(style, "generation_config.json")["eos_token_id"], ElementsAre(2, 0));
  EXPECT_EQ(applied(style, "generation_config.json")["pad_token_id"], 0);
  EXPECT_EQ(applied(style, "config.json")["eos_token_id"], 2);
  EXPECT_EQ(applied(style, "config.json")["hidden_size"], 64);
  EXPECT_EQ(applied(style, "tokenizer_config.json")["eos_token"], "<|im_end|>");
  EXPECT_THAT(applied(style, "tokenizer_config.json")["chat_template"].get<std::string>(),
              HasSubstr("'<|im_start|>user\n' + content"));
  const auto note = end_token_note(style, {0});
  ASSERT_TRUE(note);
  EXPECT_THAT(*note, HasSubstr("`chatml` ends an answer with `<|im_end|>` (id 2)"));
  EXPECT_THAT(*note, HasSubstr("names id 0 as its end"));
}

TEST_F(TemplateFolder, NamesAStopWordThatDoesNotReplaceTheEndToken) {
  const TemplateFiles style = made_for("yi");

  EXPECT_THAT(applied(style, "generation_config.json")["eos_token_id"], ElementsAre(2, 0));
  EXPECT_EQ(applied(style, "config.json")["eos_token_id"], 0);
  EXPECT_EQ(applied(style, "tokenizer_config.json")["eos_token"], "<|endoftext|>");
}

TEST_F(TemplateFolder, ChangesNothingThatIsRightAlready) {
  const TemplateFiles style = made_for("default");
  files[2].text =
      R"({"eos_token":"<|endoftext|>","pad_token":"<|endoftext|>","chat_template":"x"})";
  files.push_back({"chat_template.jinja", "own"});
  auto changed = files;

  ASSERT_TRUE(apply_template(style, changed));

  EXPECT_EQ(changed[1].text, files[1].text);
  EXPECT_FALSE(end_token_note(style, {0}));
  // This template replaces the one that came with the tokenizer; a file of its own would win.
  EXPECT_EQ(changed.size(), 3u);
  EXPECT_NE(json::parse(changed[2].text)["chat_template"], "x");
}

TEST_F(TemplateFolder, MakesAGenerationConfigWhereThereIsNone) {
  files.erase(files.begin() + 1);

  EXPECT_THAT(applied(made_for("chatml"), "generation_config.json")["eos_token_id"],
              ElementsAre(2, 0));
}

TEST_F(TemplateFolder, SaysThatATemplateTeachesNoEnd) {
  EXPECT_THAT(end_token_note(made_for("empty"), {0}).value_or(""),
              HasSubstr("the model learns no end"));
  EXPECT_FALSE(end_token_note(TemplateFiles{}, {0}));
}

TEST_F(TemplateFolder, RefusesAFileThatIsNoJson) {
  files[1].text = "{";

  const auto result = apply_template(made_for("chatml"), files);

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().where, "generation_config.json");
}

}  // namespace
}  // namespace underkeel::train
