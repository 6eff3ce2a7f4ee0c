// `underkeel generate` as a user meets it: the template of the run that saved the folder, and budgets that are too
// small.

#include <regex>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "support/case.h"
#include "support/places.h"
#include "support/program.h"

namespace underkeel::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class GenerateCommand : public testing::Test {
 protected:
  GenerateCommand() : made_(complete_case("end_token_of_template")) {}

  void train(const std::string& more) const {
    const Ran ran =
        run_underkeel("train " + made_.run_file.string() +
                      " underkeel.threads=1 max_steps=1 save_strategy=steps save_steps=1 " + more);
    ASSERT_EQ(ran.exit_code, 0) << ran.error;
  }
  static Ran generate(const std::filesystem::path& model, const std::string& more = "") {
    return run_underkeel("generate " + model.string() + " --prompt Ahoy " + more);
  }
  static Ran generate_few(const std::filesystem::path& model, const std::string& more = "") {
    return generate(model, "--max-new-tokens 6 " + more);
  }

  RunnableCase made_;
};

TEST_F(GenerateCommand, TakesTheTemplateOfTheRunThatSavedTheFolder) {
  train("");

  const Ran named = generate_few(made_.output, "--template chatml");
  for (const auto& folder : {made_.output, made_.output / "checkpoint-1"}) {
    const Ran ran = generate_few(folder);
    EXPECT_EQ(ran.exit_code, 0) << ran.error;
    EXPECT_EQ(ran.out, named.out);
    EXPECT_THAT(ran.error,
                HasSubstr("template chatml, under which the model was trained; --template "
                          "none continues the prompt as a text"));
  }
  const Ran plain = generate_few(made_.output, "--template none");
  EXPECT_THAT(plain.out, StartsWith("Ahoy"));
  EXPECT_THAT(plain.error, Not(HasSubstr("template")));
  EXPECT_NE(plain.out, named.out);
}

// A newer checkpoint beside the model, and settings without weights: what is read is told and is a model.
TEST_F(GenerateCommand, TakesTheModelThatAnOutputFolderHoldsElseTheNewestCheckpoint) {
  train("");
  const Ran of_model = generate_few(made_.output);
  train("max_steps=3 learning_rate=1 overwrite_output_dir=false output_dir=" +
        (made_.folder / "longer").string());
  const auto longer = made_.folder / "longer";
  std::filesystem::copy_file(made_.output / "model.safetensors", longer / "model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);

  const Ran held = generate_few(longer);
  EXPECT_EQ(held.out, of_model.out);
  EXPECT_THAT(held.error, HasSubstr("not that of the newest checkpoint: name " +
                                    (longer / "checkpoint-3").string()));
  EXPECT_THAT(of_model.error, Not(HasSubstr("newest checkpoint")));

  std::filesystem::remove(longer / "model.safetensors");
  const Ran newest = generate_few(longer);
  EXPECT_EQ(newest.exit_code, 0) << newest.error;
  EXPECT_EQ(newest.out, generate_few(longer / "checkpoint-3").out);
}

// In one file, as a terminal shows them.
TEST_F(GenerateCommand, EndsItsLineBeforeTheLogGoesOn) {
  train("");

  const Ended ended =
      run_program({test::in_build("apps/underkeel"), "generate", made_.output.string(), "--prompt",
                   "Ahoy", "--template", "none", "--max-new-tokens", "6"});

  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              testing::ContainsRegex("\n[^\n]*info [^\n]*prompt tokens in [^\n]*\n$"));
}

TEST_F(GenerateCommand, TakesTheRunsSystemTextUnlessAnotherIsGiven) {
  train("default_system='Speak as a pilot does.'");
  // A byte is a token here: the texts tell themselves apart by their lengths.
  const auto prompt_tokens = [&](const std::string& more) {
    std::smatch count;
    const std::string told = generate_few(made_.output, more).error;
    return std::regex_search(told, count, std::regex("of ([0-9]+) positions"))
               ? std::stoi(count[1].str()) - 5  // six new ones, the last of which is not kept
               : -1;
  };

  const int without = prompt_tokens("--template chatml");
  const int around = 1 + 7 + 2;  // <|im_start|> `system` and a line end, <|im_end|> and a line end
  EXPECT_EQ(without, 4 + 19);
  EXPECT_EQ(prompt_tokens(""), without + around + 22);
  EXPECT_EQ(prompt_tokens("--system 'Be brief.'"), without + around + 9);
  EXPECT_EQ(prompt_tokens("--template chatml --system 'Be brief.'"), without + around + 9);
}

TEST_F(GenerateCommand, KnowsTheTemplateThatTheRunFoundByItself) {
  train("");
  const auto again = made_.folder / "again";
  train("template=null model_name_or_path=" + made_.output.string() +
        " output_dir=" + again.string());

  const Ran ran = generate_few(again);

  EXPECT_THAT(ran.error, HasSubstr("template chatml, under which the model was trained"));
}

TEST_F(GenerateCommand, KnowsTheTemplateOfAnOlderRunByItsChatTemplate) {
  train("");
  auto values = nlohmann::json::parse(read_text(made_.output / "training_args.json"));
  values.erase("template");
  write_text(made_.output / "training_args.json", values.dump());

  EXPECT_THAT(generate_few(made_.output).error, HasSubstr("template chatml, under which"));
}

TEST_F(GenerateCommand, ContinuesATextAfterStagePtAndHintsAtAChatTemplate) {
  write_text(made_.data / "talk.jsonl", "{\"text\": \"the tide turns at noon\"}\n");
  write_text(made_.data / "dataset_info.json",
             R"({"talk": {"file_name": "talk.jsonl", "columns": {"prompt": "text"}}})");
  train("stage=pt template=null packing=false");

  const Ran after_pt = generate_few(made_.output);
  EXPECT_EQ(after_pt.exit_code, 0) << after_pt.error;
  EXPECT_THAT(after_pt.out, StartsWith("Ahoy"));
  EXPECT_THAT(after_pt.error, Not(HasSubstr("template")));

  write_text(made_.model / "chat_template.jinja", "{{ '<|im_start|>' + messages[0].content }}");
  const Ran of_others = generate_few(made_.model);
  EXPECT_THAT(of_others.out, StartsWith("Ahoy"));
  EXPECT_THAT(of_others.error,
              HasSubstr("a chat template like chatml's: --template chatml makes the "
                        "prompt a user's"));
}

TEST_F(GenerateCommand, RefusesASystemTextWithoutATemplate) {
  const Ran ran = generate_few(made_.model, "--system 'Be brief.'");

  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.error,
              AllOf(HasSubstr("a system text without a template"), HasSubstr("--template NAME")));
}

// What is needed, of what, what is allowed, and a change with which the same command runs.
TEST_F(GenerateCommand, RefusesABudgetWithTheFiguresAndAChangeThatFits) {
  std::filesystem::remove(made_.model / "model.safetensors");  // refused before weights are read
  for (const char* space : {"device", "host"}) {
    const Ran ran =
        generate(made_.model, "--max-new-tokens 8000 --memory " + std::string(space) + "=1MiB");

    EXPECT_EQ(ran.exit_code, 2) << ran.error;
    EXPECT_TRUE(std::regex_search(
        ran.error,
        std::regex("the model and its activations need [2-9][.0-9]* MiB, of which 2.0 MiB "
                   "keep the keys and values of 8003 positions")))
        << ran.error;
    EXPECT_THAT(ran.error, HasSubstr("; --memory allows " + std::string(space) + " 1.0 MiB"));
    EXPECT_THAT(ran.error, HasSubstr("where: " + made_.model.string()));
    std::smatch change;
    ASSERT_TRUE(
        std::regex_search(ran.error, change, std::regex("try:   (--max-new-tokens [0-9]+)")))
        << ran.error;
    const Ran with_it =
        generate(made_.model, change[1].str() + " --memory " + std::string(space) + "=1MiB");
    // The budget is passed: what is missing now are the weights.
    EXPECT_NE(with_it.exit_code, 0);
    EXPECT_THAT(with_it.error, Not(HasSubstr("--memory allows")));
  }
  const Ran small = generate(made_.model, "--max-new-tokens 2 --memory device=10KiB");
  EXPECT_THAT(small.error, HasSubstr("allow more memory, or use a smaller model"));
}

}  // namespace
}  // namespace underkeel::test
