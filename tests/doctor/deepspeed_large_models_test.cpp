// The formulas against real DeepSpeed on one GPU: models of 1 to 7 billion parameters, phase by phase and term by term.
// UNDERKEEL_PRINT_TABLE=1 prints the comparison as the table in bench/results/2026-11-deepspeed-gpu-peaks.md.

#include <gtest/gtest.h>

#include "doctor/deepspeed_rows.h"

namespace underkeel::doctor {
namespace {

std::vector<Json> gpu_rows() {
  return measured_rows("2026-11-deepspeed-gpu-peaks.jsonl");
}

// torch gives cuBLAS one workspace for the forward and one for the backward pass, of this size on an H200; the forecast
// counts them with the context.
constexpr double workspaces_bytes = 2 * 32 * 1048576.0;

double expected_bytes(const Foretold& foretold, Phase phase) {
  const bool has_computed = phase != Phase::load;
  return foretold.forecast.at(phase, Space::device)->high() + (has_computed ? workspaces_bytes : 0);
}

TEST(DeepspeedOnGpu, HasRowsOfEveryModelAndStage) {
  std::map<std::string, int> counts;
  for (const Json& row : gpu_rows())
    ++counts[fmt::format("{} at {}", row.at("model").get<std::string>(),
                         row.at("stage").get<int>())];

  for (const char* model : {"Llama-3.2-1B", "Llama-3.2-3B"})
    for (const int stage : {1, 2, 3})
      EXPECT_GT(counts[fmt::format("{} at {}", model, stage)], 0) << model << " " << stage;
  EXPECT_GT(counts["Llama-2-7B at 3"], 0);
}

TEST(DeepspeedOnGpu, ForetellsThePeakOfEveryPhaseAndOfTheRun) {
  expect_peaks_foretold(gpu_rows(), "allocated_peak", 1e9, true, expected_bytes);
}

/// With micro-batches as those of a real run. Releases of DeepSpeed differ in when they make the bucket of a backward pass, and
/// those of transformers in what the loss of several sequences takes: the end of the range is theirs.
TEST(DeepspeedOnGpu, ForetellsPeaksWithActivationsWithinTheRange) {
  int count = 0;
  for (const Json& row : measured_rows("2026-12-deepspeed-gpu-activations.jsonl")) {
    const Foretold foretold(row);
    const bool prints = std::getenv("UNDERKEEL_PRINT_TABLE") != nullptr;
    std::string line = "| " + name_of_row(row);
    for (const Phase phase :
         {Phase::load, Phase::first_step, Phase::step, Phase::update, Phase::evaluate}) {
      if (!row.at("phases").contains(std::string(name_of(phase)))) continue;
      ++count;
      const double measured = row.at("phases").at(std::string(name_of(phase))).at("allocated_peak");
      const double most = expected_bytes(foretold, phase);
      const double least = foretold.forecast.at(phase, Space::device)->low();
      EXPECT_GE(off_percent(most, measured), -0.5) << name_of_row(row) << ": " << name_of(phase);
      EXPECT_LE(off_percent(most, measured), 8.2) << name_of_row(row) << ": " << name_of(phase);
      EXPECT_LE(least, measured) << name_of_row(row) << ": " << name_of(phase);
      line += fmt::format(" | {:.2f} {:+.1f}% {:+.1f}%", measured / 1e9,
                          off_percent(least, measured), off_percent(most, measured));
    }
    if (prints) std::cout << line << " |\n";
  }
  EXPECT_GT(count, 50);
}

double term_of(const Foretold& foretold, Phase phase, Space space, std::string_view name) {
  return term_bytes(foretold.forecast, phase, space, name);
}

TEST(DeepspeedOnGpu, ForetellsEveryTermOfStepAndUpdate) {
  for (const Json& row : gpu_rows()) {
    const Foretold foretold(row);
    for (const Phase phase : {Phase::step, Phase::update}) {
      const Json& held = row.at("phases").at(std::string(name_of(phase))).at("at_peak");
      for (const char* name : {"weights", "master", "moments", "bucket"}) {
        const double expected = term_of(foretold, phase, Space::device, name);
        EXPECT_NEAR(held.value(name, 0.0), expected, 0.05 * expected)
            << name_of_row(row) << ": " << name << " in " << name_of(phase);
      }
      // With those in work, which are not told apart by the measurement.
      const double most = term_of(foretold, phase, Space::device, "gradients") +
                          term_of(foretold, phase, Space::device, "gradient_in_work");
      const double least = term_of(foretold, phase, Space::device, "gradients");
      EXPECT_GE(held.value("gradients", 0.0), 0.95 * least) << name_of_row(row);
      EXPECT_LE(held.value("gradients", 0.0), 1.05 * most + 1e8) << name_of_row(row);
    }
  }
}

TEST(DeepspeedOnGpu, ForetellsTheLiveWindow) {
  for (const Json& row : gpu_rows()) {
    if (row.at("offload") != "both") continue;
    const Json& held = row.at("phases").at("step").at("at_peak");
    const double expected = term_of(Foretold(row), Phase::step, Space::device, "live");

    EXPECT_NEAR(held.at("gathered").get<double>(), expected, 0.05 * expected) << name_of_row(row);
  }
}

TEST(DeepspeedOnGpu, ForetellsWhatOffloadKeepsOnTheHost) {
  for (const Json& row : gpu_rows()) {
    if (row.at("offload") == "none") continue;
    const Foretold foretold(row);
    const Json& held = row.at("phases").at("update").at("on_host");
    for (const auto& [name, measured] : held.items()) {
      double expected = term_of(foretold, Phase::update, Space::host, name);
      EXPECT_NEAR(measured.get<double>(), expected, 0.05 * expected)
          << name_of_row(row) << ": " << name;
    }
  }
}

TEST(DeepspeedOnGpu, BoundsWhatIsReserved) {
  for (const Json& row : gpu_rows()) {
    double reserved = 0;
    const Foretold foretold(row);
    for (const Phase phase : measured_phases) {
      if (!row.at("phases").contains(std::string(name_of(phase)))) continue;
      const Holding& holding = *foretold.forecast.at(phase, Space::device);
      const double measured = row.at("phases").at(std::string(name_of(phase))).at("reserved_peak");
      reserved = std::max(reserved, measured);
      EXPECT_GE(measured, 0.98 * holding.low()) << name_of_row(row) << ": " << name_of(phase);
    }
    EXPECT_LE(reserved, reserved_bytes(foretold.forecast).most + workspaces_bytes)
        << name_of_row(row);
  }
}

TEST(DeepspeedOnGpu, BoundsWhatIsNoTensor) {
  for (const Json& row : gpu_rows())
    for (const auto& [name, phase] : row.at("phases").items()) {
      const double beside =
          phase.at("device_used").get<double>() - phase.at("reserved").get<double>();
      EXPECT_GE(beside, context_bytes.low) << name_of_row(row) << ": " << name;
      EXPECT_LE(beside, context_bytes.high) << name_of_row(row) << ": " << name;
    }
}

}  // namespace
}  // namespace underkeel::doctor
