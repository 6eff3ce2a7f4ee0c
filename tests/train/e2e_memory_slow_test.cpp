// Memory of whole runs: nothing grows, and a resumed run needs what a fresh one needed.

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "planner/planner.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"
#include "support/places.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::Each;
using testing::Le;

nlohmann::json memory_of(const fs::path& output) {
  return nlohmann::json::parse(read_text(output / "memory.json"));
}

std::int64_t measured(const nlohmann::json& memory, const std::string& segment) {
  return memory["ranks"][0]["spaces"]["device"]["by_segment"][segment]["measured_peak_bytes"];
}

/// Lines that the heap watch wrote: step, bytes of the heap in use, bytes mapped, of which resident.
struct Seen {
  std::int64_t step = 0;
  double heap_bytes = 0;
  double mapped_bytes = 0;
  double resident_bytes = 0;
};

std::vector<Seen> watched_steps(const RunnableCase& made, TrainOptions options) {
  const fs::path log = made.folder / "heap_watch";
  options.environment["LD_PRELOAD"] = test::in_build("tests/libheap_watch.so");
  options.environment["HEAP_WATCH_LOG"] = log.string();
  const Ended ended = run_training(made, options, 120);
  if (ended.exit_code != 0) throw std::runtime_error(ended.output);
  std::vector<Seen> seen;
  std::istringstream text(read_text(log));
  for (Seen one; text >> one.step >> one.heap_bytes >> one.mapped_bytes >> one.resident_bytes;)
    seen.push_back(one);
  return seen;
}

/// Of a least-squares line, per step.
double slope_of(const std::vector<Seen>& seen, double Seen::*what) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const Seen& one : seen) {
    const auto step = static_cast<double>(one.step);
    n += 1;
    x += step;
    y += one.*what;
    xx += step * step;
    xy += step * (one.*what);
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

TEST(MemoryOfARun, HoldsTheSameHeapAfterStep100AsAfterStep2) {
  // Samples of one length: the window of a step is in the heap when its event is written.
  const RunnableCase made = complete_case("activations_above_state", {.zero_stage = 3});

  const auto seen = watched_steps(
      made, {.changes = {"max_steps=100", "save_steps=20", "per_device_train_batch_size=2"}});

  ASSERT_EQ(seen.size(), 100u);
  EXPECT_GT(seen[1].heap_bytes, 10'000) << "the watch sees the heap";
  // Other lanes may hold a few bytes just then: what counts is what they leave.
  const auto at_rest = [&](std::size_t begin, std::size_t end) {
    double least = seen[begin].heap_bytes;
    for (std::size_t i = begin; i < end; ++i) least = std::min(least, seen[i].heap_bytes);
    return least;
  };
  // Lanes seldom hold nothing at all, in one step of fifty; a byte a step would be 83.
  EXPECT_NEAR(at_rest(84, 100), at_rest(1, 17), 64);
  EXPECT_EQ(seen[99].mapped_bytes, seen[1].mapped_bytes);
}

TEST(MemoryOfARun, HasNoSlopeOver300StepsOfRandomLengths) {
  const RunnableCase made = complete_case("random_lengths", {.zero_stage = 3});

  auto seen = watched_steps(made, {.ranks = 2});

  ASSERT_EQ(seen.size(), 300u);
  seen.erase(seen.begin());
  EXPECT_LE(std::abs(slope_of(seen, &Seen::resident_bytes)), 16 * 1024);
  EXPECT_LE(std::abs(slope_of(seen, &Seen::heap_bytes)), 1024);
}

TEST(MemoryOfARun, KeepsItsArenasThroughSavesEvaluationsAndLengths) {
  const RunnableCase made = complete_case("lengths_up_to_970", {.zero_stage = 1});

  const Ended ended =
      run_training(made, {.ranks = 2,
                          .changes = {"max_steps=40", "save_steps=10", "eval_dataset=wide",
                                      "eval_strategy=steps", "eval_steps=20"}});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const auto memory = memory_of(made.output);
  for (const auto& rank : memory["ranks"]) {
    const auto& device = rank["spaces"]["device"];
    EXPECT_NEAR(device["measured_peak_bytes"], device["planned_peak_bytes"], 4096);
    EXPECT_LE(rank["process"]["max_rss_bytes"], rank["process"]["planned_total_bytes"]);
  }
  EXPECT_GE(memory["events"].size(), 12u);
  for (const auto& event : memory["events"]) {
    if (event["space"] != "device") continue;
    EXPECT_EQ(event["before_bytes"], event["after_bytes"]) << event;
    EXPECT_EQ(event["before_bytes"], event["during_peak_bytes"]) << event;
  }
}

TEST(MemoryOfARun, IsTheSameForAFreshAndAResumedStart) {
  const RunnableCase made = complete_case("activations_above_state", {.zero_stage = 0});
  const fs::path fresh = made.folder / "fresh";
  const Ended whole = run_training(made, {.output = fresh});
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const fs::path resumed = with_checkpoint_of(fresh, 2, made.folder / "resumed");

  const Ended ended = run_training(made, {.output = resumed});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(steps(resumed).begin()->first, 3);
  const auto before = memory_of(fresh);
  const auto after = memory_of(resumed);
  for (const char* segment : {"micro.first", "micro.last", "update", "save"})
    EXPECT_EQ(measured(before, segment), measured(after, segment)) << segment;
  EXPECT_EQ(before["ranks"][0]["spaces"]["device"]["measured_peak_bytes"],
            after["ranks"][0]["spaces"]["device"]["measured_peak_bytes"]);
  // Activations are above the optimizer's state, and both are there in the first step.
  EXPECT_GT(measured(before, "micro.first"), 1'085'184 + 8'400'000);
}

TEST(MemoryOfARun, IsNeverAboveThePlanWhileLoading) {
  const RunnableCase made = complete_case("load_under_plan", {.zero_stage = 0});
  const Ended whole = run_training(made);
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const auto device = memory_of(made.output)["ranks"][0]["spaces"]["device"];
  const std::string cap = std::to_string(device["planned_peak_bytes"].get<std::int64_t>()) + "B";
  const fs::path resumed = with_checkpoint_of(made.output, 2, made.folder / "resumed");

  const Ended ended = run_training(made, {.output = resumed,
                                          .changes = {},
                                          .environment = {},
                                          .flags = {"--memory", "device=" + cap}});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const auto memory = memory_of(resumed);
  EXPECT_LE(measured(memory, "resume"), measured(memory, "micro.first"));
}

TEST(MemoryOfARun, OfAnEvaluationIsFlatOverItsSamples) {
  const RunnableCase made = complete_case("evaluation_in_pieces");
  std::vector<std::int64_t> peaks;
  for (const char* samples : {"40", "400"}) {
    const fs::path output = made.folder / samples;
    const Ended ended =
        run_training(made, {.output = output,
                            .changes = {std::string("max_samples=") + samples, "dataset=held_out",
                                        "max_steps=2", "underkeel.threads=2"}});
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    const auto memory = memory_of(output);
    peaks.push_back(measured(memory, "evaluate"));
    EXPECT_LE(peaks.back(), measured(memory, "micro.first"));
    // Pieces of logits, less than one batch of them whole.
    EXPECT_LT(peaks.back(), std::int64_t{2} * 512 * 30'522 * 4);
  }

  // The largest of more batches may have a few tokens more.
  EXPECT_NEAR(static_cast<double>(peaks[0]), static_cast<double>(peaks[1]),
              0.01 * static_cast<double>(peaks[0]));
}

TEST(LossOfALargeVocabulary, AddsTheSameMemoryAtEveryLength) {
  const RunnableCase large = complete_case("large_vocabulary", {.with_weights = false});
  const spec::ModelSpec model = value_of(spec::read_model_config(large.model));
  spec::ModelSpec small = model;
  small.vocabulary = 256;
  std::vector<std::int64_t> added;
  for (const char* cutoff : {"512", "1024", "2048", "4096"}) {
    const auto run =
        value_of(spec::read_run_file(large.run_file, {std::string("cutoff_len=") + cutoff}));
    const auto bytes = [&](const spec::ModelSpec& of) {
      const plan::Plan plan = planner::make_plan(planner::request_of(of, run, 1));
      return plan.layout.size_bytes[static_cast<std::size_t>(plan::MemorySpace::device)];
    };
    added.push_back(bytes(model) - bytes(small));
  }

  EXPECT_THAT(added,
              Each(testing::AllOf(testing::Ge(added[0] / 100 * 97), Le(added[0] / 100 * 103))));
}

}  // namespace
}  // namespace underkeel::test
