#pragma once
// Predicts a plan's run from the machine's rates: when every operation begins and ends, how long a
// step and a save take. Runs nothing. (Bytes at every operation: plan::live_bytes; at every moment of a
// timeline: plan::bytes_over_time.)

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/timeline.h"
#include "spec/hardware_spec.h"

namespace underkeel::simulate {

/// What one rank gets of the machine.
struct Rates {
  double matmul_flops_per_s = 0;
  double memory_bytes_per_s = 0;
  double link_bytes_per_s = 0;
  double link_latency_s = 0;
  double disk_bytes_per_s = 0;
  double network_bytes_per_s = 0;  // of this rank to other nodes
  double network_latency_s = 0;    // of each of those
  double network_share = 0;        // of the bytes from other ranks: those from other nodes
  double other_nodes = 0;          // than the own one, where ranks are
  double ranks_on_node = 1;
};

/// CPU ranks share their node's cores, memory and disk; a GPU rank has its GPU alone and shares the
/// disk. The link and the network are each rank's own.
Rates rates_of(const spec::HardwareSpec& hardware, std::int64_t world_size);

/// An operation takes as long as the slowest of the things it needs: arithmetic, its own memory, the
/// link, the network, the disk. `row_fraction` is the micro-batch's rows over the segment's largest.
/// A gather brings what other nodes have into a node once, over the network of all its ranks; in a sum over ranks, which
/// is an exchange, each rank receives its own part of the gradient from every other rank. A gather goes from node to node,
/// and each adds its latency; the messages of an exchange are under way together and add it once.
double seconds_of(const plan::Op& op, const Rates& rates, double row_fraction);

/// Runs segments one after another as the lanes and edges say: a lane takes its operations in order,
/// a segment starts when everything its predecessors joined has ended, entries run on behind it.
class SimulatedRun {
 public:
  SimulatedRun(const plan::Plan& plan, const Rates& rates);

  /// Adds one segment with `rows` rows a micro-batch (0: the plan's mean, its largest where that is not known). Returns when it is joined, in
  /// seconds from the start. With `timeline` also writes down every operation.
  double add(plan::SegmentKind kind, std::int64_t rows = 0, plan::Timeline* timeline = nullptr);

  /// When everything so far has ended, entries in flight included.
  double end_s() const;

 private:
  const plan::Plan& plan_;
  Rates rates_;
  double joined_s_ = 0;
  std::vector<double> lane_free_s_;  // by lane
  std::vector<double> entry_end_s_;  // by entry
  std::vector<double> end_s_;        // by operation of the segment
};

/// One segment alone, at one shape class.
struct SegmentTime {
  plan::SegmentKind segment = plan::SegmentKind::load;
  std::int64_t rows = 0;       // 0: the segment has no micro-batch
  double elapsed_s = 0;        // to the end of its last operation
  std::vector<double> busy_s;  // by lane
};

struct Simulation {
  std::vector<SegmentTime> segments;  // in the schedule's order, then by rows
  double step_s = 0;              // of a window of micro-steps and its update, once in the swing
  double micro_step_s = 0;        // its share of one micro-step
  double update_s = 0;            // what the update adds
  double save_s = 0;              // until a save is on disk, under the following window
  double save_wait_s = 0;         // by how much that window is longer for it
  double evaluation_batch_s = 0;  // of one batch of an evaluation, as the others follow; 0: none
};

/// Times of all segments at all shape classes, and of a step with micro-batches of the plan's mean, of the largest where that
/// is not known.
Simulation simulate(const plan::Plan& plan, const spec::HardwareSpec& hardware);

/// The step alone: what simulate() says, without `segments`.
Simulation simulate_step(const plan::Plan& plan, const spec::HardwareSpec& hardware);

/// The window that plan.accumulation_steps asks for: micro.only, or micro.first, micro.middle ...,
/// micro.last; then update. Empty when the plan does not train.
std::vector<plan::SegmentKind> window_of(const plan::Plan& plan);

}  // namespace underkeel::simulate
