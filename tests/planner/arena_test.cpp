// Places in the arena: people lost a large buffer for good when small ones that stay were put where it had been.

#include <gtest/gtest.h>

#include "base/units.h"
#include "planner/builder.h"

namespace underkeel::planner {
namespace {

// In every step a buffer of 11,100 MiB is taken, given back, taken and given back; 40 of 17 MiB that stay come in between.
TEST(Arena, KeepsThePlaceOfALargeBufferApartFromSmallOnesThatStay) {
  plan::Schedule schedule;
  schedule.lanes = {{"compute"}, {"collective"}, {"save_copy"}, {"save_disk"}};
  const auto add = [&](std::string name, std::int64_t mebibytes, bool stays) {
    schedule.buffers.push_back(
        {.name = std::move(name), .persistent = stays, .size_bytes = mebibytes * mebibyte});
    return BufferId{static_cast<std::uint32_t>(schedule.buffers.size() - 1)};
  };
  plan::Segment segment{.kind = plan::SegmentKind::update};
  const auto use = [&](BufferId id) {
    const std::int64_t elements = schedule.buffer(id).size_bytes / 4;
    segment.ops.push_back(
        compute({.kernel = plan::Kernel::fill,
                 .operands = {fixed(id, plan::Access::write, DType::f32, 1, elements)}},
                "fill " + schedule.buffer(id).name));
  };
  const BufferId first = add("large", 11'100, false);
  use(first);
  std::vector<BufferId> small;
  for (int i = 0; i < 40; ++i) {
    small.push_back(add("small." + std::to_string(i), 17, true));
    use(small.back());
  }
  const BufferId second = add("large again", 11'100, false);
  use(second);
  place_lifetimes(schedule, segment);
  schedule.segments.push_back(std::move(segment));

  const plan::ArenaLayout layout = lay_out_arenas(schedule, 256);

  EXPECT_EQ(layout.size_bytes[index(plan::MemorySpace::device)], 11'780 * mebibyte);
  EXPECT_EQ(layout.offset_bytes[index(first)], 680 * mebibyte);
  EXPECT_EQ(layout.offset_bytes[index(second)], 680 * mebibyte);
  for (const BufferId id : small) EXPECT_LT(layout.offset_bytes[index(id)], 680 * mebibyte);
}

}  // namespace
}  // namespace underkeel::planner
