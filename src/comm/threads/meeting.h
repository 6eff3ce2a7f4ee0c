#pragma once
// Where the threads of a group meet: a barrier that names who is missing, gives up in time, and
// never lets a failed rank take its buffers away from under a reader.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"

namespace underkeel::comm {

/// What a rank shows the others during a call.
struct Post {
  std::string_view call;  // a literal
  const void* data = nullptr;
  std::int64_t size = 0;  // the same on all ranks, unless `sizes_differ`
  DType type = DType::u8;
  bool sizes_differ = false;
};

/// A call is begin(), reading of what the others posted, finish(). Posts and the memory they
/// point to stay valid and unchanged from begin() to finish(), also when a call fails: a rank
/// whose call fails waits until nobody reads any more.
class Meeting {
 public:
  explicit Meeting(int world_size);

  int world_size() const { return static_cast<int>(members_.size()); }

  /// Comes with `post` and returns when all have come. From here on this rank reads.
  Result<void> begin(int rank, const Post& post);
  /// Between two parts of a call: all have done the first.
  Result<void> between(int rank);
  /// Returns when all have stopped reading.
  Result<void> finish(int rank);
  const Post& post_of(int rank) const { return members_[static_cast<std::size_t>(rank)].post; }

  void set_phase(int rank, std::string_view phase);
  void set_time_limit(int rank, double seconds);
  void report_progress(int rank, std::string_view doing, std::int64_t done_bytes,
                       std::int64_t total_bytes);
  std::optional<Wait> waiting(int rank) const;
  void abort(int rank, const Error& reason);
  /// The failure, once there is one.
  Result<void> check(int rank);
  /// The rank will not come again; whoever waits for it fails.
  void leave(int rank);

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  struct Member {
    std::int64_t arrivals = 0;
    bool reading = false;
    bool left = false;
    bool waiting = false;
    Clock::time_point wait_begin;
    Clock::time_point last_sign;
    Clock::duration time_limit;
    Post post;
    std::string phase;
    std::string doing;
    std::int64_t done_bytes = 0;
    std::int64_t total_bytes = 0;
  };
  struct Failure {
    int rank;
    Error reason;
  };

  Result<void> arrive_and_wait(int rank, Lock& lock);
  Result<void> give_up(int rank, Lock& lock);
  bool everybody_came(std::int64_t arrivals) const;
  std::optional<Clock::time_point> check_missing(int rank);
  void set_failure(int rank, Error reason);
  tl::unexpected<Error> failure_as_seen_by(int rank) const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;
  std::optional<Failure> failure_;
};

}  // namespace underkeel::comm
