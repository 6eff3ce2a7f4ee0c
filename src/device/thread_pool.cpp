// Hands out tiles under one mutex: tiles are coarse (tens of microseconds), so a lock per tile
// costs nothing that can be measured.

#include "device/thread_pool.h"

namespace underkeel::device {

ThreadPool::ThreadPool(int thread_count) {
  for (int i = 1; i < thread_count; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::take_tiles(std::unique_lock<std::mutex>& lock) {
  while (next_tile_ < tile_count_) {
    const std::int64_t tile = next_tile_++;
    const void* context = context_;
    const Call call = call_;
    lock.unlock();
    call(context, tile);
    lock.lock();
    if (++finished_tiles_ == tile_count_) done_.notify_all();
  }
}

void ThreadPool::run(std::int64_t tile_count, const void* context, Call call) {
  if (tile_count <= 0) return;
  if (workers_.empty() || tile_count == 1) {
    for (std::int64_t tile = 0; tile < tile_count; ++tile) call(context, tile);
    return;
  }
  std::unique_lock lock(mutex_);
  context_ = context;
  call_ = call;
  tile_count_ = tile_count;
  next_tile_ = 0;
  finished_tiles_ = 0;
  wake_.notify_all();
  take_tiles(lock);
  done_.wait(lock, [this] { return finished_tiles_ == tile_count_; });
  tile_count_ = 0;
  next_tile_ = 0;
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || next_tile_ < tile_count_; });
    if (stop_) return;
    take_tiles(lock);
  }
}

}  // namespace underkeel::device
