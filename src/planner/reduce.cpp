// Reduces each unit's micro-step gradient over ranks once it is complete, and adds it to its home.
// Needs: a micro-step that writes whole units' micro_gradients. Gives: AllReduce (stage 0) or
// ReduceScatter (1-3), and Accumulate. Every stage reduces after every micro-step, in rank order, so
// that sums do not depend on the stage. The addition of one unit follows the reduction of the next, so
// that the compute lane does not stand still for it.
// GPUs: one ReduceScatter at every stage that adds to the home as it sums; where the home is whole (0), the update
// gathers it (docs/decisions/0021).

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/uses.h"
#include "planner/builder.h"
#include "tensor/shard.h"

namespace underkeel::planner {

namespace {

// Elements that travel at once when the run does not say: 16 MiB of f32, and on GPUs, whose links are faster than
// a launch is short, 128 MiB.
constexpr std::int64_t default_bucket_elements = 4 * mebibyte;
constexpr std::int64_t default_gpu_bucket_elements = 32 * mebibyte;

BufferId add_staging(Builder& builder) {
  const Request& request = builder.request;
  std::int64_t largest_shard = 0;
  for (const plan::Unit& unit : builder.schedule.units)
    largest_shard = std::max(largest_shard, unit.shard_elements);
  const std::int64_t bucket = request.bounds.reduce_bucket_elements.value_or(
      request.on_gpu ? default_gpu_bucket_elements : default_bucket_elements);
  const std::int64_t chunk =
      std::clamp<std::int64_t>(bucket / request.world_size, 1024, largest_shard);
  return builder.add_buffer(
      {.name = "reduce.staging",
       .kind = plan::BufferKind::staging,
       .size_bytes = reduce_staging_bytes(request.world_size, chunk, DType::f32)});
}

}  // namespace

void reduce_gradients(Builder& builder, std::vector<Op>& ops, bool first) {
  const Request& request = builder.request;
  const bool several = request.world_size > 1;
  const BufferId staging = several ? add_staging(builder) : plan::no_buffer;

  std::unordered_map<BufferId, UnitId> unit_of;
  for (std::size_t i = 0; i < builder.unit_buffers.size(); ++i)
    unit_of[builder.unit_buffers[i].micro_gradient] = UnitId{static_cast<std::uint32_t>(i)};
  std::vector<std::size_t> complete(builder.schedule.units.size(), 0);
  for (std::size_t i = 0; i < ops.size(); ++i)
    plan::for_each_use(builder.schedule, ops[i], [&](BufferId id, plan::Access) {
      if (const auto found = unit_of.find(id); found != unit_of.end())
        complete[index(found->second)] = i;
    });

  const auto reduction = [&](UnitId id) {
    const plan::Unit& unit = builder.schedule.unit(id);
    const BufferId full = builder.unit_buffers[index(id)].micro_gradient;
    Op op;
    op.label = fmt::format("reduce {}", unit.name);
    if (request.on_gpu) {
      op.body = plan::ReduceScatter{.unit = id,
                                    .full = full,
                                    .staging = staging,
                                    .type = unit.micro_gradient_type,
                                    .into = unit.gradient,
                                    .first = first};
    } else if (request.stage == 0) {
      op.body = plan::AllReduce{
          .unit = id, .full = full, .staging = staging, .type = unit.micro_gradient_type};
    } else {
      op.body = plan::ReduceScatter{
          .unit = id, .full = full, .staging = staging, .type = unit.micro_gradient_type};
    }
    return op;
  };
  const auto accumulation = [&](UnitId id) {
    const plan::Unit& unit = builder.schedule.unit(id);
    Op op;
    op.label = fmt::format("{} gradient of {}", first ? "set" : "add", unit.name);
    op.body = plan::Accumulate{.unit = id,
                               .from = builder.unit_buffers[index(id)].micro_gradient,
                               .into = unit.gradient,
                               .whole = request.stage == 0 || !several,
                               .first = first};
    return op;
  };

  std::vector<Op> merged;
  merged.reserve(ops.size() + 2 * complete.size());
  std::vector<UnitId> waiting;
  const auto add_waiting = [&] {
    for (const UnitId id : waiting) merged.push_back(accumulation(id));
    waiting.clear();
  };
  std::vector<std::vector<UnitId>> ends_at(ops.size());
  for (std::size_t i = 0; i < complete.size(); ++i)
    ends_at[complete[i]].push_back(UnitId{static_cast<std::uint32_t>(i)});
  for (std::size_t i = 0; i < ops.size(); ++i) {
    merged.push_back(std::move(ops[i]));
    if (ends_at[i].empty()) continue;
    if (several)
      for (const UnitId id : ends_at[i]) merged.push_back(reduction(id));
    if (several && request.on_gpu) continue;  // it adds to the home as well
    add_waiting();
    waiting = ends_at[i];
    if (!several || !request.bounds.overlap_comm) add_waiting();
  }
  add_waiting();
  ops = std::move(merged);
}

}  // namespace underkeel::planner
