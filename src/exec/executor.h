#pragma once
// Runs a plan: the only way anything runs. Each lane is a thread that runs its operations in order and
// waits only where the plan says so. Nothing is decided here.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "comm/device_collectives.h"
#include "comm/fault.h"
#include "device/gpu.h"
#include "exec/state_io.h"
#include "kernels/kernels.h"
#include "plan/plan.h"

namespace underkeel::exec {

/// What a segment reads besides its buffers. Spans must stay valid until run() returns.
struct Inputs {
  std::span<const std::int32_t> tokens;           // (rows)
  std::span<const std::int32_t> targets;          // (rows)
  std::span<const std::int32_t> positions;        // (rows)
  std::span<const std::int32_t> sequence_starts;  // ascending from 0, ends with rows
  float gradient_scale = 0;                       // loss_scale / trained tokens of the window
  std::array<float, 4> step_values{};             // AdamwArgs::step_values
  float loss_scale = 1;                           // update: that of gradient_scale
  double control = 0;
  std::optional<comm::Distortion> distortion;  // for tests: micro-steps
  StateSource* source = nullptr;               // load, resume
  StateSink* sink = nullptr;                   // save
};

struct Outputs {
  std::vector<double> totals;   // (world, plan::total_count), in rank order
  std::array<float, 4> clip{};  // ClipFactorArgs::out
  std::vector<float> logits;    // (V)
};

/// Where operations are run and how, never what they compute; all but the first four are for tests.
struct ExecutorOptions {
  device::Gpu* gpu = nullptr;  // for a plan on a GPU; must outlive the executor
  comm::DeviceCollectives* device_collectives = nullptr;  // for several ranks on GPUs; as well
  /// On a GPU: at most so long to time algorithms of products, on rank 0; its choices are those of all ranks.
  double matmul_timing_s = 0;
  bool graphs = true;            // on a GPU: stretches of short launches as graphs
  int thread_count = 1;          // of the compute lane's pool
  bool serial = false;           // list order in the caller's thread, no lanes
  std::uint64_t delay_seed = 0;  // not 0: random pauses before operations
  bool record_live_bytes = false;
};

class Executor {
 public:
  /// Takes and touches the arenas; on a GPU everything that the run will use is brought up too. `plan`,
  /// `kernels` and `collectives` must outlive the executor.
  /// Errors:  does_not_fit; the driver's; with several ranks on GPUs those of their collectives.
  static Result<std::unique_ptr<Executor>> make(const plan::Plan& plan,
                                                const kernels::KernelTable& kernels,
                                                comm::Communicator& collectives,
                                                const ExecutorOptions& options);
  ~Executor();

  /// Runs one segment and returns when all of it but its entries has ended. After an error every
  /// later call returns that error.
  Result<Outputs> run(plan::SegmentKind kind, const Inputs& inputs);

  /// Returns when nothing is in flight any more.
  Result<void> drain();
  /// In the guard layout: drains, then tells whether nothing was written behind a buffer. Else nothing.
  Result<void> check_guards();
  /// Graphs that were captured; 0 where launches are long enough to do without.
  std::size_t graph_count() const;
  /// Whether the entries of earlier segments have all ended; never waits.
  bool idle() const;

  struct ProductsTime {
    double seconds = 0;
    bool overflowed = false;  // infinities or not-a-number among results
  };
  /// Fills passing buffers with noise, then runs the segment's products and attentions alone, in list order and back to
  /// back: the least that its arithmetic takes. One rank on a GPU. Passing buffers hold no results of a step afterwards,
  /// and gradients have been added to. Numbers may overflow, since nothing between products keeps them small; they then
  /// need less power than a step's. In several pieces they are filled anew before each, while time stands still.
  struct ProductsHow {
    int pieces = 1;
    bool looks_for_overflow = true;  // also while time stands still, but the card rests meanwhile
  };
  Result<ProductsTime> run_products(plan::SegmentKind kind, const Inputs& inputs,
                                    const ProductsHow& how);

  /// Resident bytes of one space's arena as the kernel, or on a GPU the driver, reports them.
  Result<std::int64_t> resident_bytes(plan::MemorySpace space) const;
  /// Most bytes of living buffers that any operation met so far, by segment kind and space.
  std::int64_t live_peak_bytes(plan::SegmentKind kind, plan::MemorySpace space) const;
  /// Living bytes while each operation of the last run ran, by list position (record_live_bytes, serial).
  const std::vector<std::int64_t>& live_trace(plan::MemorySpace space) const;
  /// For tests and gradient checks: a copy of a persistent buffer's bytes. Nothing may be in flight.
  std::vector<std::byte> read_buffer(plan::BufferId buffer) const;
  /// The same for into.size() bytes from `begin_bytes`, where the whole would need memory that no plan holds.
  void read_buffer(plan::BufferId buffer, std::int64_t begin_bytes,
                   std::span<std::byte> into) const;

 private:
  struct State;
  explicit Executor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace underkeel::exec
