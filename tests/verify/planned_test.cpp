// The planner's own plans are sound.

#include "support/planned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verify/verify.h"

namespace underkeel::verify {
namespace {

struct Case {
  int stage;
  std::int64_t world_size;
  spec::Recompute recompute;
  bool overlap;
  DType type = DType::f32;
};

class VerifyPlanned : public testing::TestWithParam<Case> {};

TEST_P(VerifyPlanned, ThePlannersPlansAreSound) {
  planner::Request request = test::two_layer_request(GetParam().stage, GetParam().world_size);
  request.recompute = GetParam().recompute;
  request.bounds.overlap_comm = GetParam().overlap;
  request.weight_type = GetParam().type;

  const plan::Plan plan = planner::make_plan(request);

  for (const Violation& violation : check(plan)) ADD_FAILURE() << to_text(plan.schedule, violation);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int stage : {0, 1, 2, 3})
    for (const std::int64_t world_size : {1, 2, 3})
      for (const spec::Recompute recompute :
           {spec::Recompute::none, spec::Recompute::cheap, spec::Recompute::block})
        for (const bool overlap : {true, false})
          all.push_back({stage, world_size, recompute, overlap});
  // With master copies.
  for (const int stage : {0, 1, 2, 3})
    all.push_back({stage, 2, spec::Recompute::block, true, DType::bf16});
  return all;
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  const char* recompute = info.param.recompute == spec::Recompute::none    ? "none"
                          : info.param.recompute == spec::Recompute::cheap ? "cheap"
                                                                           : "block";
  return "stage" + std::to_string(info.param.stage) + "_ranks" +
         std::to_string(info.param.world_size) + "_" + recompute +
         (info.param.overlap ? "_overlapped_" : "_in_turn_") +
         std::string(name_of(info.param.type));
}

INSTANTIATE_TEST_SUITE_P(Stages, VerifyPlanned, testing::ValuesIn(cases()), name_of_case);

}  // namespace
}  // namespace underkeel::verify
