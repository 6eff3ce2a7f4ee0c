#pragma once
// A plan: the schedule with an offset for every buffer, its peaks, and why it looks as it does.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/schedule.h"

namespace underkeel::plan {

/// One block per memory space and an offset in it for every buffer.
struct ArenaLayout {
  std::vector<std::int64_t> offset_bytes;                     // by buffer
  std::array<std::int64_t, memory_space_count> size_bytes{};  // by space
  std::int64_t alignment_bytes = 64;
  std::int64_t guard_bytes = 0;  // behind every buffer; then no two buffers share bytes
};

/// Bytes allowed in a memory space, and why.
struct Budget {
  std::int64_t size_bytes = 0;
  std::string reason;
};

struct Alternative {
  std::string value;
  std::string effect;  // with its number
};
/// A choice the planner made.
struct Decision {
  std::string subject;  // "recompute"
  std::string value;    // "cheap"
  std::string reason;
  std::vector<Alternative> alternatives;
};

/// The largest sum of living buffers of one space within one segment.
struct Peak {
  SegmentKind segment = SegmentKind::load;
  MemorySpace space = MemorySpace::device;
  std::int64_t size_bytes = 0;
  OpIndex op{};  // the operation at which it is reached
  std::array<std::int64_t, buffer_kind_count> by_kind{};
};

struct Plan {
  Schedule schedule;
  ArenaLayout layout;
  std::vector<Peak> peaks;  // one per segment and space that has any buffer
  std::array<std::int64_t, memory_space_count> persistent_bytes{};
  std::vector<Decision> decisions;
  bool on_gpu = false;  // `device` is a GPU's memory; else a rank's own part of the host's
  std::int64_t world_size = 1;
  int stage = 0;
  std::int64_t accumulation_steps = 1;
  std::int64_t overhead_bytes = 0;  // of the process, outside the arenas
  std::int64_t parameter_count = 0;
  std::uint64_t hash = 0;  // of the inputs
};

}  // namespace underkeel::plan
