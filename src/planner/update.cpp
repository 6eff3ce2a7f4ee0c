// The update segment: global norm, clipping, AdamW, and the gathers of weights that follow.
// Needs: units with homes. Gives: one sum of squares per unit and shard, added in rank order, so that
// the norm is the same at every stage; an update per unit; where state is sharded and weights are whole,
// a gather per unit that may still run when the next micro-step starts. f16 gradients are larger by the
// loss scale, which the clip factor takes out again; where any rank's are not finite no update changes anything.

#include <fmt/format.h>

#include "planner/builder.h"

namespace underkeel::planner {

namespace {

using plan::Access;
using plan::BufferKind;

Op make(plan::OpBody body, std::string label) {
  Op op;
  op.body = std::move(body);
  op.label = std::move(label);
  return op;
}

BufferId values(Builder& builder, std::string name, DType type, std::int64_t count) {
  return builder.add_buffer({.name = std::move(name),
                             .kind = BufferKind::workspace,
                             .type = type,
                             .size_bytes = bytes_of(type, count)});
}

}  // namespace

bool scales_loss(const Request& request) {
  return request.weight_type == DType::f16;
}

void build_update(Builder& builder, BufferId totals) {
  const Request& request = builder.request;
  plan::Schedule& schedule = builder.schedule;
  const auto unit_count = static_cast<std::int64_t>(schedule.units.size());
  const std::int64_t world = request.world_size;
  plan::Segment segment{.kind = plan::SegmentKind::update};
  std::vector<Op>& ops = segment.ops;

  const BufferId norms = values(builder, "norm.own", DType::f64, unit_count);
  const BufferId all_norms = values(builder, "norm.all", DType::f64, world * unit_count);
  const BufferId all_totals = values(builder, "totals.all", DType::f64, world * plan::total_count);
  const BufferId clip = values(builder, "clip", DType::f32, 4);
  const BufferId step_values = values(builder, "step_values", DType::f32, 4);

  ops.push_back(
      make(plan::Feed{.input = plan::Input::step_values, .into = step_values}, "feed step_values"));
  ops.push_back(make(plan::Feed{.input = plan::Input::control, .into = totals}, "feed control"));
  ops.push_back(
      make(plan::GatherValues{.own = totals, .all = all_totals, .count = plan::total_count},
           "gather totals"));
  for (std::int64_t i = 0; i < unit_count; ++i) {
    const UnitId id{static_cast<std::uint32_t>(i)};
    const plan::Unit& unit = schedule.unit(id);
    ops.push_back(
        make(plan::SumSquares{.unit = id, .gradient = unit.gradient, .sums = norms, .slot = i},
             fmt::format("sum squares {}", unit.name)));
  }
  ops.push_back(make(plan::GatherValues{.own = norms, .all = all_norms, .count = unit_count},
                     "gather norms"));
  plan::Compute clipping{
      .kernel = plan::Kernel::clip_factor,
      .operands = {fixed(all_norms, Access::read, DType::f64, 1, world * unit_count),
                   fixed(clip, Access::write, DType::f32, 1, 4)},
      .value = static_cast<float>(request.optimizer.max_grad_norm)};
  if (scales_loss(request)) {
    const BufferId loss_scale = values(builder, "loss_scale", DType::f32, 1);
    ops.push_back(
        make(plan::Feed{.input = plan::Input::loss_scale, .into = loss_scale}, "feed loss_scale"));
    clipping.operands.push_back(fixed(loss_scale, Access::read, DType::f32, 1, 1));
  }
  ops.push_back(compute(std::move(clipping), "clip factor"));
  // Micro-steps on GPUs leave the own part of the sum alone; under the updates of the units before it, a unit's parts
  // are put together once a window instead of in every micro-step.
  if (request.on_gpu && world > 1 && request.stage == 0)
    for (std::int64_t i = 0; i < unit_count; ++i) {
      const UnitId id{static_cast<std::uint32_t>(i)};
      const plan::Unit& unit = schedule.unit(id);
      ops.push_back(make(plan::Gather{.unit = id,
                                      .shard = unit.gradient,
                                      .full = unit.gradient,
                                      .type = schedule.buffer(unit.gradient).type},
                         fmt::format("gather gradient of {}", unit.name)));
    }
  for (std::int64_t i = 0; i < unit_count; ++i) {
    const UnitId id{static_cast<std::uint32_t>(i)};
    const plan::Unit& unit = schedule.unit(id);
    ops.push_back(
        make(plan::Update{.unit = id,
                          .gradient = unit.gradient,
                          .step_values = step_values,
                          .clip = clip,
                          .beta1 = request.optimizer.beta1,
                          .beta2 = request.optimizer.beta2,
                          .epsilon = static_cast<float>(request.optimizer.epsilon),
                          .weight_decay = unit.weight_decay
                                              ? static_cast<float>(request.optimizer.weight_decay)
                                              : 0.0f,
                          .rounds_at_random = !request.keeps_masters,
                          .seed = request.seed},
             fmt::format("update {}", unit.name)));
    if (!unit.optimizer_sharded || unit.weights_sharded) continue;
    Op gather = make(
        plan::Gather{
            .unit = id, .shard = unit.weights, .full = unit.weights, .type = builder.type()},
        fmt::format("gather {}", unit.name));
    // In turn on the compute lane, the next update would stand behind it: nothing is gained there.
    if (request.bounds.overlap_comm) {
      gather.entry = plan::EntryId{static_cast<std::uint32_t>(schedule.entries.size())};
      schedule.entries.push_back({.name = fmt::format("weights of {}", unit.name)});
    }
    ops.push_back(std::move(gather));
  }
  ops.push_back(
      make(plan::Publish{.output = plan::Output::totals, .from = all_totals}, "publish totals"));
  ops.push_back(make(plan::Publish{.output = plan::Output::clip, .from = clip}, "publish clip"));
  schedule.segments.push_back(std::move(segment));
}

void build_evaluate_end(Builder& builder, BufferId totals) {
  plan::Segment segment{.kind = plan::SegmentKind::evaluate_end};
  const BufferId all = values(builder, "evaluation.totals.all", DType::f64,
                              builder.request.world_size * plan::total_count);
  segment.ops.push_back(make(
      plan::GatherValues{.own = totals, .all = all, .count = plan::total_count}, "gather totals"));
  segment.ops.push_back(
      make(plan::Publish{.output = plan::Output::totals, .from = all}, "publish totals"));
  segment.ops.push_back(
      compute({.kernel = plan::Kernel::fill,
               .operands = {fixed(totals, Access::write, DType::f64, 1, plan::total_count)}},
              "clear totals"));
  builder.schedule.segments.push_back(std::move(segment));
}

}  // namespace underkeel::planner
