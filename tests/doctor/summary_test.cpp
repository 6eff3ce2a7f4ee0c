// The lines before the findings: what a person reads first, and often alone.

#include "doctor/summary.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/case_files.h"

namespace underkeel::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Files too_large() {
  return files_of({llama_8b,
                   R"("stage": 2)",
                   "finetuning_type: full\nbf16: true\ncutoff_len: 128\n"
                   "per_device_train_batch_size: 1\n",
                   {.host_gib = 256}});
}

std::string first_lines(const std::string& text, int count) {
  std::size_t end = 0;
  for (int line = 0; line < count && end != std::string::npos; ++line)
    end = text.find('\n', end == 0 ? 0 : end + 1);
  return text.substr(0, end);
}

TEST(Summary, SaysForEachEngineWhatDecidesAndWhatHelps) {
  const Diagnosis diagnosis = too_large().diagnose();

  const std::string text = to_text(diagnosis, Language::english);

  const std::string summary = text.substr(0, text.find("\n\n"));
  EXPECT_THAT(summary, StartsWith("DeepSpeed: fails, does not fit: device memory in the update "
                                  "needs at least 177.1 GB, 85.9 GB (80.0 GiB) are there\n"
                                  "  do: the smallest change that fits: "));
  EXPECT_THAT(summary, HasSubstr("\nUnderkeel: fails, does not fit: device memory needs "));
  EXPECT_THAT(summary, HasSubstr("exit code 2 is that of Underkeel (--engine deepspeed: 2)"));
  EXPECT_THAT(summary, Not(HasSubstr("largest:")));
  EXPECT_LE(std::count(summary.begin(), summary.end(), '\n'), 5) << summary;
  EXPECT_THAT(text.substr(summary.size()), StartsWith("\n\nerror (DeepSpeed, bound)"));
  EXPECT_THAT(to_text(diagnosis, Language::chinese), StartsWith("DeepSpeed：会失败，放不下："));
}

TEST(Summary, CountsWhatFollowsAndNamesTheEngineOfTheExitCode) {
  Files files;  // a misspelt key: DeepSpeed passes over it, our engine refuses
  files.write("ds_config.json", R"({"train_batch_size": 1, "gradient_cliping": 1})");
  const Diagnosis diagnosis = files.diagnose();

  const std::string ours = to_text(diagnosis, Language::english);
  const std::string theirs = to_text(diagnosis, Language::english, Engine::deepspeed);

  EXPECT_THAT(ours, HasSubstr("1 error, 1 warning and "));
  EXPECT_THAT(ours, HasSubstr("exit code 2 is that of Underkeel (--engine deepspeed: 0)"));
  EXPECT_THAT(theirs, HasSubstr("exit code 0 is that of DeepSpeed (--engine underkeel: 2)"));
}

TEST(Summary, TellsOfBothEnginesAtOnceWhatIsTheSame) {
  Files files;
  files.write("ds_config.json", R"({"train_batch_size": 1, "gradient_clipping": 1.0})");

  const std::string text = to_text(files.diagnose(), Language::english);

  EXPECT_EQ(first_lines(text, 1),
            "both engines: unknown, no model is given: whether memory suffices is not judged "
            "(ds_config.json)");
}

TEST(Summary, CountsTheOtherErrorsThatStopAnEngine) {
  Files files;
  files.write(
      "ds_config.json",
      R"({"train_batch_size": 1, "zero_optimization": {"stag": 1, "reduce_bucet_size": 2}})");

  const std::string text = to_text(files.diagnose(), Language::english);

  EXPECT_THAT(first_lines(text, 1), StartsWith("DeepSpeed: fails, unknown key `stag`"));
  EXPECT_THAT(first_lines(text, 1), HasSubstr("(ds_config.json:1); 1 more error"));
}

// A folder has no run: there is nothing that goes or fails.
TEST(Summary, GivesNoVerdictWhereNoRunWasAskedAbout) {
  Files files;
  files.write("generation_config.json", R"({"eos_token_id": 2, "do_sample": true})");
  const Diagnosis diagnosis = files.diagnose();

  for (const Language language : {Language::english, Language::chinese}) {
    const std::string text = to_text(diagnosis, language);
    EXPECT_THAT(text, Not(HasSubstr(std::string(phrase("verdict.unknown", language)))));
    EXPECT_THAT(text, Not(HasSubstr(language == Language::english ? "DeepSpeed:" : "DeepSpeed：")));
  }
  EXPECT_THAT(to_text(diagnosis, Language::english),
              StartsWith("no run was asked about; judged was what was given"));
  EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 0);
}

TEST(Summary, SaysWhatWasReadOfAModelAndAMachineAlone) {
  Files files;
  files.write("config.json", model_json(llama_7b));
  files.write("hardware.yaml", "nodes: 1\ngpus_per_node: 8\ngpu_mem_gib: 80\nhost_ram_gib: 512\n");
  Files tokenizer;
  tokenizer.write("tokenizer_config.json", R"({"eos_token": "</s>", "tokenizer_class": "A"})");

  EXPECT_THAT(to_text(files.diagnose(), Language::english),
              StartsWith("no run was asked about; judged was what was given:\n"
                         "  LlamaForCausalLM with 32 layers and 6738415616 parameters, 13.5 GB in "
                         "16 bit (config.json)\n"
                         "  1 node of 8 GPUs with 85.9 GB (80.0 GiB) each, and 549.8 GB (512 GiB) "
                         "of host memory a node (hardware.yaml)\n"));
  EXPECT_THAT(to_text(tokenizer.diagnose(), Language::english),
              HasSubstr("  nothing wrong was found in it; "));
}

TEST(Summary, CutsAMessageAtAClauseAndKeepsTheFigure) {
  const std::string tail = "; largest: " + std::string(200, 'a');
  EXPECT_EQ(headline_of("needs 3 GB (1; 2), 2 GB are there" + tail, Language::english),
            "needs 3 GB (1; 2), 2 GB are there");
  EXPECT_EQ(headline_of("how long is not said; with 8 tokens 3 GB" + tail, Language::english),
            "how long is not said; with 8 tokens 3 GB");
  EXPECT_EQ(headline_of("no mark in it " + std::string(300, 'b'), Language::english).size(), 314u);
  EXPECT_EQ(headline_of("two lines\n  of a report", Language::english), "two lines");
  EXPECT_EQ(headline_of("放不下：需要 3 GB；" + std::string(300, 'a'), Language::chinese),
            "放不下：需要 3 GB");
}

// The marks stand elsewhere in each language; the figures that are told are to be the same.
TEST(Summary, CutsBothLanguagesAtTheSameFigure) {
  const std::string upper = "12.5 GB", rest = std::string(200, 'a');
  const Finding fits{.id = "deepspeed-fits",
                     .slots = {{"space", "host"},
                               {"phase", "loading"},
                               {"low", "8.0 GB"},
                               {"high", upper},
                               {"limit", "68.7 GB"},
                               {"margin", "44.7 GB"},
                               {"terms", "a 1 GB"}}};
  EXPECT_EQ(headline_of(fits, Language::english),
            "fits: host is the tightest, loading, with 8.0 GB to 12.5 GB of 68.7 GB; 44.7 GB are "
            "left");
  EXPECT_EQ(headline_of(fits, Language::chinese),
            "能放下：最紧张的是host（loading），需要 8.0 GB 到 12.5 GB，共有 68.7 GB；余 44.7 GB");
  const Finding empty{.id = "weights-empty",
                      .slots = {{"count", "3"},
                                {"tensor", rest},
                                {"shape", "[256, 64]"},
                                {"found", "7"},
                                {"expected", "9"}}};
  for (const Language language : {Language::english, Language::chinese}) {
    const std::string line = headline_of(empty, language);
    EXPECT_THAT(line, HasSubstr("3 "));
    EXPECT_THAT(line, Not(HasSubstr("256")));
  }
}

TEST(Summary, PutsNotesUnderOneHeadingForEachEngineAndFile) {
  Diagnosis diagnosis;
  for (const Engine engine : {Engine::underkeel, Engine::both, Engine::underkeel})
    diagnosis.findings.push_back({.id = "underkeel-note",
                                  .certainty = Certainty::estimate,
                                  .engine = engine,
                                  .file = "a.yaml",
                                  .key = "k",
                                  .line = 3,
                                  .slots = {{"what", "word"}}});

  const std::string text = to_text(diagnosis, Language::english);

  EXPECT_THAT(text, HasSubstr("\ninfo (both engines)  a.yaml\n  - 3 k: word [estimate]\n"
                              "\ninfo (Underkeel)  a.yaml\n  - 3 k: word [estimate]\n"
                              "  - 3 k: word [estimate]\n"));
}

}  // namespace
}  // namespace underkeel::doctor
