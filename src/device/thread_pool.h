#pragma once
// Our own pool of worker threads, so that a thread sanitizer sees every hand-over.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace underkeel::device {

/// Runs numbered tiles on a fixed set of threads. What a tile computes depends on its number alone,
/// never on the thread that runs it or on how many there are; that keeps bits equal for any
/// thread count. Nothing is allocated after construction.
class ThreadPool {
 public:
  /// `thread_count` counts the calling thread: 1 starts no worker.
  explicit ThreadPool(int thread_count);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int thread_count() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(tile) once for every tile in [0, tile_count) and returns when all are done. One
  /// caller at a time; `body` must not throw and must not call parallel_for.
  template <class Body>
  void parallel_for(std::int64_t tile_count, const Body& body) {
    run(tile_count, &body,
        [](const void* context, std::int64_t tile) { (*static_cast<const Body*>(context))(tile); });
  }

 private:
  using Call = void (*)(const void* context, std::int64_t tile);
  void run(std::int64_t tile_count, const void* context, Call call);
  void work();
  void take_tiles(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  const void* context_ = nullptr;
  Call call_ = nullptr;
  std::int64_t tile_count_ = 0;
  std::int64_t next_tile_ = 0;
  std::int64_t finished_tiles_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace underkeel::device
