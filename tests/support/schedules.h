#pragma once
// Small schedules made by hand, and the ways that tests break them.

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "plan/plan.h"
#include "plan/uses.h"

namespace underkeel::test {

using plan::BufferId;
using plan::EntryId;
using plan::LaneId;
using plan::OpIndex;
using plan::SegmentKind;
using plan::UnitId;

inline const std::vector<plan::Lane> usual_lanes = {
    {"compute"}, {"collective"}, {"save copy"}, {"save disk"}};

/// Appends to a schedule; buffers are (rows, columns) of f32.
struct ScheduleBuilder {
  plan::Schedule schedule{.lanes = usual_lanes};

  BufferId buffer(std::string name, std::int64_t elements, bool persistent = false,
                  plan::BufferKind kind = plan::BufferKind::activations, DType type = DType::f32) {
    schedule.buffers.push_back({.name = std::move(name),
                                .kind = kind,
                                .persistent = persistent,
                                .type = type,
                                .size_bytes = bytes_of(type, elements)});
    return BufferId{static_cast<std::uint32_t>(schedule.buffers.size() - 1)};
  }
  EntryId entry(std::string name) {
    schedule.entries.push_back({std::move(name)});
    return EntryId{static_cast<std::uint32_t>(schedule.entries.size() - 1)};
  }
  void segment(SegmentKind kind, std::int64_t max_rows = 0) {
    schedule.segments.push_back({.kind = kind, .max_rows = max_rows});
  }
  /// Adds to the latest segment.
  OpIndex add(LaneId lane, std::string label, plan::OpBody body, std::vector<OpIndex> after = {}) {
    auto& ops = schedule.segments.back().ops;
    plan::Op op;
    op.lane = lane;
    op.after = std::move(after);
    op.body = std::move(body);
    op.label = std::move(label);
    ops.push_back(std::move(op));
    return OpIndex{static_cast<std::uint32_t>(ops.size() - 1)};
  }
  plan::Op& last() { return schedule.segments.back().ops.back(); }

  OpIndex acquire(LaneId lane, BufferId id, std::vector<OpIndex> after = {}) {
    return add(lane, "acquire " + schedule.buffer(id).name, plan::Acquire{id}, std::move(after));
  }
  OpIndex release(LaneId lane, BufferId id, std::vector<OpIndex> after = {}) {
    return add(lane, "release " + schedule.buffer(id).name, plan::Release{id}, std::move(after));
  }
  /// A computation that reads and writes whole buffers.
  OpIndex compute(LaneId lane, std::string label, std::vector<BufferId> reads,
                  std::vector<BufferId> writes, std::vector<OpIndex> after = {}) {
    plan::Compute body;
    for (const BufferId id : reads) body.operands.push_back(whole(id, plan::Access::read));
    for (const BufferId id : writes) body.operands.push_back(whole(id, plan::Access::write));
    return add(lane, std::move(label), std::move(body), std::move(after));
  }
  plan::Operand whole(BufferId id, plan::Access access) const {
    const plan::Buffer& touched = schedule.buffer(id);
    const std::int64_t elements = touched.size_bytes * 8 / bits_of(touched.type);
    return {.buffer = id,
            .access = access,
            .type = touched.type,
            .rows = {.count = 1},
            .columns = elements,
            .row_stride = elements};
  }
};

inline OpIndex find_op(const plan::Segment& segment, std::string_view label) {
  for (std::size_t i = 0; i < segment.ops.size(); ++i)
    if (segment.ops[i].label == label) return OpIndex{static_cast<std::uint32_t>(i)};
  UK_CHECK(false, "no operation " + std::string(label));
}
inline plan::Segment& segment_of(plan::Schedule& schedule, SegmentKind kind) {
  for (plan::Segment& segment : schedule.segments)
    if (segment.kind == kind) return segment;
  UK_CHECK(false, "no such segment");
}
inline BufferId find_buffer(const plan::Schedule& schedule, std::string_view name) {
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i)
    if (schedule.buffers[i].name == name) return BufferId{static_cast<std::uint32_t>(i)};
  UK_CHECK(false, "no buffer " + std::string(name));
}

inline void append(plan::Segment& segment, LaneId lane, plan::OpBody body) {
  plan::Op op;
  op.lane = lane;
  op.body = std::move(body);
  segment.ops.push_back(std::move(op));
}
/// Removes operation `at`; edges to it go, later indices move down.
inline void drop_op(plan::Segment& segment, OpIndex at) {
  segment.ops.erase(segment.ops.begin() + static_cast<std::ptrdiff_t>(plan::index(at)));
  for (plan::Op& op : segment.ops) {
    std::erase(op.after, at);
    for (OpIndex& before : op.after)
      if (before > at) before = OpIndex{static_cast<std::uint32_t>(plan::index(before) - 1)};
  }
}
/// Removes the edge that makes `waiter` come after `before`.
inline void drop_wait(plan::Segment& segment, std::string_view waiter, std::string_view before) {
  plan::Op& op = segment.ops[plan::index(find_op(segment, waiter))];
  const std::size_t removed = std::erase(op.after, find_op(segment, before));
  UK_CHECK(removed == 1, "no such edge");
}

/// Forward and backward of two layers whose weights are gathered on the collective lane while the
/// other layer computes, and whose gradients are reduced and added to their homes; then an update,
/// and a save that streams each layer's weights out under the next micro-step.
inline plan::Schedule two_layer_zero3() {
  constexpr auto compute = plan::lanes::compute;
  constexpr auto collective = plan::lanes::collective;
  constexpr auto save_copy = plan::lanes::save_copy;
  constexpr auto save_disk = plan::lanes::save_disk;
  constexpr std::int64_t rows = 8;
  constexpr std::int64_t width = 16;
  constexpr std::int64_t elements = 256;  // of a layer
  constexpr std::int64_t shard = 128;
  ScheduleBuilder b;
  b.schedule.shape_classes = {rows};

  const BufferId tokens = b.buffer("tokens", rows, true, plan::BufferKind::staging, DType::i32);
  const BufferId step_values = b.buffer("step_values", 8, true, plan::BufferKind::staging);
  const BufferId totals = b.buffer("totals", 2, true, plan::BufferKind::staging, DType::f64);
  const BufferId ring = b.buffer("save ring", shard, true, plan::BufferKind::staging);
  std::vector<BufferId> full, micro_gradient, output, reduce_staging;
  std::vector<UnitId> units;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string name = "layers." + std::to_string(layer);
    plan::Unit unit{.name = name, .element_count = elements, .shard_elements = shard};
    unit.weights = b.buffer(name + ".weights", shard, true, plan::BufferKind::weights);
    unit.moment1 = b.buffer(name + ".exp_avg", shard, true, plan::BufferKind::optimizer);
    unit.moment2 = b.buffer(name + ".exp_avg_sq", shard, true, plan::BufferKind::optimizer);
    unit.gradient = b.buffer(name + ".gradient", shard, true, plan::BufferKind::gradients);
    unit.weights_sharded = unit.optimizer_sharded = unit.gradient_sharded = true;
    full.push_back(b.buffer(name + ".full", elements, false, plan::BufferKind::gathered));
    micro_gradient.push_back(
        b.buffer(name + ".micro_gradient", elements, false, plan::BufferKind::gradients));
    reduce_staging.push_back(
        b.buffer(name + ".reduce_staging", elements, false, plan::BufferKind::staging));
    output.push_back(b.buffer(name + ".output", rows * width));
    b.schedule.units.push_back(unit);
    units.push_back(UnitId{static_cast<std::uint32_t>(layer)});
  }
  const auto& all_units = b.schedule.units;

  b.segment(SegmentKind::load);
  for (int layer = 0; layer < 2; ++layer) {
    const auto l = static_cast<std::size_t>(layer);
    const plan::StatePiece piece{units[l], plan::StatePart::weights, 0, shard};
    b.add(compute, "load " + all_units[l].name, plan::Load{piece, ring});
    b.add(compute, "copy in " + all_units[l].name, plan::CopyIn{piece, ring, all_units[l].weights});
    b.compute(compute, "zero state " + all_units[l].name, {},
              {all_units[l].moment1, all_units[l].moment2});
    std::get<plan::Compute>(b.last().body).kernel = plan::Kernel::fill;
  }

  b.segment(SegmentKind::micro_only, rows);
  const auto gather = [&](std::size_t l, std::string suffix, std::vector<OpIndex> after) {
    b.acquire(collective, full[l], std::move(after));
    b.last().label += suffix;
    return b.add(collective, "gather " + all_units[l].name + suffix,
                 plan::Gather{units[l], all_units[l].weights, full[l], DType::f32});
  };
  const OpIndex gather0 = gather(0, "", {});
  const OpIndex gather1 = gather(1, "", {});
  b.add(compute, "feed tokens", plan::Feed{plan::Input::tokens, tokens});
  b.compute(compute, "zero totals", {}, {totals});
  b.acquire(compute, output[0]);
  b.compute(compute, "forward layers.0", {tokens, full[0]}, {output[0]}, {gather0});
  const OpIndex forward0_end = b.release(compute, full[0]);
  b.acquire(compute, output[1]);
  b.compute(compute, "forward layers.1", {output[0], full[1]}, {output[1]}, {gather1});
  b.compute(compute, "loss layers.1", {output[1]}, {totals});
  const OpIndex gather0_again = gather(0, " again", {forward0_end});
  b.acquire(compute, micro_gradient[1]);
  const OpIndex backward1 =
      b.compute(compute, "backward layers.1", {output[0], output[1], full[1]}, {micro_gradient[1]});
  b.release(compute, full[1]);
  b.release(compute, output[1]);
  const auto reduce = [&](std::size_t l, OpIndex backward) {
    b.acquire(collective, reduce_staging[l], {backward});
    const OpIndex reduced =
        b.add(collective, "reduce " + all_units[l].name,
              plan::ReduceScatter{units[l], micro_gradient[l], reduce_staging[l], DType::f32});
    b.release(collective, reduce_staging[l]);
    b.add(compute, "accumulate " + all_units[l].name,
          plan::Accumulate{.unit = units[l],
                           .from = micro_gradient[l],
                           .into = all_units[l].gradient,
                           .first = true},
          {reduced});
    b.release(compute, micro_gradient[l]);
  };
  reduce(1, backward1);
  b.acquire(compute, micro_gradient[0]);
  const OpIndex backward0 = b.compute(compute, "backward layers.0", {tokens, output[0], full[0]},
                                      {micro_gradient[0]}, {gather0_again});
  b.release(compute, full[0]);
  b.last().label += " again";
  b.release(compute, output[0]);
  reduce(0, backward0);

  const EntryId save[] = {b.entry("save layers.0"), b.entry("save layers.1")};
  b.segment(SegmentKind::update);
  b.add(compute, "feed step values", plan::Feed{plan::Input::step_values, step_values});
  for (std::size_t l = 0; l < 2; ++l) {
    b.add(compute, "update " + all_units[l].name,
          plan::Update{
              .unit = units[l], .gradient = all_units[l].gradient, .step_values = step_values});
    b.last().after_entry = {save[l]};
  }

  b.segment(SegmentKind::save);
  OpIndex written{};
  for (std::size_t l = 0; l < 2; ++l) {
    const plan::StatePiece piece{units[l], plan::StatePart::weights, 0, shard};
    const OpIndex copied = b.add(save_copy, "copy out " + all_units[l].name,
                                 plan::CopyOut{piece, all_units[l].weights, ring},
                                 l == 0 ? std::vector<OpIndex>{} : std::vector<OpIndex>{written});
    b.last().entry = save[l];
    if (l == 0) b.last().after_entry = {save[1]};
    written = b.add(save_disk, "save " + all_units[l].name, plan::Save{piece, ring}, {copied});
    b.last().entry = save[l];
  }

  b.schedule.program.steps = {{SegmentKind::load, SegmentKind::micro_only},
                              {SegmentKind::micro_only, SegmentKind::update},
                              {SegmentKind::update, SegmentKind::micro_only},
                              {SegmentKind::update, SegmentKind::save},
                              {SegmentKind::save, SegmentKind::micro_only}};
  return b.schedule;
}

/// A layout of one block in which nothing shares bytes.
inline plan::ArenaLayout apart(const plan::Schedule& schedule, std::int64_t alignment_bytes = 64) {
  plan::ArenaLayout layout{.alignment_bytes = alignment_bytes};
  for (const plan::Buffer& buffer : schedule.buffers) {
    std::int64_t& size_bytes = layout.size_bytes[plan::index(buffer.space)];
    layout.offset_bytes.push_back(size_bytes);
    size_bytes += (buffer.size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  }
  return layout;
}

}  // namespace underkeel::test
