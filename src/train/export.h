#pragma once
// A Hugging Face folder out of a native checkpoint, streamed: memory does not depend on the model.

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "io/file.h"
#include "tensor/dtype.h"
#include "train/checkpoint_files.h"

namespace underkeel::train {

struct ExportRequest {
  /// A checkpoint, an output folder (the model that it holds; see model_of_output()), or a model folder.
  std::string from;
  std::string into;           // must not be there yet, or be empty
  std::optional<DType> type;  // f32, bf16 or f16; none: as the weights are stored
  std::int64_t max_shard_bytes = default_shard_bytes;
};

struct ExportReport {
  std::string from;  // the folder that was read
  std::string note;  // of OutputModel: another model is newer
  DType type = DType::f32;
  bool from_master = false;  // values are those of the f32 master copy
  std::int64_t file_count = 0;
  std::int64_t tensor_count = 0;
  std::int64_t parameter_count = 0;
  std::int64_t weight_bytes = 0;
  std::int64_t bytes_read = 0;  // of tensors; no moments among them
};

/// Writes `into` under a temporary name beside it, checks every tensor (io::verify_folder), and renames.
/// After an error nothing of it is left. Weights come from the master copy where there is one, rounded
/// once. A tied head is not written a second time.
/// Memory:  two buffers of 256 KiB, two of 1 MiB for the check, headers.
/// Errors:  does_not_fit when the disk has not the room, before anything is written; bad_config when
///          `into` is there or `from` is no folder; unsupported where adapters lie beside the weights, which
///          would be lost; bad_file for a checkpoint without weights or config.json.
Result<ExportReport> export_checkpoint(io::FileSystem& files, const ExportRequest& request);

}  // namespace underkeel::train
