// What an error says of its place in the plan.

#include "exec/error_place.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/short_run.h"

namespace underkeel::test {
namespace {

/// A disk that is lost without a word about the place.
class LostSink final : public exec::StateSink {
 public:
  Result<void> write(const plan::UnitTensor&, plan::StatePart, std::int64_t, std::int64_t, DType,
                     const void*) override {
    return fail(ErrorCode::io, "the disk is gone");
  }
};

TEST(ErrorPlace, NamesTheOperationItsBuffersAndThePlan) {
  plan::Plan plan = planner::make_plan(base_request(1));
  plan.hash = 0xc0ffee;
  EngineOptions options;
  options.kernels = &kernels::cpu_kernels();

  const auto save = [&] {
    run_ranks(plan, options, [&](Rank& rank) {
      LostSink sink;
      exec::Inputs inputs;
      inputs.sink = &sink;
      value_of(rank.executor.run(plan::SegmentKind::save, inputs));
      value_of(rank.executor.drain());
    });
  };

  EXPECT_THAT(save, testing::ThrowsMessage<std::runtime_error>(testing::ContainsRegex(
                        "segment save, op [0-9]+ write .+ on .*staging.+; plan 0000000000c0ffee")));
}

TEST(ErrorPlace, NamesBothEndsOfWhatWasLaunchedAsOne) {
  const plan::Plan plan = planner::make_plan(base_request(1));
  const plan::Segment& segment = *plan.schedule.find(plan::SegmentKind::update);

  const std::string place = exec::place_of(plan, segment, 1, 3);

  EXPECT_EQ(place, fmt::format("segment update, ops 1 {} to 3 {}, launched as one; plan {:016x}",
                               segment.ops[1].label, segment.ops[3].label, plan.hash));
}

}  // namespace
}  // namespace underkeel::test
