#pragma once
// Where a run goes on: the checkpoint, what the loop was doing there, and whether this run is still the
// one that it was made by.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/sampler.h"
#include "io/checkpoint.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"
#include "train/loss_scale.h"

namespace underkeel::train {

/// Every value in force with its source, in the output folder and in checkpoints: what
/// training_args.bin is for the Trainer.
constexpr const char* values_file = "training_args.json";

/// What a position in the data is a position in.
struct DataIdentity {
  std::string samples;  // Datasets::training_identity
  std::int64_t sample_count = 0;
  std::uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;

  static DataIdentity of(const data::SamplerConfig& order, std::string samples);
  bool operator==(const DataIdentity&) const = default;
};

/// What a checkpoint keeps of the loop, besides tensors.
struct Progress {
  std::int64_t step = 0;  // completed optimizer steps
  data::DataPosition position;
  std::string trainer_state;  // text of trainer_state.json; newer ones keep the history there alone
  std::optional<DataIdentity> data;     // absent in checkpoints of older versions
  std::int64_t sequences_per_step = 0;  // of all ranks; 0: not known
  std::string evaluation;               // Datasets::evaluation_identity
  std::int64_t skipped_steps = 0;  // of `step`, over gradients that were not finite: no updates
  std::optional<LossScaleState> loss_scale;  // of an fp16 run

  std::string to_json() const;
  /// Errors: bad_file for numbers that no run comes to: a position after another number of steps, or outside
  /// its epoch; more skipped steps than steps; a loss scale that is none.
  static Result<Progress> from_json(std::string_view text, const std::string& where);
};

struct Resume {
  io::FoundCheckpoint checkpoint;
  Progress progress;
  bool weights_only = false;         // moments start from zero
  bool compares_evaluations = true;  // with those of this run
};

/// The checkpoint that `run` goes on from; nothing when it starts anew. `standing` gets what is in the
/// output folder.
/// Errors: bad_config when the folder holds results that would be overwritten; those of reading.
Result<std::optional<Resume>> find_resume(io::FileSystem& files, const spec::RunConfig& run,
                                          io::CheckpointList& standing);

}  // namespace underkeel::train
