// Activations against what scripts/measure_activations.py measured of transformers on a GPU.
// UNDERKEEL_PRINT_TABLE=1 prints the comparison as the table in bench/results/2026-12-activations.md.

#include "doctor/activations.h"

#include <gtest/gtest.h>

#include "doctor/deepspeed_rows.h"

namespace underkeel::doctor {
namespace {

std::vector<Json> rows() {
  return measured_rows("2026-12-activations.jsonl");
}

spec::ModelSpec model_of_measured(const Json& row) {
  return model_of({.vocabulary = row.at("vocabulary"),
                   .width = row.at("width"),
                   .layers = row.at("layers"),
                   .feed_forward = row.at("feed_forward"),
                   .query_heads = row.at("query_heads"),
                   .key_heads = row.at("key_heads"),
                   .head_width = row.at("head_width"),
                   .qkv_bias = row.at("kind") == "qwen2",
                   .tied = row.at("tied"),
                   .qk_norm = row.at("kind") == "qwen3"});
}

ActivationQuestion question_of(const Json& row, const spec::ModelSpec& model) {
  return {.model = model,
          .sequences = row.at("sequences"),
          .tokens = row.at("tokens"),
          .recomputes = row.at("recompute") != "none",
          .element_bytes = row.at("bits") == 16 ? 2.0 : 4.0,
          .has_eager_attention = row.at("attention") == "eager",
          .is_lora = row.at("method") != "full",
          .adapts_all = row.at("method") != "lora-qv"};
}

std::string name_of_measured(const Json& row) {
  return fmt::format(
      "transformers {} {}, {} layers, {} tokens in the vocabulary, {} x {}{}, {}, "
      "recompute {}, {}, {} bit",
      row.at("transformers").get<std::string>(), row.at("model").get<std::string>(),
      row.at("layers").get<int>(), row.at("vocabulary").get<int>(), row.at("sequences").get<int>(),
      row.at("tokens").get<int>(), row.at("padded") == true ? " padded" : "",
      row.at("method").get<std::string>(), row.at("recompute").get<std::string>(),
      row.at("attention").get<std::string>(), row.at("bits").get<int>());
}

TEST(MeasuredActivations, LieInTheRange) {
  for (const Json& row : rows()) {
    const spec::ModelSpec model = model_of_measured(row);
    const ActivationQuestion question = question_of(row, model);
    for (const auto& [name, range] : {std::pair{"kept", kept_activations(question)},
                                      std::pair{"step", activation_peak(question)},
                                      std::pair{"evaluation", evaluation_peak(question)}}) {
      const double measured = row.at(name);
      // Workspaces and small tables.
      EXPECT_GE(measured, 0.99 * range.low - 1e6) << name << ": " << name_of_measured(row);
      EXPECT_LE(measured, 1.01 * range.high + 1e6) << name << ": " << name_of_measured(row);
      if (std::getenv("UNDERKEEL_PRINT_TABLE") != nullptr)
        std::cout << fmt::format("{} {}: {:.3f} of {:.3f} - {:.3f} ({:+.1f}% {:+.1f}%)\n",
                                 name_of_measured(row), name, measured / 1e9, range.low / 1e9,
                                 range.high / 1e9, off_percent(range.low, measured),
                                 off_percent(range.high, measured));
    }
  }
}

// What most people run: in 16 bit, fused attention, every shape, version and method.
TEST(MeasuredActivations, AreForetoldWithinAFewPercentForOneSequence) {
  int count = 0;
  for (const Json& row : rows()) {
    if (row.at("bits") != 16 || row.at("attention") != "sdpa" || row.at("sequences") != 1 ||
        row.at("method") == "lora-qv" || row.at("vocabulary") < 32000)
      continue;
    ++count;
    const spec::ModelSpec model = model_of_measured(row);
    const Range step = activation_peak(question_of(row, model));
    EXPECT_LE(step.high, 1.05 * row.at("step").get<double>()) << name_of_measured(row);
    EXPECT_GE(step.low, 0.95 * row.at("step").get<double>()) << name_of_measured(row);
  }
  EXPECT_GT(count, 50);
}

TEST(MeasuredActivations, HaveScoresWholeInF32WhereHeadsShareKeys) {
  bool found = false;
  for (const Json& row : rows()) {
    const spec::ModelSpec model = model_of_measured(row);
    const ActivationQuestion question = question_of(row, model);
    if (!may_fall_back_to_scores(question) || row.at("recompute") != "none") continue;
    ActivationQuestion fused = question;
    fused.element_bytes = 2;
    found = found || row.at("kept").get<double>() > 2.2 * 2 * kept_activations(fused).low;
  }
  EXPECT_TRUE(found);
}

TEST(Activations, OfFusedKernelsAreFromTheLeastThatMustBeKept) {
  const spec::ModelSpec model = llama_3_8b();
  ActivationQuestion question{.model = model, .recomputes = false};
  const Range all = activation_peak(question);
  question.has_fused_kernels = true;
  const Range fused = activation_peak(question);
  EXPECT_EQ(fused.high, all.high);
  EXPECT_LT(fused.low, 2048.0 * 2 * 32 * 1.02 * least_values_per_token(model));
  EXPECT_GE(fused.low, 2048.0 * 2 * 32 * least_values_per_token(model));
}

}  // namespace
}  // namespace underkeel::doctor
