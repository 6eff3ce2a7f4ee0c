#include "exec/collective_watch.h"

#include <chrono>
#include <utility>

namespace underkeel::exec {

namespace {
// Short against the seconds in which a lost peer is to be told, long against its price.
constexpr std::chrono::milliseconds interval{50};
}  // namespace

CollectiveWatch::CollectiveWatch(comm::DeviceCollectives& device, comm::Communicator& ranks,
                                 std::function<void(const Error&)> failed)
    : device_(device), ranks_(ranks), failed_(std::move(failed)), thread_([this] { run(); }) {}

CollectiveWatch::~CollectiveWatch() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CollectiveWatch::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval, [this] { return stops_; })) {
    Result<void> state = ranks_.check();
    if (state) state = device_.check();
    if (state) continue;
    failed_(state.error());
    return;
  }
}

}  // namespace underkeel::exec
