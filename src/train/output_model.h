#pragma once
// The model that an output folder itself holds, beside the checkpoints of its run.

#include <optional>
#include <string>

#include "base/result.h"
#include "io/checkpoint.h"
#include "io/file.h"

namespace underkeel::train {

/// Whether `folder` has a model of its own: config.json, and weights in one file or by an index. A run writes both at
/// its end.
bool holds_a_model(io::FileSystem& files, const std::string& folder);

struct OutputModel {
  std::string folder;  // where the weights are: the folder itself, or its newest checkpoint
  /// The complete checkpoint with the same weights, byte for byte; it may have their master copy too.
  std::optional<io::FoundCheckpoint> checkpoint;
  /// Words for the user where the newest checkpoint is another model; empty otherwise.
  std::string note;
};

/// The folder's own model where it has one, whatever checkpoints stand beside it: with load_best_model_at_end that is
/// the best one. Of an output folder without a model the newest complete checkpoint. A folder with neither is given back
/// as it is.
/// Cost:    reads the weights once where a checkpoint has the same ones, and little of them for any other.
/// Errors:  those of the files.
Result<OutputModel> model_of_output(io::FileSystem& files, const std::string& folder);

}  // namespace underkeel::train
