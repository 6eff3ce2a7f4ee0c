#pragma once
// Which files a checkpoint has and where each tensor lies in them. The same on every rank, at every world
// size and stage: a function of the model and the types alone.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/checkpoint_space.h"
#include "io/model_shards.h"
#include "io/safetensors.h"
#include "plan/schedule.h"
#include "planner/planner.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"

namespace underkeel::train {

struct CheckpointContent {
  DType weight_type = DType::f32;
  DType state_type = DType::f32;  // of moments, and of the weights where they are not exported
  bool has_master = false;        // an f32 copy beside narrower weights
  bool has_optimizer = true;      // false: weights only
  /// Weights as a Hugging Face folder has them. Else they are kept as masters alone, from which
  /// training resumes and no other program loads.
  bool exports_weights = true;
};

/// What a run's checkpoints hold, and its final folder. The request is planner::request_of() the same run, on any
/// number of ranks.
CheckpointContent checkpoint_content(const spec::RunConfig& run, const planner::Request& request);
CheckpointContent final_content(const spec::RunConfig& run);

struct LaidOutFile {
  std::string name;  // plain file name
  io::SafetensorsLayout layout;
};

struct CheckpointFiles {
  std::vector<LaidOutFile> files;
  std::string weight_index;  // text of model.safetensors.index.json; empty for one file

  struct Place {
    std::size_t file_index = 0;
    const io::TensorEntry* entry = nullptr;
  };
  std::optional<Place> find(const std::string& stored_name) const;
  std::int64_t size_bytes() const;
};

/// Weights as Hugging Face lays them out (files of at most `max_shard_bytes`), and one file for each other
/// part.
Result<CheckpointFiles> lay_out_checkpoint(const spec::ModelSpec& model,
                                           const CheckpointContent& content,
                                           std::int64_t max_shard_bytes);

/// What a run wants of the disk of its output folder, whoever asks: the run itself, or a plan for another machine.
struct SavesToCome {
  const CheckpointFiles& checkpoint;
  const CheckpointFiles& final;            // of the model that is written at the end
  std::optional<std::int64_t> save_count;  // none: not known
  std::int64_t standing_count = 0;  // checkpoints on the disk now that rotate with the run's own
};
/// A run that saves nothing needs only its final folder. Of a number of saves that is not known as many are counted as
/// stand there at once: those that save_total_limit and the best model keep and one more, without a limit one.
io::SpaceNeed space_need(const spec::RunConfig& run, const SavesToCome& saves);

/// transformers' default of version 4, which every version reads.
constexpr std::int64_t default_shard_bytes = 5'000'000'000;

}  // namespace underkeel::train
