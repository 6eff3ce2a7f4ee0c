#pragma once
// A lane: a thread that runs its operations in order and tells how far it has come.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace underkeel::exec {

/// Counts the operations that a lane has ended since the run began; others wait for a count.
class Progress {
 public:
  void advance();
  std::uint64_t ended() const;
  /// Returns when `count` operations have ended, or once stop() was called.
  void wait_for(std::uint64_t count) const;
  /// Wakes all waiters for good: the run has failed.
  void stop();

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::uint64_t ended_ = 0;
  bool stopped_ = false;
};

/// A thread that runs one job at a time, in the order they were given. At most two jobs are pending: the
/// one that runs and the next.
class LaneThread {
 public:
  LaneThread();
  ~LaneThread();
  LaneThread(const LaneThread&) = delete;
  LaneThread& operator=(const LaneThread&) = delete;

  using Job = void (*)(void* context, std::size_t lane);
  /// Waits while both places are taken.
  void submit(Job job, void* context, std::size_t lane);
  /// Returns when no job is pending.
  void wait_idle();

 private:
  struct Pending {
    Job job = nullptr;
    void* context = nullptr;
    std::size_t lane = 0;
  };
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  Pending pending_[2];
  int pending_count_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace underkeel::exec
