// Keys of a run file that decide which samples there are.

#include "spec/run_files.h"

namespace underkeel::spec {
namespace {

class RunData : public RunFiles {
 protected:
  Result<RunConfig> read_sft(const std::string& lines, const std::string& sets = "d") {
    return read(
        "model_name_or_path: m\noutput_dir: o\ndo_train: true\nstage: sft\n"
        "finetuning_type: full\ndataset: " +
        sets + "\n" + lines);
  }
};

TEST_F(RunData, TakesARunWithoutAStageForSftWithLlamaFactorysDefaults) {
  const auto run = read(
      "model_name_or_path: m\noutput_dir: o\ndo_train: true\ndataset: d\nfinetuning_type: full\n");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->stage, Stage::sft);
  EXPECT_FALSE(run->data.packing);
  EXPECT_EQ(run->data.cutoff_tokens, 2048);
  EXPECT_EQ(run->data.template_name, "");
  EXPECT_EQ(run->data.enable_thinking, true);
  EXPECT_FALSE(run->data.preserve_thinking);
  EXPECT_FALSE(run->data.train_on_prompt);
  EXPECT_FALSE(run->data.mask_history);
  EXPECT_EQ(run->data.mix_strategy, MixStrategy::concat);
  EXPECT_FALSE(run->data.shared_attention);
}

TEST_F(RunData, ReadsEveryKeyOfStageSft) {
  const auto run = read_sft(R"(
template: qwen3
default_system: Be brief.
enable_thinking: false
preserve_thinking: true
mask_history: true
overwrite_cache: true
preprocessing_num_workers: 4
neat_packing: true
cutoff_len: 64
mix_strategy: interleave_over
interleave_probs: 0.25,0.75
underkeel: {packing_attention: shared, skip_broken_records: true, token_cache: cache}
)",
                            "a, b");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  const DataConfig& data = run->data;
  EXPECT_EQ(data.template_name, "qwen3");
  EXPECT_EQ(data.default_system, "Be brief.");
  EXPECT_EQ(data.enable_thinking, false);
  EXPECT_TRUE(data.preserve_thinking);
  EXPECT_TRUE(data.mask_history);
  EXPECT_TRUE(data.overwrite_cache);
  EXPECT_EQ(data.packing_shards, 4);
  EXPECT_TRUE(data.neat_packing);
  EXPECT_TRUE(data.packing);
  EXPECT_EQ(data.cutoff_tokens, 63);
  EXPECT_EQ(data.mix_strategy, MixStrategy::interleave_over);
  EXPECT_EQ(data.interleave_probabilities, (std::vector<double>{0.25, 0.75}));
  EXPECT_TRUE(data.shared_attention);
  EXPECT_TRUE(data.skip_broken_records);
  EXPECT_EQ(data.token_cache, "cache");
}

TEST_F(RunData, ShortensTheCutoffByOneWherePackingIsWritten) {
  EXPECT_EQ(read_sft("packing: true\ncutoff_len: 64\n")->data.cutoff_tokens, 63);
  EXPECT_EQ(read_sft("neat_packing: true\npacking: false\ncutoff_len: 64\n")->data.cutoff_tokens,
            63);
  EXPECT_EQ(read_sft("packing: false\ncutoff_len: 64\n")->data.cutoff_tokens, 64);
}

TEST_F(RunData, KeepsANullOfEnableThinkingApartFromFalse) {
  EXPECT_EQ(read_sft("enable_thinking: null\n")->data.enable_thinking, std::nullopt);
}

TEST_F(RunData, RefusesWhatContradictsItselfOrTheStage) {
  const auto what = [&](const std::string& lines) {
    const auto run = read_sft(lines);
    return run ? std::string("accepted") : run.error().what + run.error().where;
  };

  EXPECT_NE(what("mask_history: true\ntrain_on_prompt: true\n").find("exclude each other"),
            std::string::npos);
  EXPECT_NE(what("interleave_probs: 0.5,0.5\n").find("belongs to an interleaving mix_strategy"),
            std::string::npos);
  EXPECT_NE(what("mix_strategy: interleave_under\ninterleave_probs: 0.5,0.5\n")
                .find("2 probabilities for 1 data sets"),
            std::string::npos);
  EXPECT_NE(what("mix_strategy: interleave_under\ninterleave_probs: 0.5\n").find("add up to 0.5"),
            std::string::npos);
  EXPECT_NE(what("mix_strategy: shuffle\n").find("`shuffle` is no way to mix data sets"),
            std::string::npos);
  EXPECT_NE(what("underkeel: {packing_attention: all}\n").find("`all` is no kind of attention"),
            std::string::npos);
  for (const char* key : {"train_on_prompt", "mask_history", "neat_packing"}) {
    const auto run = read(minimal(std::string(key) + ": true\n"));
    ASSERT_FALSE(run.has_value()) << key;
    EXPECT_NE(run.error().what.find("this belongs to stage sft"), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace underkeel::spec
