#pragma once
// Ends a GPU's collectives when a peer is gone: what is queued waits on the GPU, where no call returns an
// error, so a thread of its own asks now and then.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "comm/communicator.h"
#include "comm/device_collectives.h"

namespace underkeel::exec {

class CollectiveWatch {
 public:
  /// Asks both until one of them has an error, then calls `failed` with it, once, on its own thread.
  CollectiveWatch(comm::DeviceCollectives& device, comm::Communicator& ranks,
                  std::function<void(const Error&)> failed);
  ~CollectiveWatch();
  CollectiveWatch(const CollectiveWatch&) = delete;
  CollectiveWatch& operator=(const CollectiveWatch&) = delete;

 private:
  void run();

  comm::DeviceCollectives& device_;
  comm::Communicator& ranks_;
  std::function<void(const Error&)> failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace underkeel::exec
