#include "exec/lane.h"

namespace underkeel::exec {

void Progress::advance() {
  {
    const std::lock_guard lock(mutex_);
    ++ended_;
  }
  changed_.notify_all();
}

std::uint64_t Progress::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void Progress::wait_for(std::uint64_t count) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ >= count || stopped_; });
}

void Progress::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

LaneThread::LaneThread() : thread_([this] { work(); }) {}

LaneThread::~LaneThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LaneThread::submit(Job job, void* context, std::size_t lane) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pending_count_ < 2; });
  pending_[pending_count_++] = {job, context, lane};
  lock.unlock();
  changed_.notify_all();
}

void LaneThread::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pending_count_ == 0; });
}

void LaneThread::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return pending_count_ > 0 || stop_; });
    if (pending_count_ == 0) return;
    const Pending next = pending_[0];
    lock.unlock();
    next.job(next.context, next.lane);
    lock.lock();
    pending_[0] = pending_[1];
    --pending_count_;
    changed_.notify_all();
  }
}

}  // namespace underkeel::exec
