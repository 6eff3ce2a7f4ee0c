// The segments that move state between disk and its homes: load, resume, save.
// Needs: units with homes. Gives: every rank reads and writes its own shard, piece by piece, through a
// fixed ring of staging buffers; whole homes are then gathered. Nothing is ever whole in staging, and a
// save needs the same bytes whether it runs or not, since its ring lives for the whole run.

#include <algorithm>
#include <array>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "base/units.h"
#include "planner/builder.h"
#include "planner/steps_alone.h"

namespace underkeel::planner {

namespace {

using plan::BufferKind;
using plan::StatePart;

BufferId home_of(const plan::Unit& unit, StatePart part) {
  switch (part) {
    case StatePart::weights:
      return unit.weights;
    case StatePart::master:
      return unit.master;
    case StatePart::moment1:
      return unit.moment1;
    case StatePart::moment2:
      return unit.moment2;
  }
  return plan::no_buffer;
}

bool is_sharded(const plan::Unit& unit, StatePart part) {
  return part == StatePart::weights ? unit.weights_sharded : unit.optimizer_sharded;
}

// About five hundred pieces per part of a rank's state, within 256 Ki and 16 Mi elements: a large model is read from
// memory by all threads at once, which takes about as long to begin as to read a megabyte.
std::int64_t piece_elements(const plan::Schedule& schedule) {
  std::int64_t total = 0;
  std::int64_t largest = 1;
  for (const plan::Unit& unit : schedule.units) {
    total += unit.shard_elements;
    largest = std::max(largest, unit.shard_elements);
  }
  const std::int64_t piece = std::clamp<std::int64_t>(total / 512, 256 * kibibyte, 16 * mebibyte);
  return std::min(round_up(piece, 1024), largest);
}

class StateSegments {
 public:
  explicit StateSegments(Builder& builder)
      : b_(builder), piece_elements_(piece_elements(builder.schedule)) {
    for (std::size_t i = 0; i < ring_.size(); ++i)
      ring_[i] = b_.add_buffer({.name = fmt::format("state.staging.{}", i),
                                .space = plan::MemorySpace::host,
                                .kind = BufferKind::staging,
                                .persistent = true,
                                .size_bytes = bytes_of(DType::f32, piece_elements_)});
  }

  /// Weights from a model folder (or made from the seed); moments start at zero.
  void build_load() {
    plan::Segment segment{.kind = plan::SegmentKind::load};
    for_each_unit([&](UnitId id, const plan::Unit& unit) {
      load_part(segment.ops, id, StatePart::weights);
      gather_whole(segment.ops, id, StatePart::weights);
      if (unit.master != plan::no_buffer) gather_whole(segment.ops, id, StatePart::master);
      for (const StatePart part : {StatePart::moment1, StatePart::moment2})
        if (home_of(unit, part) != plan::no_buffer) clear(segment.ops, unit, part);
    });
    b_.schedule.segments.push_back(std::move(segment));
  }

  /// Everything from a checkpoint: weights (f32), or master copies from which weights are rounded.
  void build_resume() {
    plan::Segment segment{.kind = plan::SegmentKind::resume};
    for_each_unit([&](UnitId id, const plan::Unit& unit) {
      const bool has_master = unit.master != plan::no_buffer;
      load_part(segment.ops, id, has_master ? StatePart::master : StatePart::weights);
      if (has_master) gather_whole(segment.ops, id, StatePart::master);
      gather_whole(segment.ops, id, StatePart::weights);
      for (const StatePart part : {StatePart::moment1, StatePart::moment2}) {
        load_part(segment.ops, id, part);
        gather_whole(segment.ops, id, part);
      }
    });
    b_.schedule.segments.push_back(std::move(segment));
  }

  void build_save() {
    plan::Segment segment{.kind = plan::SegmentKind::save};
    const plan::EntryId disk = add_entry("save to disk");
    std::size_t slot = 0;
    for_each_unit([&](UnitId id, const plan::Unit& unit) {
      const plan::EntryId copy = add_entry(fmt::format("save of {}", unit.name));
      for (const StatePart part :
           {StatePart::weights, StatePart::master, StatePart::moment1, StatePart::moment2}) {
        const BufferId home = home_of(unit, part);
        if (home == plan::no_buffer) continue;
        for_each_piece(id, unit, part, [&](const plan::StatePiece& piece) {
          const BufferId staging = ring_[slot++ % ring_.size()];
          push(segment.ops, plan::CopyOut{.piece = piece, .state = home, .staging = staging},
               "copy out", piece, copy);
          push(segment.ops, plan::Save{.piece = piece, .staging = staging}, "write", piece, disk);
        });
      }
    });
    b_.schedule.segments.push_back(std::move(segment));
  }

 private:
  template <class F>
  void for_each_unit(F&& call) {
    for (std::size_t i = 0; i < b_.schedule.units.size(); ++i)
      call(UnitId{static_cast<std::uint32_t>(i)}, b_.schedule.units[i]);
  }

  template <class F>
  void for_each_piece(UnitId id, const plan::Unit& unit, StatePart part, F&& call) {
    for (std::int64_t begin = 0; begin < unit.shard_elements; begin += piece_elements_)
      call(plan::StatePiece{.unit = id,
                            .part = part,
                            .begin = begin,
                            .end = std::min(begin + piece_elements_, unit.shard_elements)});
  }

  plan::EntryId add_entry(std::string name) {
    b_.schedule.entries.push_back({.name = std::move(name)});
    return plan::EntryId{static_cast<std::uint32_t>(b_.schedule.entries.size() - 1)};
  }

  void push(std::vector<Op>& ops, plan::OpBody body, std::string_view what,
            const plan::StatePiece& piece, plan::EntryId entry = plan::no_entry) {
    const plan::Unit& unit = b_.schedule.unit(piece.unit);
    Op op;
    op.body = std::move(body);
    op.entry = entry;
    // Compiled: a plan has ten thousand of these.
    op.label = fmt::format(FMT_COMPILE("{} {}.{} {}-{}"), what, unit.name, name_of(piece.part),
                           piece.begin, piece.end);
    ops.push_back(std::move(op));
  }

  void load_part(std::vector<Op>& ops, UnitId id, StatePart part) {
    const plan::Unit& unit = b_.schedule.unit(id);
    std::size_t slot = 0;
    for_each_piece(id, unit, part, [&](const plan::StatePiece& piece) {
      const BufferId staging = ring_[slot++ % ring_.size()];
      push(ops, plan::Load{.piece = piece, .staging = staging, .state = home_of(unit, part)},
           "read", piece);
      push(ops, plan::CopyIn{.piece = piece, .staging = staging, .state = home_of(unit, part)},
           "copy in", piece);
      // Weights and master copy come from the same values: master exactly, weights rounded once.
      const bool twins = unit.master != plan::no_buffer &&
                         (part == StatePart::weights || part == StatePart::master);
      if (!twins) return;
      plan::StatePiece twin = piece;
      twin.part = part == StatePart::weights ? StatePart::master : StatePart::weights;
      push(ops,
           plan::CopyIn{.piece = twin,
                        .staging = staging,
                        .state = home_of(unit, twin.part),
                        .twin = home_of(unit, part)},
           "copy in", twin);
    });
  }

  // A home that is whole on every rank: each rank read its own shard, now they exchange them.
  void gather_whole(std::vector<Op>& ops, UnitId id, StatePart part) {
    const plan::Unit& unit = b_.schedule.unit(id);
    if (b_.request.world_size == 1 || is_sharded(unit, part)) return;
    const BufferId home = home_of(unit, part);
    Op op;
    op.body = plan::Gather{
        .unit = id, .shard = home, .full = home, .type = b_.schedule.buffer(home).type};
    op.label = fmt::format("gather {}.{}", unit.name, name_of(part));
    ops.push_back(std::move(op));
  }

  void clear(std::vector<Op>& ops, const plan::Unit& unit, StatePart part) {
    const BufferId home = home_of(unit, part);
    const std::int64_t elements = is_sharded(unit, part) ? unit.shard_elements : unit.element_count;
    ops.push_back(compute({.kernel = plan::Kernel::fill,
                           .operands = {fixed(home, plan::Access::write,
                                              b_.schedule.buffer(home).type, 1, elements)}},
                          fmt::format("clear {}.{}", unit.name, name_of(part))));
  }

  Builder& b_;
  std::int64_t piece_elements_;
  std::array<BufferId, staging_ring_size> ring_{};
};

}  // namespace

void add_state_ring(Builder& builder) {
  const StateSegments ring(builder);
}

void build_state_segments(Builder& builder) {
  StateSegments segments(builder);
  segments.build_load();
  if (!builder.request.train) return;
  segments.build_resume();
  if (builder.request.save) segments.build_save();
}

}  // namespace underkeel::planner
