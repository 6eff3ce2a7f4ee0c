// The guard layout: the same bits where nothing is read before it is written, and an error where something is written
// beyond a buffer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/short_run.h"

namespace underkeel::test {
namespace {

planner::Request guarded(planner::Request request) {
  request.guards_buffers = true;
  return request;
}

TEST(Guard, GivesTheSameBitsAtEveryStage) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const int stage : {0, 3}) {
      SCOPED_TRACE(testing::Message() << name_of(type) << ", stage " << stage);
      planner::Request request = base_request(2);
      request.weight_type = type;
      request.stage = stage;
      expect_equal(run(planner::make_plan(guarded(request)), {}, true),
                   run(planner::make_plan(request), {}, true));
    }
}

TEST(Guard, LaysEveryBufferOutApart) {
  const plan::Plan plan = planner::make_plan(guarded(base_request(1)));
  std::map<std::pair<plan::MemorySpace, std::int64_t>, std::int64_t> ends;  // by offset
  for (std::size_t i = 0; i < plan.schedule.buffers.size(); ++i) {
    const plan::Buffer& buffer = plan.schedule.buffers[i];
    const std::int64_t offset = plan.layout.offset_bytes[i];
    EXPECT_TRUE(ends.emplace(std::pair(buffer.space, offset), offset + buffer.size_bytes).second)
        << buffer.name;
  }
  for (auto at = ends.begin(), next = std::next(at); next != ends.end(); at = next++) {
    if (at->first.first != next->first.first) continue;
    EXPECT_GE(next->first.second, at->second + plan.layout.guard_bytes);
  }
}

// The moments are cleared before the first step: here by a kernel that clears one element too many.
TEST(Guard, NamesABufferBehindWhichSomethingWasWritten) {
  kernels::KernelTable table = kernels::cpu_kernels();
  table.fill = [](const kernels::FillArgs& asked, device::Queue& queue) {
    kernels::FillArgs args = asked;
    args.to.columns += 1;
    kernels::cpu_kernels().fill(args, queue);
  };
  EngineOptions options;
  options.kernels = &table;

  const auto try_it = [&] { run(planner::make_plan(guarded(base_request(1))), options); };

  EXPECT_THAT(try_it, testing::ThrowsMessage<std::runtime_error>(
                          testing::HasSubstr("something wrote behind")));
}

}  // namespace
}  // namespace underkeel::test
