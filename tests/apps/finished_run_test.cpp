// The command of a run that has ended, given again: it trains nothing, and leaves what was measured.

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "support/case.h"

namespace underkeel::test {
namespace {

TEST(FinishedRun, GivenAgainLeavesTheFiguresOfTheRunThatTrained) {
  const RunnableCase made = complete_case("accumulation_is_the_batch");
  const auto train = [&](const std::string& more) {
    const Ran ran = run_underkeel("train " + made.run_file.string() +
                                  " underkeel.threads=1 save_strategy=steps save_steps=1 " + more);
    EXPECT_EQ(ran.exit_code, 0) << ran.error;
    return read_text(made.output / "memory.json");
  };

  const std::string trained = train("max_steps=2");

  const auto segments =
      nlohmann::json::parse(trained)["ranks"][0]["spaces"]["device"]["by_segment"];
  EXPECT_GT(segments["update"]["measured_peak_bytes"], 0);
  const std::string results = read_text(made.output / "train_results.json");
  EXPECT_EQ(train("max_steps=2"), trained);
  EXPECT_EQ(read_text(made.output / "train_results.json"), results);
  EXPECT_NE(train("max_steps=3"), trained) << "one more step is trained, and measured";
}

}  // namespace
}  // namespace underkeel::test
