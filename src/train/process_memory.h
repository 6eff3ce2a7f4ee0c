#pragma once
// What the kernel says about this process's memory, and what the process will need in all.

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace underkeel::train {

/// Figures of /proc/self/status.
struct ProcessMemory {
  std::int64_t resident_bytes = 0;            // VmRSS
  std::int64_t most_resident_bytes = 0;       // VmHWM, since the process began
  std::int64_t anonymous_resident_bytes = 0;  // RssAnon
};

/// The text of /proc/PID/status. Errors: bad_file, naming the field that is missing.
Result<ProcessMemory> parse_process_status(std::string_view text);
/// Allocates nothing. Errors: io, bad_file.
Result<ProcessMemory> read_process_memory();

/// Figures of /proc/self/smaps_rollup: counted page by page, so exact, and slow for large processes.
struct MemoryRollup {
  std::int64_t resident_bytes = 0;
  std::int64_t proportional_bytes = 0;  // pages shared with other processes count by their share
  std::int64_t anonymous_bytes = 0;
};
Result<MemoryRollup> parse_smaps_rollup(std::string_view text);
/// Allocates nothing. Errors: io, bad_file.
Result<MemoryRollup> read_memory_rollup();

/// What this process will take up between a measurement and its end, each with a bound.
struct MemoryToCome {
  std::int64_t arena_bytes = 0;    // of all ranks in the process, not yet touched
  std::int64_t thread_count = 0;   // not yet started: lanes and pools of all ranks
  std::int64_t packing_bytes = 0;  // kernels::cpu_matmul_overhead_bytes() of each rank's pool
  std::int64_t log_bytes = 0;      // the history of the log, and its texts when it is written
  std::int64_t order_bytes = 0;    // of the samples, this epoch's and the next one's, for each rank
  std::int64_t driver_bytes = 0;   // what a GPU's driver and libraries load on the host
  std::int64_t transport_bytes = 0;  // what MPI's library takes for messages under way
};

/// Stack, thread-local storage and heap headers that one thread of ours touches.
constexpr std::int64_t thread_touched_bytes = 192 * 1024;
/// Code that has not run yet (save, evaluation, the libraries below them) and heap that is freed
/// again between steps.
constexpr std::int64_t unseen_bytes = std::int64_t{12} * 1024 * 1024;

/// A bound on the resident bytes of this process at any time: what is resident now and what is to
/// come; at least what was resident before (tokenising may have taken more than training will).
std::int64_t planned_process_bytes(const ProcessMemory& now, const MemoryToCome& to_come);

}  // namespace underkeel::train
