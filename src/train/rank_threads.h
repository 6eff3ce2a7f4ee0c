#pragma once
// Ranks that are threads of this process.

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "base/result.h"

namespace underkeel::train {

/// Threads of which a system may not give as many as are asked for. join() must come before the end of what they use.
class RankThreads {
 public:
  RankThreads() = default;
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;
  ~RankThreads() { join(); }

  /// body(rank) for each of `count` ranks, on a thread of its own.
  /// Errors:  unsupported, saying how many run: they wait for the others, so the caller ends their groups, then joins.
  Result<void> start(std::size_t count, const std::function<void(std::size_t)>& body);
  void join();

 private:
  std::vector<std::thread> threads_;
};

}  // namespace underkeel::train
