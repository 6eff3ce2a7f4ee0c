// Packs and padding: the micro-batches that LLaMA-Factory makes of a run's samples, and who sees whom in them.

#include <gtest/gtest.h>

#include "doctor/case_files.h"
#include "doctor/packing_rules.h"
#include "spec/yaml_reader.h"

namespace underkeel::doctor {
namespace {

using Counts = std::pair<std::size_t, std::size_t>;

constexpr Shape small = {32000, 2048, 16, 5632, 16, 16};

std::int64_t positions(const std::string& yaml, std::optional<std::int64_t> longest) {
  const auto document = spec::read_yaml(yaml, "train.yaml");
  return document ? padded_positions(*document, longest) : -1;
}

DataFigures figures(std::int64_t samples, std::int64_t longest) {
  DataFigures data{.samples = samples};
  data.training.longest_uncut = longest;
  data.sizes.training.longest = longest;
  data.sizes.training.sample_count = samples;
  return data;
}

DataFigures packs_of(const std::vector<std::int64_t>& samples,
                     const std::vector<std::int64_t>& filled) {
  PackFigures packs{.samples = samples, .filled = filled};
  for (const std::int64_t count : samples) packs.records += count;
  for (const std::int64_t tokens : filled) packs.tokens += tokens;
  DataFigures data = figures(static_cast<std::int64_t>(samples.size()),
                             *std::max_element(filled.begin(), filled.end()));
  data.packs = packs;
  return data;
}

TEST(Padding, IsThatOfLlamaFactorysCollator) {
  const std::string sft = "stage: sft\ncutoff_len: 100\n";
  EXPECT_EQ(positions(sft, 5), 8);
  EXPECT_EQ(positions(sft, 16), 16);
  EXPECT_EQ(positions(sft, {}), 104);
  // A pack is padded to cutoff_len, whatever it holds.
  for (const char* packs : {"packing: true\n", "neat_packing: true\n"}) {
    EXPECT_EQ(positions(sft + packs, 60), 100) << packs;
    EXPECT_EQ(positions(sft + packs, {}), 100) << packs;
  }
  // Flash attention of separate samples cuts the padding off again.
  EXPECT_EQ(positions(sft + "neat_packing: true\nflash_attn: fa2\n", 60), 60);
  EXPECT_EQ(positions(sft + "neat_packing: true\nflash_attn: fa2\n", {}), 99);
  EXPECT_EQ(positions(sft + "packing: true\nflash_attn: fa2\n", 60), 100);
  // Text is padded to the longest and no further.
  EXPECT_EQ(positions("stage: pt\ncutoff_len: 100\n", {}), 100);
  EXPECT_EQ(positions("stage: pt\ncutoff_len: 100\npacking: true\n", {}), 99);
  EXPECT_EQ(positions("stage: pt\ncutoff_len: 100\npacking: false\n", 5), 5);
}

TEST(Packing, UnderDeepspeedIsCountedWithPaddedPacks) {
  const auto verdict = [](const std::string& packing) {
    Files files = files_of({small,
                            R"("stage": 3)",
                            "finetuning_type: full\nbf16: true\ncutoff_len: 65536\n"
                            "per_device_train_batch_size: 4\n" +
                                packing,
                            {.gpus = 8, .gpu_gib = 40}});
    files.question.data = packing.empty() ? figures(2, 60) : packs_of({6, 6}, {60, 32});
    return files.diagnose().deepspeed.verdict;
  };

  EXPECT_EQ(verdict(""), Verdict::runs);
  EXPECT_EQ(verdict("packing: true\n"), Verdict::fails);
  EXPECT_EQ(verdict("neat_packing: true\n"), Verdict::fails);
}

TEST(Packing, IsToldWithItsPacks) {
  Files files = files_of({small,
                          R"("stage": 3)",
                          "finetuning_type: full\nbf16: true\ncutoff_len: 64\npacking: true\n"
                          "per_device_train_batch_size: 2\n",
                          {.gpus = 1}});
  files.question.data = packs_of({6, 6}, {60, 32});
  files.question.data->sizes.training.tokens[2] = 92;

  const Diagnosis diagnosis = files.diagnose();

  expect_says(diagnosis, "data-packs",
              {"12 training samples make 2 packs of 64 positions (6 samples with 60 tokens, 6 "
               "with 32), fill rate 71.9%, attention: separate per sample; positions restart",
               "2 x 64 positions", "up to 92"});
  EXPECT_TRUE(found(diagnosis, "data-longest").empty());
  expect_says(diagnosis, "logits-whole", {"2 x 64 tokens"});
}

TEST(Packing, WithoutItTheLongestIsRoundedUp) {
  Files files = files_of({small,
                          R"("stage": 3)",
                          "finetuning_type: full\nbf16: true\ncutoff_len: 64\n"
                          "per_device_train_batch_size: 2\n",
                          {}});
  files.question.data = figures(12, 5);

  const Diagnosis diagnosis = files.diagnose();

  expect_says(diagnosis, "data-longest",
              {"training samples: 12; the longest has 5 tokens", "2 x 8,", "up to 10"});
  expect_says(diagnosis, "logits-whole", {"2 x 8 tokens"});
  EXPECT_TRUE(found(diagnosis, "packs-see-one-another").empty());
  EXPECT_TRUE(found(diagnosis, "packs-kept-apart").empty());
}

TEST(Packing, OfTheLongestEvaluationSampleIsNotThatOfTraining) {
  const auto verdict = [](std::int64_t training, std::int64_t evaluation) {
    Files files = files_of({small,
                            R"("stage": 3)",
                            "finetuning_type: full\nbf16: true\ncutoff_len: 65536\n"
                            "per_device_train_batch_size: 4\nper_device_eval_batch_size: 1\n"
                            "eval_dataset: held\neval_strategy: steps\neval_steps: 100\n",
                            {.gpus = 8, .gpu_gib = 40}});
    files.question.data = figures(64, training);
    files.question.data->sizes.evaluation = {.longest = evaluation, .sample_count = 64};
    const Diagnosis diagnosis = files.diagnose();
    expect_says(diagnosis, "data-longest",
                {"training samples: 64; the longest has " + std::to_string(training) + " tokens"});
    expect_says(diagnosis, "data-longest-evaluation",
                {"the longest has " + std::to_string(evaluation) + " tokens"});
    return diagnosis.deepspeed.verdict;
  };

  EXPECT_EQ(verdict(65536, 40), Verdict::fails);
  EXPECT_EQ(verdict(40, 16384), Verdict::runs);
}

TEST(Packing, SaysWhatUnderkeelDoesByItsOwnKey) {
  const auto told = [](const std::string& keys, const char* id) {
    Files files;
    files.write("train.yaml", "stage: sft\nfinetuning_type: full\ncutoff_len: 64\n" + keys);
    return says(files.diagnose(), id);
  };
  const std::string shared = "underkeel:\n  packing_attention: shared\n";
  const char* see = "packs-see-one-another";
  const char* apart = "packs-kept-apart";

  EXPECT_NE(told("packing: true\n", see)
                .find("keeps them apart unless `underkeel.packing_attention: shared` is written"),
            std::string::npos);
  EXPECT_NE(told("packing: true\n" + shared, see).find("Underkeel lets them too"),
            std::string::npos);
  EXPECT_NE(told("neat_packing: true\n", apart).find("So does Underkeel"), std::string::npos);
  EXPECT_NE(
      told("neat_packing: true\n" + shared, apart).find("Underkeel lets each see those before it"),
      std::string::npos);
}

TEST(Packing, OfTextIsToldAsBlocks) {
  Files files;
  files.write("model.json", model_json(small));
  files.write("train.yaml",
              "stage: pt\nfinetuning_type: full\ncutoff_len: 64\n"
              "per_device_train_batch_size: 2\n");
  files.question.data = packs_of({1, 1}, {64, 64});
  files.question.data->packs->records = 7;

  const Diagnosis diagnosis = files.diagnose();

  expect_says(diagnosis, "data-blocks", {"7 texts make 2 blocks with 128 tokens", "2 x 64, 128"});
  EXPECT_TRUE(found(diagnosis, "data-packs").empty());
}

TEST(Packing, SaysWhichSamplesSeeOneAnotherInLlamaFactory) {
  const auto told = [](const std::string& more) {
    Files files;
    files.write("model.json", model_json(small));
    files.write("train.yaml", run_yaml("finetuning_type: full\nbf16: true\n" + more));
    const Diagnosis diagnosis = files.diagnose();
    return Counts(found(diagnosis, "packs-see-one-another").size(),
                  found(diagnosis, "packs-kept-apart").size());
  };

  EXPECT_EQ(told("packing: true\n"), (Counts{1, 0}));
  EXPECT_EQ(told("neat_packing: true\n"), (Counts{0, 1}));
  const std::string flash = "packing: true\nflash_attn: fa2\nper_device_train_batch_size: ";
  EXPECT_EQ(told(flash + "2\n"), (Counts{1, 0}));
  EXPECT_EQ(told(flash + "1\n"), (Counts{0, 1}));
  EXPECT_EQ(told("packing: false\n"), (Counts{0, 0}));
}

}  // namespace
}  // namespace underkeel::doctor
