#pragma once
// Who has been silent for too long: the one rule of all transports. Knows no clock of its own.

#include <algorithm>
#include <chrono>
#include <vector>

namespace underkeel::comm {

/// A look at the peers that a waiting rank misses. A peer is overdue when nothing was heard of it
/// for `time_limit`, counted from its last sign or from the begin of the wait, whichever is later.
class Silence {
 public:
  using Clock = std::chrono::steady_clock;

  Silence(Clock::time_point now, Clock::time_point wait_begin, Clock::duration time_limit)
      : now_(now), wait_begin_(wait_begin), time_limit_(time_limit) {}

  /// Ranks come in ascending order.
  void add_missing(int rank, Clock::time_point last_sign) {
    const auto heard = std::max(wait_begin_, last_sign);
    look_again_ = std::min(look_again_, heard + time_limit_);
    if (now_ - heard < time_limit_) return;
    shortest_ = overdue_.empty() ? now_ - heard : std::min(shortest_, now_ - heard);
    overdue_.push_back(rank);  // allocates only when the group is about to fail
  }

  const std::vector<int>& overdue() const { return overdue_; }
  /// How long all of the overdue have been silent.
  double overdue_s() const { return std::chrono::duration<double>(shortest_).count(); }
  /// When the next peer can become overdue.
  Clock::time_point look_again() const { return look_again_; }

 private:
  Clock::time_point now_;
  Clock::time_point wait_begin_;
  Clock::duration time_limit_;
  Clock::time_point look_again_ = Clock::time_point::max();
  Clock::duration shortest_{};
  std::vector<int> overdue_;
};

/// A limit of more than a year counts as a year, which no clock overflows.
inline Silence::Clock::duration time_limit_of(double seconds) {
  constexpr double year_s = 365.0 * 86'400;
  return std::chrono::duration_cast<Silence::Clock::duration>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, year_s)));
}

}  // namespace underkeel::comm
