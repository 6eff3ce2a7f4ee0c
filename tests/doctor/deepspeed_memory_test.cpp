// The formulas against worked numbers: Llama-2-7B and figures that users reported.

#include "doctor/deepspeed_memory.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "doctor/shapes.h"
#include "spec/yaml_reader.h"

namespace underkeel::doctor {
namespace {

struct RunSetting {
  int stage = 0;
  double ranks = 1;
  Offload optimizer = Offload::none;
  Offload parameters = Offload::none;
  double bucket = 5e8;
  bool overlap = false;
  double accumulation = 1;
};

DeepspeedRun run_of(const ModelSizes& sizes, const RunSetting& setting) {
  DeepspeedSettings settings;
  settings.stage = setting.stage;
  settings.optimizer = setting.optimizer;
  settings.parameters = setting.parameters;
  settings.reduce_bucket = setting.bucket;
  settings.overlap_comm = setting.overlap;
  return {.sizes = sizes,
          .settings = settings,
          .ranks = setting.ranks,
          .ranks_on_node = setting.ranks,
          .accumulation_steps = setting.accumulation,
          .has_process = false};
}

double gb(double bytes) {
  return bytes / 1e9;
}

double low_gb(const Forecast& forecast, Phase phase, Space space = Space::device) {
  return gb(forecast.at(phase, space)->low());
}
double high_gb(const Forecast& forecast, Phase phase, Space space = Space::device) {
  return gb(forecast.at(phase, space)->high());
}

double term_gb(const Forecast& forecast, Phase phase, std::string_view name,
               Space space = Space::device) {
  for (const Term& term : forecast.at(phase, space)->terms)
    if (term.name == name) return gb(term.high_bytes);
  return 0;
}

const ModelSizes& sizes_of_llama_2() {
  static const ModelSizes sizes = sizes_of(llama_2_7b());
  return sizes;
}

TEST(DeepspeedMemory, CountsLlama2) {
  EXPECT_EQ(sizes_of_llama_2().trainable, 6738415616.0);
  EXPECT_EQ(sizes_of_llama_2().largest_tensor, 131072000.0);
}

TEST(DeepspeedMemory, HasThePersistentBytesOfStages1And2) {
  const double expected[][2] = {{1, 94.3}, {2, 53.9}, {4, 33.7}, {8, 23.6}};
  for (const auto& [ranks, size_gb] : expected)
    for (const int stage : {1, 2})
      EXPECT_NEAR(
          gb(persistent_device_bytes(run_of(sizes_of_llama_2(), {.stage = stage, .ranks = ranks}))),
          size_gb, 0.1)
          << ranks;
}

TEST(DeepspeedMemory, HasTheStepPeaks) {
  const double stage2_extra[][2] = {{1, 53.9}, {2, 27.0}, {4, 13.5}, {8, 6.7}};
  for (const auto& [ranks, extra_gb] : stage2_extra) {
    const DeepspeedRun run = run_of(sizes_of_llama_2(), {.stage = 2, .ranks = ranks});
    const double peak = low_gb(deepspeed_memory(run), Phase::update);
    // Parameters on a border between ranks are counted whole.
    const double edges = gb(2 * (owned_elements(run) - share_of(run)));
    EXPECT_NEAR(peak - gb(persistent_device_bytes(run)), extra_gb + edges, 0.1) << ranks;
    EXPECT_LT(edges, ranks > 1 ? 0.27 : 0.01) << ranks;
  }
  const double stage3_persistent[][2] = {{1, 108.8}, {2, 54.9}, {4, 28.0}, {8, 14.5}};
  for (const auto& [ranks, size_gb] : stage3_persistent) {
    const DeepspeedRun run = run_of(sizes_of_llama_2(), {.stage = 3, .ranks = ranks});
    const Forecast forecast = deepspeed_memory(run);
    const double copies = term_gb(forecast, Phase::update, "update_copies");
    EXPECT_NEAR(low_gb(forecast, Phase::update) - copies, size_gb, 0.1) << ranks;
    // s_max ends with the parameter that makes it 1e9, and is never more than S.
    EXPECT_GE(copies, ranks < 8 ? 6.0 : 5.0) << ranks;
    EXPECT_LE(copies, ranks < 8 ? 6.0 + 6 * 0.131072 / ranks : 5.1) << ranks;
  }
}

TEST(DeepspeedMemory, HasOneCardWithOffload) {
  const Forecast stage2 = deepspeed_memory(
      run_of(sizes_of_llama_2(), {.stage = 2, .ranks = 1, .optimizer = Offload::cpu}));
  EXPECT_NEAR(high_gb(stage2, Phase::step), 15.8, 0.05);
  EXPECT_NEAR(low_gb(stage2, Phase::step, Space::host), 121.5, 0.2);
  const Forecast accumulating = deepspeed_memory(run_of(
      sizes_of_llama_2(), {.stage = 2, .ranks = 1, .optimizer = Offload::cpu, .accumulation = 4}));
  EXPECT_NEAR(low_gb(accumulating, Phase::step, Space::host), 135, 0.3);

  const Forecast stage3 = deepspeed_memory(
      run_of(sizes_of_llama_2(),
             {.stage = 3, .ranks = 1, .optimizer = Offload::cpu, .parameters = Offload::cpu}));
  EXPECT_NEAR(term_gb(stage3, Phase::step, "bucket"), 1.0, 0.01);
  EXPECT_NEAR(term_gb(stage3, Phase::step, "live"), 2.26, 0.01);  // 1.126e9 elements at most
  EXPECT_NEAR(term_gb(stage3, Phase::step, "gradient_checks"), 1.3, 0.02);
  EXPECT_NEAR(low_gb(stage3, Phase::step, Space::host), 20 * 6.738, 0.2);
}

TEST(DeepspeedMemory, BringsTheMomentsAtTheFirstUpdate) {
  // 8.03e9 parameters, stage 2, one card: 48.2 after set-up, 64.2 after the backward pass, 176.7 in the update.
  const ModelSizes sizes = sizes_of(llama_3_8b());
  const Forecast forecast = deepspeed_memory(run_of(sizes, {.stage = 2, .ranks = 1}));

  // Zeros as large as the master are made and dropped at the end of set-up.
  EXPECT_NEAR(low_gb(forecast, Phase::load), 48.2 + 32.1, 0.1);
  EXPECT_NEAR(term_gb(forecast, Phase::load, "set_up"), 32.1, 0.1);
  EXPECT_NEAR(low_gb(forecast, Phase::first_step) - 1.0, 64.2, 0.1);  // and the bucket
  EXPECT_NEAR(low_gb(forecast, Phase::update), 176.7, 0.1);
  EXPECT_NEAR(low_gb(forecast, Phase::step) - low_gb(forecast, Phase::first_step), 64.2, 0.1);
  EXPECT_EQ(low_gb(forecast, Phase::resume), low_gb(forecast, Phase::step));
}

TEST(DeepspeedMemory, GrowsWithTheStageOnASmallModel) {
  // 494,032,768 parameters on 2 cards: users saw stage 2 need more than stage 1.
  const ModelSizes sizes = sizes_of(qwen2_half_billion());
  const auto stage = [&](int number, RunSetting setting = {}) {
    setting.stage = number;
    setting.ranks = 2;
    setting.accumulation = 2;
    return deepspeed_memory(run_of(sizes, setting));
  };
  EXPECT_NEAR(high_gb(stage(0), Phase::step), 8.9, 0.05);
  EXPECT_NEAR(high_gb(stage(0), Phase::update), 11.9, 0.05);
  EXPECT_NEAR(high_gb(stage(1), Phase::step), 7.4, 0.05);
  EXPECT_NEAR(high_gb(stage(2, {.overlap = true}), Phase::step), 7.9, 0.05);
  const Forecast small = stage(2, {.bucket = 1e7});
  EXPECT_NEAR(high_gb(small, Phase::step), 5.0, 0.05);
  EXPECT_NEAR(high_gb(small, Phase::update), 5.9, 0.05);
}

TEST(DeepspeedMemory, SavesWhatUsersMeasuredWithSmallerBuckets) {
  // Stage 2, 2 ranks: without overlap one bucket of 5e8 x 2 bytes less (954 MiB), 1e8 with overlap 4 buckets' worth less.
  const ModelSizes sizes = sizes_of(qwen2_half_billion());
  const auto bucket = [&](double elements, bool overlap) {
    return term_gb(deepspeed_memory(run_of(
                       sizes, {.stage = 2, .ranks = 2, .bucket = elements, .overlap = overlap})),
                   Phase::step, "bucket");
  };
  EXPECT_NEAR(bucket(5e8, true) - bucket(5e8, false), 954 * 1.048576e-3, 0.001);
  EXPECT_NEAR(bucket(5e8, true) - bucket(1e8, true), 1527 * 1.048576e-3, 0.002);
}

TEST(DeepspeedMemory, CountsTheNodesHost) {
  // 33B, 8 ranks.
  const ModelSizes sizes = sizes_of(model_of(llama_33b));
  const auto node = [&](RunSetting setting) {
    setting.stage = 3;
    setting.ranks = 8;
    return deepspeed_memory(run_of(sizes, setting));
  };
  const Forecast both = node({.optimizer = Offload::cpu, .parameters = Offload::cpu});
  EXPECT_NEAR(low_gb(both, Phase::step, Space::host), 650.6, 0.5);
  EXPECT_NEAR(low_gb(both, Phase::step, Space::pinned_host), 260.2, 0.5);
  EXPECT_NEAR(low_gb(node({.optimizer = Offload::cpu}), Phase::step, Space::host), 585.5, 0.5);
  const Forecast nvme = node({.optimizer = Offload::nvme});
  EXPECT_NEAR(low_gb(nvme, Phase::step, Space::host), 193 + 2, 3);
  EXPECT_NEAR(high_gb(nvme, Phase::step, Space::nvme), 520.5, 0.5);
  EXPECT_NEAR(term_gb(nvme, Phase::step, "weights"), 8.1, 0.05);
}

TEST(DeepspeedMemory, ReadsTheOptimizerFileWholeOnResume) {
  const ModelSizes sizes = sizes_of(qwen3_0_6b());
  const Forecast forecast = deepspeed_memory(
      run_of(sizes, {.stage = 2, .ranks = 1, .optimizer = Offload::cpu, .accumulation = 2}));
  EXPECT_NEAR(low_gb(forecast, Phase::step, Space::host), 12.1, 0.15);
  EXPECT_NEAR(low_gb(forecast, Phase::resume, Space::host), 19.3, 0.15);
}

TEST(DeepspeedMemory, RoundsPageLockedBlocksToPowersOfTwo) {
  EXPECT_EQ(rounded_block(13.5e9), 16.0 * (1 << 30));
  EXPECT_EQ(rounded_block(4096), 4096);
  EXPECT_EQ(rounded_block(4097), 8192);
}

TEST(DeepspeedMemory, PassesTheWholeModelThroughEachCardWithoutZeroInit) {
  DeepspeedRun run = run_of(sizes_of_llama_2(), {.stage = 3, .ranks = 8});
  run.built_sharded = false;
  EXPECT_NEAR(low_gb(deepspeed_memory(run), Phase::load), 13.5, 0.05);
  EXPECT_NEAR(high_gb(deepspeed_memory(run), Phase::load, Space::host), 8 * 13.5, 0.5);
}

TEST(DeepspeedMemory, KeepsOnlyTheNormsGatheredBelowTheUsualThresholds) {
  DeepspeedSettings settings;
  settings.param_persistence = 40960;
  const double norms = 65 * 4096;
  EXPECT_EQ(persistent_elements(sizes_of_llama_2(), settings), norms);
  settings.param_persistence = 1e5;
  EXPECT_EQ(persistent_elements(sizes_of_llama_2(), settings), norms);
  settings.param_persistence = 1e9;
  EXPECT_EQ(persistent_elements(sizes_of_llama_2(), settings), sizes_of_llama_2().trainable);
  settings.model_persistence = 10000;
  settings.param_persistence = 40960;
  EXPECT_EQ(persistent_elements(sizes_of_llama_2(), settings), 8192);
}

TEST(Activations, CountTheLeastThatABackwardPassNeeds) {
  const spec::ModelSpec model = qwen2_14b();
  EXPECT_EQ(least_values_per_token(model), 45056);
}

TEST(ModelSizes, CountAdapters) {
  RunFacts run;
  run.lora_rank = 8;
  const ModelSizes sizes = sizes_of(llama_2_7b(), run);
  EXPECT_EQ(sizes.trainable, 19988480.0);
  EXPECT_EQ(sizes.frozen, 6738415616.0);
}

TEST(DeepspeedMemory, CountsTheParametersThatARankOwnsAPartOf) {
  for (const double ranks : {1.0, 2.0, 3.0, 7.0, 64.0, 1000.0, 32768.0}) {
    const DeepspeedRun run = run_of(sizes_of_llama_2(), {.stage = 2, .ranks = ranks});
    const auto share = static_cast<std::int64_t>(share_of(run));
    std::vector<std::int64_t> owned(static_cast<std::size_t>(ranks), 0);
    std::int64_t begin = 0;
    for (const Tensor& tensor : run.sizes.tensors) {
      const std::int64_t end = begin + tensor.elements;
      for (std::int64_t rank = begin / share; rank <= (end - 1) / share; ++rank)
        owned[static_cast<std::size_t>(rank)] += tensor.elements;
      begin = end;
    }

    EXPECT_EQ(owned_elements(run),
              static_cast<double>(*std::max_element(owned.begin(), owned.end())))
        << ranks;
  }
}

struct Sending {
  std::string type;  // of communication_data_type; empty: not given
  std::string zero;
  double ranks;
  double bucket_gb, copy_gb, cast_gb;
};

/// A bucket of 5e8 elements, and what is made of it in the type that is sent.
TEST(DeepspeedMemory, CountsGradientsInTheTypeThatIsSent) {
  const Sending sendings[] = {
      {"", R"("stage": 2)", 8, 1, 1, 0},     {"bf16", R"("stage": 2)", 8, 1, 1, 0},
      {"fp32", R"("stage": 2)", 8, 1, 1, 2}, {"FP32", R"("stage": 1)", 8, 1, 1, 2},
      {"fp32", R"("stage": 3)", 8, 2, 2, 1}, {"", R"("stage": 3)", 8, 1, 1, 0},
      {"fp32", R"("stage": 0)", 8, 0, 1, 2}, {"", R"("stage": 0)", 8, 0, 1, 0},
  };
  for (const Sending& sending : sendings) {
    const std::string type =
        sending.type.empty() ? "" : R"("communication_data_type": ")" + sending.type + R"(", )";
    const auto config = spec::read_yaml(
        fmt::format(R"({{{}"bf16": {{"enabled": true}}, "zero_optimization": {{{}}}}})", type,
                    sending.zero),
        "config");
    DeepspeedRun run = run_of(sizes_of_llama_2(), {.ranks = sending.ranks});
    run.settings = settings_of(*config, {}, 4096);

    const Forecast forecast = deepspeed_memory(run);

    EXPECT_NEAR(term_gb(forecast, Phase::step, "bucket"), sending.bucket_gb, 0.01) << type;
    EXPECT_NEAR(term_gb(forecast, Phase::step, "bucket_copy"), sending.copy_gb, 0.01) << type;
    EXPECT_NEAR(term_gb(forecast, Phase::step, "bucket_cast"), sending.cast_gb, 0.01)
        << type << sending.zero;
  }
}

/// BF16_Optimizer holds its gradients in f32 and sends them in bf16, unless fp32 is asked for.
TEST(DeepspeedMemory, CountsTheCastOfBf16Optimizer) {
  for (const auto& [type, cast_gb] : {std::pair{"bf16", 13.5}, std::pair{"fp32", 0.0}}) {
    const auto config = spec::read_yaml(
        fmt::format(R"({{"communication_data_type": "{}", "bf16": {{"enabled": true}},
            "data_types": {{"grad_accum_dtype": "fp32"}}, "zero_optimization": {{"stage": 1}}}})",
                    type),
        "config");
    DeepspeedRun run = run_of(sizes_of_llama_2(), {.ranks = 8});
    run.settings = settings_of(*config, {}, 4096);
    ASSERT_TRUE(run.settings.uses_bf16_optimizer);

    const Forecast forecast = deepspeed_memory(run);

    EXPECT_NEAR(term_gb(forecast, Phase::step, "bucket_copy"), cast_gb, 0.1) << type;
    // Weights, gradients in both types, and a share of the state.
    EXPECT_NEAR(high_gb(forecast, Phase::step), 13.48 + 6 * 6.738 + 12 * 6.738 / 8 + cast_gb, 0.1);
  }
}

}  // namespace
}  // namespace underkeel::doctor
