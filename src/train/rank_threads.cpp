#include "train/rank_threads.h"

#include <system_error>

#include <fmt/format.h>

namespace underkeel::train {

Result<void> RankThreads::start(std::size_t count, const std::function<void(std::size_t)>& body) {
  try {
    for (std::size_t rank = 0; rank < count; ++rank) threads_.emplace_back(body, rank);
  } catch (const std::system_error& error) {
    return fail(
        ErrorCode::unsupported,
        fmt::format("{} ranks as threads: the system starts no more than {} ({})", count,
                    threads_.size(), error.what()),
        "--ranks or underkeel.ranks",
        "use fewer ranks, or raise the limits of threads and address space (ulimit -u, -v)");
  }
  return {};
}

void RankThreads::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace underkeel::train
