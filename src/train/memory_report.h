#pragma once
// memory.json of a run: what the plan said of memory and what the kernel measured, for every rank,
// and around every save, evaluation and resume.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "exec/executor.h"
#include "io/file.h"
#include "plan/plan.h"
#include "train/process_memory.h"

namespace underkeel::train {

/// Where measured figures come from; tests give their own.
struct MemorySource {
  std::function<Result<std::int64_t>(plan::MemorySpace)> arena_resident_bytes;
  std::function<std::int64_t(plan::SegmentKind, plan::MemorySpace)> live_peak_bytes;
  std::function<Result<ProcessMemory>()> process;

  /// smaps for arenas, /proc/self/status for the process.
  static MemorySource of(const exec::Executor& executor);
};

enum class MemoryPhase { save, evaluate, resume };

struct MemoryReportOptions {
  int rank = 0;
  int ranks_in_process = 1;  // they share the process's figures
  std::int64_t planned_process_bytes = 0;
  std::int64_t joining_bytes = 0;    // that joining the GPUs took of a card, beside the plan
  std::int64_t expected_phases = 0;  // room for them is taken at once
};

/// One rank's record. Not for several threads at once.
class MemoryReport {
 public:
  /// `plan` must outlive it.
  MemoryReport(const plan::Plan& plan, MemorySource source, const MemoryReportOptions& options);

  /// Measures before a phase. A phase that was not ended (its save failed) is ended first.
  Result<void> begin(MemoryPhase phase, std::int64_t step);
  /// Measures while it runs; as often as wanted. Nothing when no phase runs.
  Result<void> sample();
  /// Measures after it.
  Result<void> end();

  /// This rank's part: one line for the rank, then one line an event, each a JSON object.
  Result<std::string> to_lines() const;

 private:
  struct Event {
    MemoryPhase phase = MemoryPhase::save;
    plan::MemorySpace space = plan::MemorySpace::device;
    std::int64_t step = 0;
    std::int64_t before_bytes = 0;
    std::int64_t during_peak_bytes = 0;
    std::int64_t after_bytes = 0;
    std::int64_t anonymous_before_bytes = 0;
    std::int64_t anonymous_during_peak_bytes = 0;
    std::int64_t anonymous_after_bytes = 0;
  };

  const plan::Plan& plan_;
  MemorySource source_;
  MemoryReportOptions options_;
  std::vector<plan::MemorySpace> spaces_;  // that have an arena
  std::vector<Event> events_;
  std::size_t open_count_ = 0;  // the last so many events belong to the running phase
};

/// Gathers all ranks' parts and writes `memory.json` on rank 0. Every rank must call it. Without `has_trained`, where
/// the run was at its last step before it began, one that stands there stays: it is of the run that trained.
/// Errors: peer_lost; those of the files.
Result<void> write_memory_report(comm::Communicator& control, io::FileSystem& files,
                                 const std::string& output, const MemoryReport& report,
                                 bool has_trained);

/// memory.json from to_lines() of every rank.
std::string join_memory_reports(const std::vector<std::string>& parts);

}  // namespace underkeel::train
