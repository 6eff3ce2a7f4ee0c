#pragma once
// Says what a rank waits for when a wait grows long, from a thread of its own: the rank's own is the one that
// waits.

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/communicator.h"

namespace underkeel::train {

/// Whether `rank` is the one that tells of a wait for `missing_rank`: one of those who wait is enough.
bool tells_of_wait(int rank, int missing_rank);

class WaitTeller {
 public:
  /// Looks at the groups while it lives; they must outlive it.
  explicit WaitTeller(std::vector<const comm::Communicator*> groups);
  ~WaitTeller();
  WaitTeller(const WaitTeller&) = delete;
  WaitTeller& operator=(const WaitTeller&) = delete;

 private:
  void run();

  std::vector<const comm::Communicator*> groups_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace underkeel::train
