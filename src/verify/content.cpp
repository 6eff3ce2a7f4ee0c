#include "verify/content.h"

#include <algorithm>
#include <vector>

#include "plan/uses.h"

namespace underkeel::verify {

namespace {

using plan::Access;
using plan::BufferId;
using plan::OpIndex;

/// Whether some ranks, or some steps, leave the operation out.
bool is_conditional(const plan::Op& op) {
  return op.when != plan::no_buffer || !op.on.empty();
}
bool same_condition(const plan::Op& a, const plan::Op& b) {
  return a.when == b.when && a.on == b.on;
}

/// Operations that fill a buffer piece by piece and so begin its content, though they keep the rest.
bool fills_by_pieces(const plan::Op& op) {
  return std::holds_alternative<plan::SumSquares>(op.body) ||
         std::holds_alternative<plan::CopyIn>(op.body);
}

bool is_sharded(const plan::Unit& unit, plan::StatePart part) {
  return part == plan::StatePart::weights ? unit.weights_sharded : unit.optimizer_sharded;
}

/// How much of a buffer is up to date on a rank.
enum class Extent : std::uint8_t { whole, own_part };

/// Calls visit(buffer, extent) for what `op` leaves in buffers that it writes, with several ranks.
/// Buffers that are not named stay as they were.
template <class Visit>
void for_each_left(const plan::Schedule& schedule, const plan::Op& op, Visit&& visit) {
  const auto unless = [](bool sharded) { return sharded ? Extent::whole : Extent::own_part; };
  std::visit(
      plan::detail::Overload{
          [&](const plan::Gather& body) { visit(body.full, Extent::whole); },
          [&](const plan::ReduceScatter& body) {
            visit(body.full, Extent::own_part);
            if (body.into != plan::no_buffer)
              visit(body.into, unless(schedule.unit(body.unit).gradient_sharded));
          },
          [&](const plan::AllReduce& body) { visit(body.full, Extent::whole); },
          [&](const plan::GatherValues& body) { visit(body.all, Extent::whole); },
          [&](const plan::Compute& body) {
            for (const plan::Operand& operand : body.operands)
              if (operand.buffer != plan::no_buffer && operand.access == Access::write)
                visit(operand.buffer, Extent::whole);
          },
          [&](const plan::Accumulate& body) {
            visit(body.into,
                  body.whole ? Extent::whole : unless(schedule.unit(body.unit).gradient_sharded));
          },
          [&](const plan::Update& body) {
            const plan::Unit& unit = schedule.unit(body.unit);
            if (unit.weights != plan::no_buffer)
              visit(unit.weights,
                    unit.optimizer_sharded ? unless(unit.weights_sharded) : Extent::whole);
          },
          [&](const plan::CopyIn& body) {
            visit(body.state, unless(is_sharded(schedule.unit(body.piece.unit), body.piece.part)));
          },
          [&](const plan::Feed& body) { visit(body.into, Extent::whole); },
          [](const auto&) { /* writes nothing, or staging of its own */ }},
      op.body);
}

/// Whether `op` makes do with the rank's own part of `id`.
bool takes_own_part(const plan::Schedule& schedule, const plan::Op& op, BufferId id) {
  return std::visit(
      plan::detail::Overload{
          [&](const plan::Gather& body) { return id == body.shard; },
          [&](const plan::ReduceScatter& body) { return id == body.into; },
          [&](const plan::Accumulate& body) { return !body.whole; },
          [&](const plan::SumSquares& body) { return id == body.gradient; },
          [&](const plan::Update& body) { return schedule.unit(body.unit).optimizer_sharded; },
          [&](const plan::CopyOut& body) { return id == body.state; },
          [&](const plan::CopyIn& body) { return id == body.state || id == body.twin; },
          [](const auto&) { return false; }},
      op.body);
}

/// What is known of persistent buffers when each segment starts, whatever came before.
/// Empty without a program.
struct Before {
  std::vector<std::vector<bool>> written;   // by segment and buffer: on every way
  std::vector<std::vector<bool>> own_part;  // on some way only the own part is up to date
};

Before content_before(const plan::Schedule& schedule, bool several) {
  if (schedule.program.steps.empty()) return {};
  const std::size_t buffer_count = schedule.buffers.size();
  const std::size_t segment_count = schedule.segments.size();
  std::vector<std::vector<bool>> writes(segment_count, std::vector<bool>(buffer_count));
  std::vector<std::vector<bool>> leaves_own = writes;
  std::vector<std::vector<bool>> leaves_whole = writes;
  for (std::size_t s = 0; s < segment_count; ++s)
    for (const plan::Op& op : schedule.segments[s].ops) {
      const bool always = !is_conditional(op);
      if (always)
        plan::for_each_use(schedule, op, [&](BufferId id, Access access) {
          if (plan::writes(access)) writes[s][index(id)] = true;
        });
      if (several)
        for_each_left(schedule, op, [&](BufferId id, Extent extent) {
          if (extent == Extent::own_part) leaves_own[s][index(id)] = true;
          if (extent == Extent::own_part || always)
            leaves_whole[s][index(id)] = extent == Extent::whole;
          if (extent == Extent::whole && always) leaves_own[s][index(id)] = false;
        });
    }

  const auto position = [&](plan::SegmentKind kind) {
    return static_cast<std::size_t>(schedule.find(kind) - schedule.segments.data());
  };
  std::vector<bool> has_predecessor(segment_count);
  for (const plan::Program::Step& step : schedule.program.steps)
    has_predecessor[position(step.to)] = true;
  std::vector<std::size_t> persistent;
  for (std::size_t b = 0; b < buffer_count; ++b)
    if (schedule.buffers[b].persistent) persistent.push_back(b);
  Before before;
  for (std::size_t s = 0; s < segment_count; ++s) {
    // From "everything" downwards, so that a loop does not count against itself.
    before.written.emplace_back(buffer_count, static_cast<bool>(has_predecessor[s]));
    before.own_part.emplace_back(buffer_count, false);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const plan::Program::Step& step : schedule.program.steps) {
      const std::size_t from = position(step.from);
      const std::size_t to = position(step.to);
      for (const std::size_t b : persistent) {
        if (before.written[to][b] && !before.written[from][b] && !writes[from][b]) {
          before.written[to][b] = false;
          changed = true;
        }
        const bool own =
            leaves_own[from][b] || (before.own_part[from][b] && !leaves_whole[from][b]);
        if (own && !before.own_part[to][b]) {
          before.own_part[to][b] = true;
          changed = true;
        }
      }
    }
  }
  return before;
}

class ContentWalk {
 public:
  ContentWalk(const plan::Schedule& schedule, bool several, Report& report)
      : schedule_(schedule),
        several_(several),
        report_(report),
        before_(content_before(schedule, several)),
        contents_(schedule.buffers.size()) {}
  /// For lists on their own.
  ContentWalk(const plan::Schedule& schedule, Report& report)
      : schedule_(schedule), several_(false), report_(report), contents_(schedule.buffers.size()) {}

  void segment(std::size_t segment_index) {
    segment_index_ = segment_index;
    list(schedule_.segments[segment_index], {});
  }

  void list(const plan::Segment& segment, std::span<const BufferId> given) {
    segment_ = &segment;
    report_.start(segment_->kind);
    ++epoch_;
    for (const BufferId id : given) content_of(id).always_written = true;
    for (std::size_t i = 0; i < segment_->ops.size(); ++i) step(i);
  }

 private:
  struct Content {
    std::uint32_t epoch = 0;      // of the segment that this is about
    OpIndex written = no_op;      // the latest write in this life
    bool always_written = false;  // by a write that every rank does at every step
    Extent extent = Extent::whole;
    bool reduced = false;   // summed over ranks
    bool was_read = false;  // since the latest write
  };

  /// As the segment finds it, when this is the first time that it asks.
  Content& content_of(BufferId id) {
    Content& content = contents_[index(id)];
    if (content.epoch == epoch_) return content;
    content = {.epoch = epoch_};
    if (!schedule_.buffer(id).persistent) return content;
    // Without a program nobody can say what came before.
    content.always_written = before_.written.empty() || before_.written[segment_index_][index(id)];
    if (!before_.own_part.empty() && before_.own_part[segment_index_][index(id)])
      content.extent = Extent::own_part;
    return content;
  }

  void step(std::size_t i) {
    op_ = &segment_->ops[i];
    at_ = OpIndex{static_cast<std::uint32_t>(i)};
    if (const BufferId id = plan::acquired_by(*op_); id != plan::no_buffer) {
      content_of(id) = {.epoch = epoch_};
      return;
    }
    plan::for_each_use(schedule_, *op_, [&](BufferId id, Access access) {
      if (plan::reads(access)) check_read(id);
    });
    check_change();
    if (several_) check_sums();
    plan::for_each_use(schedule_, *op_, [&](BufferId id, Access access) {
      if (access == Access::read) content_of(id).was_read = true;
    });
    plan::for_each_use(schedule_, *op_, [&](BufferId id, Access access) {
      if (plan::writes(access)) record_write(id);
    });
    if (several_)
      for_each_left(schedule_, *op_, [&](BufferId id, Extent extent) {
        Content& content = content_of(id);
        if (extent == Extent::own_part || !is_conditional(*op_)) content.extent = extent;
      });
  }

  void check_read(BufferId id) {
    Content& content = content_of(id);
    if (!content.always_written && !fills_by_pieces(*op_)) {
      if (content.written == no_op) {
        report_.add(at_, id, "is read and nothing has written it");
        content.always_written = true;  // told once
      } else if (!same_condition(*op_, segment_->ops[index(content.written)])) {
        report_.add(at_, id, "is read where its write may be left out", content.written);
        content.always_written = true;
      }
    }
    if (content.extent == Extent::own_part && !takes_own_part(schedule_, *op_, id)) {
      report_.add(at_, id, "is read whole where only the rank's own part is up to date",
                  content.written);
      content.extent = Extent::whole;
    }
  }

  /// A value that is changed where it lies has one meaning for all its readers: the changed one. Sums
  /// that grow (accumulate) are read in between.
  void check_change() {
    const auto* compute = std::get_if<plan::Compute>(&op_->body);
    if (compute == nullptr || compute->accumulate || compute->accumulate_weight) return;
    for (const plan::Operand& operand : compute->operands) {
      if (operand.buffer == plan::no_buffer || operand.access != Access::read_write) continue;
      Content& content = content_of(operand.buffer);
      if (schedule_.buffer(operand.buffer).persistent || !content.was_read) continue;
      report_.add(at_, operand.buffer, "is changed in place after it was read");
      content.was_read = false;  // told once
    }
  }

  /// Gradients are summed over ranks once, then added.
  void check_sums() {
    const auto sum = [&](BufferId full) {
      Content& content = content_of(full);
      if (content.reduced) report_.add(at_, full, "is summed over ranks twice", content.written);
    };
    if (const auto* scatter = std::get_if<plan::ReduceScatter>(&op_->body)) sum(scatter->full);
    if (const auto* reduce = std::get_if<plan::AllReduce>(&op_->body)) sum(reduce->full);
    if (const auto* add = std::get_if<plan::Accumulate>(&op_->body))
      if (!content_of(add->from).reduced)
        report_.add(at_, add->from, "is added before it is summed over ranks",
                    content_of(add->from).written);
  }

  void record_write(BufferId id) {
    Content& content = content_of(id);
    content.written = at_;
    content.was_read = false;
    content.always_written = content.always_written || !is_conditional(*op_);
    content.reduced = std::holds_alternative<plan::ReduceScatter>(op_->body) ||
                      std::holds_alternative<plan::AllReduce>(op_->body);
  }

  const plan::Schedule& schedule_;
  const bool several_;
  Report& report_;
  const Before before_;
  const plan::Segment* segment_ = nullptr;
  std::size_t segment_index_ = 0;
  std::uint32_t epoch_ = 0;
  std::vector<Content> contents_;  // by buffer
  const plan::Op* op_ = nullptr;
  OpIndex at_ = no_op;
};

}  // namespace

void check_content(const plan::Schedule& schedule, std::optional<std::int64_t> world_size,
                   Report& report) {
  const bool several = world_size ? *world_size > 1
                                  : std::any_of(schedule.units.begin(), schedule.units.end(),
                                                [](const plan::Unit& unit) {
                                                  return unit.shard_elements < unit.element_count;
                                                });
  ContentWalk walk(schedule, several, report);
  for (std::size_t s = 0; s < schedule.segments.size(); ++s) walk.segment(s);
}

void check_content(const plan::Schedule& schedule, const plan::Segment& segment,
                   std::span<const BufferId> given, Report& report) {
  ContentWalk(schedule, report).list(segment, given);
}

}  // namespace underkeel::verify
