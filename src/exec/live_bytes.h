#pragma once
// Bytes of living buffers while a plan runs, counted as they begin and end: what its peaks are compared with.

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace underkeel::exec {

/// Calls may come from any lane, but for the trace.
class LiveBytes {
 public:
  void start(plan::MemorySpace space, std::int64_t size_bytes) { now_[index(space)] = size_bytes; }
  /// What lives on when a segment begins counts for it too.
  void begin(plan::SegmentKind kind) {
    for (std::size_t space = 0; space < now_.size(); ++space) raise(kind, space, now_[space]);
  }
  void add(plan::SegmentKind kind, const plan::Buffer& buffer) {
    const std::size_t space = index(buffer.space);
    raise(kind, space, now_[space] += buffer.size_bytes);
  }
  void remove(const plan::Buffer& buffer) { now_[index(buffer.space)] -= buffer.size_bytes; }

  std::int64_t peak(plan::SegmentKind kind, plan::MemorySpace space) const {
    return peak_[index(kind)][index(space)];
  }

  void clear_trace() {
    for (auto& bytes : trace_) bytes.clear();
  }
  void record_trace() {
    for (std::size_t space = 0; space < now_.size(); ++space) trace_[space].push_back(now_[space]);
  }
  const std::vector<std::int64_t>& trace(plan::MemorySpace space) const {
    return trace_[index(space)];
  }

 private:
  void raise(plan::SegmentKind kind, std::size_t space, std::int64_t bytes) {
    auto& peak = peak_[index(kind)][space];
    std::int64_t known = peak;
    while (known < bytes && !peak.compare_exchange_weak(known, bytes)) {
    }
  }

  std::array<std::atomic<std::int64_t>, plan::memory_space_count> now_{};
  std::array<std::array<std::atomic<std::int64_t>, plan::memory_space_count>,
             plan::segment_kind_count>
      peak_{};
  std::array<std::vector<std::int64_t>, plan::memory_space_count> trace_;
};

}  // namespace underkeel::exec
