#include "comm/threads/meeting.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "comm/failure.h"
#include "comm/silence.h"

namespace underkeel::comm {

namespace {

// Texts are kept in room reserved at the start: a call allocates nothing.
constexpr std::size_t text_bytes = 200;

double seconds_of(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Meeting::Meeting(int world_size) : members_(static_cast<std::size_t>(world_size)) {
  for (Member& member : members_) {
    member.time_limit = time_limit_of(default_time_limit_s);
    member.last_sign = Clock::now();
    member.phase.reserve(text_bytes);
    member.doing.reserve(text_bytes);
  }
}

bool Meeting::everybody_came(std::int64_t arrivals) const {
  return std::all_of(members_.begin(), members_.end(),
                     [&](const Member& member) { return member.arrivals >= arrivals; });
}

void Meeting::set_failure(int rank, Error reason) {
  if (!failure_) failure_ = Failure{rank, std::move(reason)};
  changed_.notify_all();
}

/// Fails the group when a missing rank has left or was silent for too long; else says when to look
/// again.
std::optional<Meeting::Clock::time_point> Meeting::check_missing(int rank) {
  const Member& own = members_[static_cast<std::size_t>(rank)];
  Silence silence(Clock::now(), own.wait_begin, own.time_limit);
  std::vector<int> left;  // filled, and so allocated, only when the group fails
  for (int peer = 0; peer < world_size(); ++peer) {
    const Member& member = members_[static_cast<std::size_t>(peer)];
    if (member.arrivals >= own.arrivals) continue;
    if (member.left) left.push_back(peer);
    silence.add_missing(peer, member.last_sign);
  }
  if (left.empty() && silence.overdue().empty()) return silence.look_again();
  const MissingPeers missing{.ranks = left.empty() ? silence.overdue() : left,
                             .rank = rank,
                             .world_size = world_size(),
                             .phase = own.phase,
                             .call = own.post.call,
                             .waited_s = silence.overdue_s()};
  set_failure(rank, left.empty() ? did_not_arrive(missing) : has_left(missing));
  return std::nullopt;
}

/// The end of every call of a failed group.
Result<void> Meeting::give_up(int rank, Lock& lock) {
  Member& own = members_[static_cast<std::size_t>(rank)];
  own.waiting = false;
  own.reading = false;
  changed_.notify_all();
  changed_.wait(lock, [this] {
    return std::none_of(members_.begin(), members_.end(),
                        [](const Member& m) { return m.reading; });
  });
  return failure_as_seen_by(rank);
}

tl::unexpected<Error> Meeting::failure_as_seen_by(int rank) const {
  if (failure_->rank == rank) return tl::unexpected(failure_->reason);
  return tl::unexpected(gave_up(failure_->rank, failure_->reason));
}

Result<void> Meeting::check(int rank) {
  const Lock lock(mutex_);
  if (failure_) return failure_as_seen_by(rank);
  return {};
}

Result<void> Meeting::arrive_and_wait(int rank, Lock& lock) {
  Member& own = members_[static_cast<std::size_t>(rank)];
  if (failure_) return give_up(rank, lock);
  const std::int64_t arrivals = ++own.arrivals;
  if (everybody_came(arrivals)) {
    changed_.notify_all();
    return {};
  }
  own.waiting = true;
  own.wait_begin = Clock::now();
  while (!failure_ && !everybody_came(arrivals)) {
    if (const auto look_again = check_missing(rank)) changed_.wait_until(lock, *look_again);
  }
  own.waiting = false;
  if (failure_) return give_up(rank, lock);
  return {};
}

Result<void> Meeting::begin(int rank, const Post& post) {
  Lock lock(mutex_);
  Member& own = members_[static_cast<std::size_t>(rank)];
  // A failed group's readers may still look at this rank's last post.
  if (failure_) return give_up(rank, lock);
  own.post = post;
  UK_TRY_VOID(arrive_and_wait(rank, lock));
  for (const Member& member : members_) {
    const Post& other = member.post;
    UK_CHECK(
        other.call == post.call && other.type == post.type &&
            (post.sizes_differ || other.size == post.size),
        fmt::format("ranks make different calls: {} of {} {} and {} of {} {}", post.call, post.size,
                    name_of(post.type), other.call, other.size, name_of(other.type)));
  }
  own.reading = true;
  return {};
}

Result<void> Meeting::between(int rank) {
  Lock lock(mutex_);
  Member& own = members_[static_cast<std::size_t>(rank)];
  own.reading = false;
  UK_TRY_VOID(arrive_and_wait(rank, lock));
  own.reading = true;
  return {};
}

Result<void> Meeting::finish(int rank) {
  Lock lock(mutex_);
  members_[static_cast<std::size_t>(rank)].reading = false;
  return arrive_and_wait(rank, lock);
}

void Meeting::set_phase(int rank, std::string_view phase) {
  const Lock lock(mutex_);
  members_[static_cast<std::size_t>(rank)].phase = phase.substr(0, text_bytes);
}

void Meeting::set_time_limit(int rank, double seconds) {
  const Lock lock(mutex_);
  members_[static_cast<std::size_t>(rank)].time_limit = time_limit_of(seconds);
}

void Meeting::report_progress(int rank, std::string_view doing, std::int64_t done_bytes,
                              std::int64_t total_bytes) {
  const Lock lock(mutex_);
  Member& own = members_[static_cast<std::size_t>(rank)];
  own.last_sign = Clock::now();  // those who wait see it when their own limit has passed
  own.doing = doing.substr(0, text_bytes);
  own.done_bytes = done_bytes;
  own.total_bytes = done_bytes < total_bytes ? total_bytes : 0;
}

std::optional<Wait> Meeting::waiting(int rank) const {
  const Lock lock(mutex_);
  const Member& own = members_[static_cast<std::size_t>(rank)];
  if (!own.waiting) return std::nullopt;
  for (int peer = 0; peer < world_size(); ++peer) {
    const Member& member = members_[static_cast<std::size_t>(peer)];
    if (member.arrivals >= own.arrivals) continue;
    Wait wait{
        .rank = peer, .phase = own.phase, .elapsed_s = seconds_of(Clock::now() - own.wait_begin)};
    if (member.total_bytes > 0) {
      wait.doing = member.doing;
      wait.done_bytes = member.done_bytes;
      wait.total_bytes = member.total_bytes;
    }
    return wait;
  }
  return std::nullopt;  // all have come; the waiting thread is about to wake
}

void Meeting::abort(int rank, const Error& reason) {
  const Lock lock(mutex_);
  set_failure(rank, reason);
}

void Meeting::leave(int rank) {
  const Lock lock(mutex_);
  members_[static_cast<std::size_t>(rank)].left = true;
  changed_.notify_all();
}

}  // namespace underkeel::comm
