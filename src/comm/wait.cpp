#include <fmt/format.h>

#include "comm/communicator.h"

namespace underkeel::comm {

std::string to_text(const Wait& wait) {
  if (wait.total_bytes > 0)
    return fmt::format("waiting for rank {} to {} ({:.1f} of {:.1f} MB)", wait.rank, wait.doing,
                       static_cast<double>(wait.done_bytes) * 1e-6,
                       static_cast<double>(wait.total_bytes) * 1e-6);
  return fmt::format("waiting for rank {} for {:.1f} s ({})", wait.rank, wait.elapsed_s,
                     wait.phase.empty() ? "start-up" : wait.phase);
}

}  // namespace underkeel::comm
