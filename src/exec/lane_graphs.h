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

/// The graphs of one segment in one class of rows.
class SegmentGraphs {
 public:
  SegmentGraphs(std::size_t segment, std::int64_t class_rows)
      : segment_(segment), class_rows_(class_rows) {}

  /// The graph that begins with the compute lane's operation at `place`; none: it is launched by itself.
  const LaneGraph* at(std::size_t place) const;
  bool is_of(std::size_t segment, std::int64_t class_rows) const {
    return segment == segment_ && class_rows == class_rows_;
  }
  std::size_t segment() const { return segment_; }
  std::size_t count() const { return graphs_.size(); }
  /// Places ascend.
  void add(std::size_t place, LaneGraph graph);

 private:
  std::size_t segment_;
  std::int64_t class_rows_;
  std::vector<std::size_t> begins_;
  std::vector<LaneGraph> graphs_;
};

class LaneGraphs {
 public:
  /// Captures every segment in those classes of rows in which its launches are short, those met most first;
  /// none where CUDA_LAUNCH_BLOCKING is 1. Nothing is left to be made when a
  /// graph is launched. Every operation has run before (warm_up).
  static Result<std::unique_ptr<LaneGraphs>> make(Context context, GpuLanes& gpu_lanes,
                                                  const std::vector<LaneProgram>& programs);

  /// None where the segment was not captured in this class.
  const SegmentGraphs* of(std::size_t segment, std::int64_t class_rows) const;
  std::size_t count() const;

 private:
  Result<void> capture(const Context& context, GpuLanes& gpu_lanes, const LaneProgram& program,
                       SegmentGraphs& into);

  std::vector<SegmentGraphs> captured_;
  std::size_t launch_count_ = 0;
};

}  // namespace underkeel::exec
