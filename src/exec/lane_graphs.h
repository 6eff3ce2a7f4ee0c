#pragma once
// Stretches of the compute lane as graphs: where kernels are short, launching them one by one leaves gaps.

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/bind.h"
#include "exec/gpu_lanes.h"
#include "exec/lane_program.h"

namespace underkeel::exec {

/// Operations that follow one another on the compute lane, none of which waits for another lane or the host, but for the
/// first; nor does any lane wait for one of them, but for the last.
struct LaneGraph {
  std::size_t count = 0;  // of operations, with those that queue nothing
  device::GraphId graph{};
};

class LaneGraphs {
 public:
  /// Captures every segment in those classes of rows in which its launches are short, those met most first;
  /// none where CUDA_LAUNCH_BLOCKING is 1. Nothing is left to be made when a
  /// graph is launched. Every operation has run before (warm_up).
  static Result<std::unique_ptr<LaneGraphs>> make(Context context, GpuLanes& gpu_lanes,
                                                  const std::vector<LaneProgram>& programs);

  /// The graph that begins with the compute lane's operation at `place`; none: it is launched by itself.
  const LaneGraph* find(std::size_t segment, std::int64_t class_rows, std::size_t place) const;
  std::size_t count() const;

 private:
  struct Captured {
    std::size_t segment = 0;
    std::int64_t class_rows = 0;
    std::vector<std::size_t> begins;  // places in the lane, ascending
    std::vector<LaneGraph> graphs;
  };
  bool has(std::size_t segment, std::int64_t class_rows) const;
  Result<void> capture(const Context& context, GpuLanes& gpu_lanes, const LaneProgram& program,
                       Captured& into);

  std::vector<Captured> captured_;
  std::size_t launch_count_ = 0;
};

}  // namespace underkeel::exec
