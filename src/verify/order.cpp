#include "verify/order.h"

#include <algorithm>
#include <bit>
#include <optional>

#include <fmt/format.h>

#include "plan/uses.h"
#include "verify/in_flight.h"
#include "verify/layout.h"

namespace underkeel::verify {

namespace {

using plan::Access;
using plan::BufferId;
using plan::OpIndex;

/// What one segment has done with a buffer so far.
struct BufferState {
  enum class Life : std::uint8_t { none, live, released };
  std::uint32_t epoch = 0;  // of the segment that this is about
  Life life = Life::none;
  OpIndex acquired = no_op;
  OpIndex released = no_op;
};

class Walk {
 public:
  Walk(const plan::Schedule& schedule, const plan::ArenaLayout* layout, Report& report)
      : schedule_(schedule),
        report_(report),
        lane_count_(schedule.lanes.size()),
        in_flight_(in_flight_of(schedule)),
        seen_{.acquired = std::vector<bool>(schedule.buffers.size())},
        states_(schedule.buffers.size() + 1),
        last_read_((schedule.buffers.size() + 1) * lane_count_),
        last_write_((schedule.buffers.size() + 1) * lane_count_),
        lane_ops_(lane_count_) {
    if (layout != nullptr) tenants_.emplace(schedule, *layout);
    for (const plan::Buffer& buffer : schedule.buffers)
      if (buffer.persistent) persistent_bytes_[index(buffer.space)] += buffer.size_bytes;
  }

  Seen seen() && { return std::move(seen_); }

  void segment(std::size_t segment_index) {
    segment_index_ = segment_index;
    segment_ = &schedule_.segments[segment_index];
    report_.start(segment_->kind);
    ++epoch_;
    live_bytes_ = persistent_bytes_;
    seen_.peaks.push_back(live_bytes_);
    clocks_.assign(segment_->ops.size() * lane_count_, 0);
    for (auto& ops : lane_ops_) ops.clear();
    acquired_.clear();
    if (tenants_) tenants_->start_segment();
    knowledge_.emplace(in_flight_, *segment_, lane_count_);
    for (std::size_t i = 0; i < segment_->ops.size(); ++i) {
      knowledge_->advance(i);
      step(i);
    }
    for (const BufferId id : acquired_) {
      seen_.acquired[index(id)] = true;
      BufferState& state = state_of(id);
      if (state.life != BufferState::Life::live) continue;
      state.life = BufferState::Life::released;
      report_.add(state.acquired, id, "is never released");
    }
  }

 private:
  /// A segment knows nothing of what the ones before did: whatever is touched first is new.
  BufferState& state_of(BufferId id) {
    BufferState& state = states_[index(id)];
    if (state.epoch == epoch_) return state;
    state = {.epoch = epoch_};
    forget_uses(id);
    return state;
  }
  void forget_uses(BufferId id) {
    const auto first = static_cast<std::ptrdiff_t>(index(id) * lane_count_);
    std::fill_n(last_read_.begin() + first, lane_count_, 0);
    std::fill_n(last_write_.begin() + first, lane_count_, 0);
  }
  std::uint32_t* clock_of(std::size_t op) { return clocks_.data() + op * lane_count_; }

  bool is_ordered(OpIndex before) {
    const std::size_t lane = index(segment_->ops[index(before)].lane);
    return clock_[lane] >= clock_of(index(before))[lane];
  }

  /// Takes everything that came before `op` as done. Also after reporting a missing edge, so that
  /// one missing edge is told once.
  void join(OpIndex op) {
    const std::uint32_t* other = clock_of(index(op));
    for (std::size_t lane = 0; lane < lane_count_; ++lane)
      clock_[lane] = std::max(clock_[lane], other[lane]);
  }

  /// Calls tell(op) for the latest operation of each lane in `last` that the current one does not
  /// come after.
  template <class Tell>
  void find_races(const std::vector<std::uint32_t>& last, BufferId id, Tell&& tell) {
    const std::uint32_t* positions = last.data() + index(id) * lane_count_;
    for (std::size_t lane = 0; lane < lane_count_; ++lane) {
      if (positions[lane] <= clock_[lane]) continue;
      const OpIndex other = lane_ops_[lane][positions[lane] - 1];
      tell(other);
      join(other);
    }
  }
  void report_races(const std::vector<std::uint32_t>& last, BufferId id, const char* sentence) {
    find_races(last, id, [&](OpIndex other) { report_.add(at_, id, sentence, other); });
  }

  void step(std::size_t i) {
    op_ = &segment_->ops[i];
    at_ = OpIndex{static_cast<std::uint32_t>(i)};
    clock_ = clock_of(i);
    std::vector<OpIndex>& lane_ops = lane_ops_[index(op_->lane)];
    if (!lane_ops.empty()) join(lane_ops.back());
    for (const OpIndex before : op_->after) join(before);
    lane_ops.push_back(at_);
    clock_[index(op_->lane)] = static_cast<std::uint32_t>(lane_ops.size());

    if (const BufferId id = plan::acquired_by(*op_); id != plan::no_buffer) return acquire(id);
    if (const BufferId id = plan::released_by(*op_); id != plan::no_buffer) return release(id);
    collect_uses();
    for (const plan::Use& use : uses_) check(use);
    for (const plan::Use& use : uses_) record(use);
    if (is_collective(*op_)) check_collective();
  }

  /// Each buffer once, so that an operation does not race itself.
  void collect_uses() {
    uses_.clear();
    plan::for_each_use(schedule_, *op_, [&](BufferId id, Access access) {
      for (plan::Use& use : uses_) {
        if (use.buffer != id) continue;
        if (use.access != access) use.access = Access::read_write;
        return;
      }
      uses_.push_back({id, access});
    });
  }

  void acquire(BufferId id) {
    BufferState& state = state_of(id);
    check_entry_buffer(id);
    if (state.life == BufferState::Life::live)
      return report_.add(at_, id, "is acquired twice", state.acquired);
    if (state.life == BufferState::Life::released && !is_ordered(state.released)) {
      report_.add(at_, id, "is acquired again before its release", state.released);
      join(state.released);
    }
    if (tenants_)
      for (const BufferId tenant : tenants_->move_in(id))
        if (tenant != id) follow(id, tenant);
    state = {.epoch = epoch_, .life = BufferState::Life::live, .acquired = at_};
    forget_uses(id);
    acquired_.push_back(id);
    const plan::Buffer& buffer = schedule_.buffer(id);
    std::int64_t& live_bytes = live_bytes_[index(buffer.space)];
    std::int64_t& peak_bytes = seen_.peaks.back()[index(buffer.space)];
    live_bytes += buffer.size_bytes;
    peak_bytes = std::max(peak_bytes, live_bytes);
  }

  /// `id` takes over bytes that `tenant` had.
  void follow(BufferId id, BufferId tenant) {
    const BufferState& state = state_of(tenant);
    const std::string& name = schedule_.buffer(tenant).name;
    if (state.life == BufferState::Life::live) {
      report_.add(at_, id, "acquires bytes that " + name + " still holds", state.acquired);
    } else if (!is_ordered(state.released)) {
      report_.add(at_, id, "acquires bytes before the release of " + name, state.released);
      join(state.released);
    }
  }

  void release(BufferId id) {
    BufferState& state = state_of(id);
    check_entry_buffer(id);
    if (state.life == BufferState::Life::none)
      return report_.add(at_, id, "is released without being acquired");
    if (state.life == BufferState::Life::released)
      return report_.add(at_, id, "is released twice", state.released);
    report_races(last_write_, id, "release races a write");
    report_races(last_read_, id, "release races a read");
    check_acquired(id, state);
    state.life = BufferState::Life::released;
    state.released = at_;
    live_bytes_[index(schedule_.buffer(id).space)] -= schedule_.buffer(id).size_bytes;
  }

  void check_entry_buffer(BufferId id) {
    if (op_->entry != plan::no_entry && !schedule_.buffer(id).persistent)
      report_.add(at_, id, "may be in flight when the segment ends, but is not persistent");
  }

  void check(const plan::Use& use) {
    BufferState& state = state_of(use.buffer);
    check_entry_buffer(use.buffer);
    const bool persistent = schedule_.buffer(use.buffer).persistent;
    if (!persistent && !check_alive(use.buffer, state)) return;
    if (plan::reads(use.access)) report_races(last_write_, use.buffer, "read races its writer");
    if (plan::writes(use.access)) {
      report_races(last_write_, use.buffer, "write races an earlier write");
      report_races(last_read_, use.buffer, "write races an earlier read");
    }
    if (!persistent) check_acquired(use.buffer, state);
    check_in_flight(use);
  }

  bool check_alive(BufferId id, const BufferState& state) {
    if (state.life == BufferState::Life::none)
      report_.add(at_, id, "is used without being acquired");
    if (state.life == BufferState::Life::released)
      report_.add(at_, id, "is used after its release", state.released);
    return state.life == BufferState::Life::live;
  }

  // After the races: whoever comes after a write comes after the acquire.
  void check_acquired(BufferId id, const BufferState& state) {
    if (is_ordered(state.acquired)) return;
    report_.add(at_, id, "use races its acquire", state.acquired);
    join(state.acquired);
  }

  void check_in_flight(const plan::Use& use) {
    find_in_flight(use, [&](plan::EntryId entry) {
      report_.add(at_, use.buffer,
                  fmt::format("{} races `{}`, in flight from an earlier segment",
                              plan::writes(use.access) ? "write" : "read",
                              schedule_.entries[index(entry)].name));
    });
  }

  /// Calls tell(entry) for parts in flight that touch the buffer and are not known to be finished.
  template <class Tell>
  void find_in_flight(const plan::Use& use, Tell&& tell) {
    if (in_flight_.word_count == 0) return;
    const std::int32_t slot = in_flight_.slot[index(use.buffer)];
    if (slot < 0) return;
    const PartWords& readers = in_flight_.readers[static_cast<std::size_t>(slot)];
    const PartWords& writers = in_flight_.writers[static_cast<std::size_t>(slot)];
    const PartWords& running = in_flight_.at_start[segment_index_];
    for (std::size_t word = 0; word < in_flight_.word_count; ++word) {
      const std::uint64_t touching =
          writers[word] | (plan::writes(use.access) ? readers[word] : std::uint64_t{0});
      // Telling makes more parts known, also in this word.
      while (const std::uint64_t racing = touching & running[word] & ~knowledge_->known()[word]) {
        const std::size_t part = word * 64 + static_cast<std::size_t>(std::countr_zero(racing));
        const plan::EntryId entry = in_flight_.parts[part].entry;
        tell(entry);
        knowledge_->learn(entry);
      }
    }
  }

  void record(const plan::Use& use) {
    const std::size_t cell = index(use.buffer) * lane_count_ + index(op_->lane);
    const std::uint32_t position = clock_[index(op_->lane)];
    if (plan::reads(use.access)) last_read_[cell] = position;
    if (plan::writes(use.access)) last_write_[cell] = position;
  }

  void check_collective() {
    const plan::Use turn{collective_order(schedule_), Access::write};
    state_of(turn.buffer);
    find_races(last_write_, turn.buffer, [&](OpIndex other) {
      report_.add(at_, "ranks may meet this collective and an earlier one in different orders");
      (void)other;
    });
    find_in_flight(turn, [&](plan::EntryId entry) {
      report_.add(at_,
                  fmt::format("ranks may meet this collective and those of `{}`, in flight from "
                              "an earlier segment, in different orders",
                              schedule_.entries[index(entry)].name));
    });
    last_write_[index(turn.buffer) * lane_count_ + index(op_->lane)] = clock_[index(op_->lane)];
  }

  const plan::Schedule& schedule_;
  Report& report_;
  const std::size_t lane_count_;
  const InFlight in_flight_;
  std::optional<Tenants> tenants_;
  Seen seen_;

  // Of the segment.
  std::size_t segment_index_ = 0;
  const plan::Segment* segment_ = nullptr;
  std::uint32_t epoch_ = 0;
  std::optional<Knowledge> knowledge_;
  std::vector<BufferState> states_;        // by buffer
  std::vector<std::uint32_t> last_read_;   // by buffer and lane: position on the lane, from 1
  std::vector<std::uint32_t> last_write_;  // likewise
  std::vector<std::uint32_t> clocks_;      // by operation and lane: operations that came before
  std::vector<std::vector<OpIndex>> lane_ops_;
  std::vector<BufferId> acquired_;
  SpaceBytes persistent_bytes_{};
  SpaceBytes live_bytes_{};

  // Of the operation.
  const plan::Op* op_ = nullptr;
  OpIndex at_ = no_op;
  std::uint32_t* clock_ = nullptr;
  std::vector<plan::Use> uses_;
};

}  // namespace

Seen check_order(const plan::Schedule& schedule, const plan::ArenaLayout* layout, Report& report) {
  Walk walk(schedule, layout, report);
  for (std::size_t s = 0; s < schedule.segments.size(); ++s) walk.segment(s);
  return std::move(walk).seen();
}

}  // namespace underkeel::verify
