#pragma once
// One batch of 16 samples trained in six ways: losses and norms are those of the whole batch.

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "train/e2e.h"

namespace underkeel::test {

struct Cut {
  int sequences = 1;
  int accumulation = 1;
  int ranks = 1;
};

inline void expect_same_numbers_however_cut(const std::string& case_name) {
  const std::vector<Cut> cuts = {{16, 1, 1}, {4, 4, 1}, {2, 8, 1},
                                 {1, 16, 1}, {2, 4, 2}, {1, 4, 4}};
  for (const std::string type : {"float32", ""}) {
    const RunnableCase made = complete_case(case_name, {.type = type});
    const double relative = type.empty() ? 2e-2 : 1e-5;
    std::map<std::int64_t, nlohmann::json> whole;
    for (const Cut& cut : cuts) {
      SCOPED_TRACE(testing::Message() << cut.sequences << " x " << cut.accumulation << " x "
                                      << cut.ranks << " " << type);
      const fs::path output = made.folder / ("cut-" + std::to_string(cut.accumulation) + "-" +
                                             std::to_string(cut.ranks));
      const Ended ended = run_training(
          made, {.ranks = cut.ranks,
                 .output = output,
                 .changes = {"per_device_train_batch_size=" + std::to_string(cut.sequences),
                             "gradient_accumulation_steps=" + std::to_string(cut.accumulation)}});

      ASSERT_EQ(ended.exit_code, 0) << ended.output;
      const auto ours = steps(output);
      ASSERT_EQ(ours.size(), 3u);
      if (whole.empty()) whole = ours;
      for (const auto& [step, event] : whole)
        for (const char* what : {"loss", "grad_norm"}) {
          const double expected = event[what];
          EXPECT_NEAR(ours.at(step)[what], expected, relative * expected) << what << " " << step;
        }
    }
  }
}

}  // namespace underkeel::test
