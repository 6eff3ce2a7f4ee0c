#pragma once
// One case of tests/goldens/: what transformers computed (tests/goldens/PROVENANCE.md).

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/tensor_files.h"

namespace underkeel::test {

/// A flat micro-batch as kernels take it.
struct FlatBatch {
  std::vector<std::int32_t> tokens;           // (rows)
  std::vector<std::int32_t> positions;        // (rows)
  std::vector<std::int32_t> targets;          // (rows), -100 where not trained
  std::vector<std::int32_t> sequence_starts;  // (sequences + 1), from 0 to rows

  std::int64_t row_count() const { return static_cast<std::int64_t>(tokens.size()); }
  std::int64_t trained_count() const;
};

struct Golden {
  std::filesystem::path folder;  // a model folder: config.json, model.safetensors
  FlatBatch batch;
  double loss = 0;  // mean over trained targets
  double gradient_norm = 0;
  StoredTensors gradients;   // by parameter name, f32
  StoredTensor last_logits;  // (sequences, V) f32
  double loss_spread = 0;    // relative, of transformers with itself (eager, SDPA, layouts)
  double gradient_spread = 0;
};

/// AdamW with clipping, accumulation and a cosine schedule with warmup.
struct CurveSettings {
  std::int64_t steps = 0;
  std::int64_t accumulation_steps = 0;
  std::int64_t warmup_steps = 0;
  double learning_rate = 0;
  double weight_decay = 0;
  double max_grad_norm = 0;
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  std::vector<FlatBatch> batches;  // step s takes the next accumulation_steps, round and round
};

struct GoldenCurve : CurveSettings {
  std::filesystem::path folder;
  std::vector<double> losses;          // (steps)
  std::vector<double> gradient_norms;  // (steps), before clipping
  std::vector<double> learning_rates;  // (steps)
  std::vector<double> loss_spread;     // (steps), relative, eager against SDPA
  StoredTensors final_weights;
};

/// One curve from several starts, with bf16 modules over f32 master weights and with f32 modules.
struct GoldenBf16 : CurveSettings {
  struct Start {
    std::filesystem::path folder;    // a model folder in bf16
    std::vector<double> f32_losses;  // (steps)
    std::vector<double> bf16_losses;
  };
  std::vector<Start> starts;
  std::vector<double>
      loss_spread;  // (steps), relative, bf16 against f32: the largest of the starts
};

/// Names of the step cases and of the curves, sorted; for parameterised tests.
std::vector<std::string> golden_names();
std::vector<std::string> golden_curve_names();

Golden read_golden(std::string_view name);
GoldenCurve read_golden_curve(std::string_view name);
GoldenBf16 read_golden_bf16();

/// |actual - expected| / max(|expected|, floor), L2.
double relative_distance(const std::vector<float>& actual, const std::vector<float>& expected,
                         double floor);

}  // namespace underkeel::test
