#pragma once
// Which samples a rank sees, and when: the Hugging Face Trainer's order, cut into accumulation
// windows. Everything is a function of the configuration and a position, so that a resumed run needs
// the position only, and may split the same global batch differently.

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"

namespace underkeel::data {

/// Where a run is in its data; kept in a checkpoint. `samples` counts what all ranks together took
/// from this epoch, with those that fill its last round.
struct DataPosition {
  std::int64_t epoch = 0;
  std::int64_t samples = 0;

  bool operator==(const DataPosition&) const = default;
};

struct SamplerConfig {
  std::int64_t sample_count = 0;
  std::int64_t sequences_per_micro_batch = 1;
  std::int64_t accumulation_steps = 1;
  int world_size = 1;
  int rank = 0;
  std::uint64_t seed = 42;
  bool shuffle = true;
  bool drop_last = false;
};

/// The order in which epoch `epoch` takes the samples: torch.randperm under seed + epoch, or their own.
std::vector<std::uint32_t> order_of_epoch(const SamplerConfig& config, std::int64_t epoch);

/// The samples of one rank between two updates.
struct WindowSamples {
  std::vector<std::vector<std::int64_t>> micro_batches;
  DataPosition begin;
  DataPosition end;
};

/// In epoch e the order is torch.randperm under seed + e; batches of b go to the ranks in turn. With
/// several ranks an incomplete last round is filled from the start of the order; one rank has a
/// short last batch; drop_last leaves an incomplete round out. A window holds accumulation_steps
/// rounds and never crosses an epoch.
/// Threads: may be used by several at once.
class Sampler {
 public:
  using Order = std::shared_ptr<const std::vector<std::uint32_t>>;

  /// Errors: bad_config without samples, or when drop_last leaves no batch.
  static Result<Sampler> make(const SamplerConfig& config);

  const SamplerConfig& config() const { return config_; }
  /// Micro-batches of each rank in an epoch, updates in an epoch.
  std::int64_t micro_batches_per_epoch() const;
  std::int64_t updates_per_epoch() const;
  /// Samples that come twice in an epoch to fill it; samples left out of it.
  std::int64_t filled_samples() const;
  std::int64_t left_out_samples() const;

  /// Host memory that a rank keeps for the orders of this epoch and the next one.
  static std::int64_t order_bytes(std::int64_t sample_count) {
    return 2 * sample_count * static_cast<std::int64_t>(sizeof(Order::element_type::value_type));
  }

  /// The updates of `epochs` epochs, rounded up.
  std::int64_t updates_for(double epochs) const;
  /// Where update `step` (from 0) begins in an unbroken run under this configuration.
  DataPosition position_of(std::int64_t step) const;
  /// Epochs whose orders `updates` updates from `position` on have met in the end, those before it included.
  std::int64_t epochs_met(DataPosition position, std::int64_t updates) const;
  /// For the log: whole epochs and the part of the current one.
  double epochs_at(const DataPosition& position) const;

  /// The window that begins at `position`. A position at or beyond the end of its epoch means the
  /// start of the next one.
  WindowSamples window_at(DataPosition position) const;

 private:
  struct LastOrder {
    std::mutex mutex;
    std::int64_t epoch = -1;
    Order order;
  };

  explicit Sampler(const SamplerConfig& config)
      : config_(config), last_order_(std::make_shared<LastOrder>()) {}

  std::int64_t round_samples() const {
    return config_.sequences_per_micro_batch * config_.world_size;
  }
  std::int64_t places_from(std::int64_t samples) const;
  Order order_of(std::int64_t epoch) const;

  SamplerConfig config_;
  std::shared_ptr<LastOrder> last_order_;
};

/// One rank's micro-batch of an evaluation.
struct EvaluationBatch {
  std::vector<std::int64_t> samples;
  std::int64_t counted = 0;  // the first so many are here for the first time in this evaluation

  bool operator==(const EvaluationBatch&) const = default;
};

/// The micro-batches of `rank`, in order; all ranks have as many. As in training several ranks fill
/// an incomplete last round from the start, one has a short last batch, and drop_last leaves it out;
/// what fills is computed and not counted, as accelerate has it.
std::vector<EvaluationBatch> evaluation_batches(std::int64_t sample_count,
                                                std::int64_t sequences_per_micro_batch,
                                                int world_size, int rank, bool drop_last);

}  // namespace underkeel::data
