// The formulas against real DeepSpeed: each row that scripts/measure_deepspeed.py measured, phase by phase and term by
// term. UNDERKEEL_PRINT_TABLE=1 prints the comparison as the table in bench/results/2026-11-deepspeed-peaks.md.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doctor/deepspeed_rows.h"

namespace underkeel::doctor {
namespace {

std::vector<Json> rows() {
  return measured_rows("2026-11-deepspeed-peaks.jsonl");
}

TEST(DeepspeedMeasured, HasEveryStageAndOffloadOnOneToFourRanks) {
  std::map<std::string, int> counts;
  for (const Json& row : rows()) {
    EXPECT_TRUE(row.at("phases").contains("save") && row.at("phases").contains("after_save"));
    ++counts[name_of_row(row)];
  }

  for (const int stage : {1, 2, 3})
    for (const int ranks : {1, 2, 3, 4})
      for (const char* offload : {"none", "optimizer", "both"}) {
        if (stage < 3 && offload == std::string("both")) continue;
        EXPECT_EQ(counts[fmt::format("stage {}, ranks {}, offload {}", stage, ranks, offload)], 1)
            << stage << ranks << offload;
      }
}

TEST(DeepspeedMeasured, ForetellsThePeakOfEveryPhaseAndOfTheRun) {
  expect_peaks_foretold(rows(), "peak", 1e6, false, [](const Foretold& foretold, Phase phase) {
    return foretold.total_of_one_memory(phase);
  });
}

TEST(DeepspeedMeasured, ForetellsEveryTermOfStepAndUpdate) {
  for (const Json& row : rows()) {
    const Foretold foretold(row);
    for (const Phase phase : {Phase::step, Phase::update}) {
      const Json& held = row.at("phases").at(std::string(name_of(phase))).at("at_peak");
      std::map<std::string, double> terms = foretold.terms_of_one_memory(phase);
      for (const char* name :
           {"weights", "master", "moments", "gradients_f32", "gradients", "bucket"}) {
        const double measured = held.value(name, 0.0);
        // Gradients are measured with the one in work; stage 1 may peak before its bucket is full.
        const bool is_gradients = name == std::string("gradients");
        const double in_work = is_gradients ? 2 * std::min(foretold.sizes.largest_trainable,
                                                           row.at("bucket").get<double>())
                                            : 0;
        EXPECT_LE(measured, 1.05 * terms[name] + in_work)
            << name_of_row(row) << ": " << name << " in " << name_of(phase);
        // At stage 1 a bucket's worth of them has left its own memory.
        const double in_bucket =
            is_gradients && row.at("stage") == 1 ? 2 * row.at("bucket").get<double>() : 0;
        EXPECT_GE(measured, 0.95 * terms[name] - in_bucket)
            << name_of_row(row) << ": " << name << " in " << name_of(phase);
      }
    }
  }
}

TEST(DeepspeedMeasured, BoundsTheLiveWindow) {
  for (const Json& row : rows()) {
    if (row.at("stage") != 3 || row.at("ranks") == 1) continue;
    const Json& held = row.at("phases").at("step").at("at_peak");
    const double measured = held.value("gathered", 0.0) + held.value("gather_copy", 0.0);

    std::map<std::string, double> terms = Foretold(row).terms_of_one_memory(Phase::step);
    const double expected = terms["live"] + terms["persistent"];

    EXPECT_LE(measured, 1.05 * expected) << name_of_row(row);
    // What fits in the window is gathered whole; a smaller window is a bound.
    if (row.at("max_live") == 1e9) {
      EXPECT_GE(measured, 0.95 * expected) << name_of_row(row);
    }
  }
}

}  // namespace
}  // namespace underkeel::doctor
