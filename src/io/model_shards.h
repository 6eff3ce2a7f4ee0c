#pragma once
// Which weights go into which file of an export, and the index over them, as Hugging Face writes
// them. Not here: the inside of a file (safetensors.h), reading a folder (model_files.h).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "io/safetensors.h"

namespace underkeel::io {

struct WeightShard {
  std::string file;  // plain file name
  std::vector<TensorSpec> tensors;
};

/// Walks `tensors` in state-dict order and opens a new file when the next tensor would take the
/// current one beyond `max_shard_bytes`; a tensor larger than that gets a file of its own. One file
/// is called model.safetensors, several model-00001-of-00003.safetensors.
std::vector<WeightShard> split_into_shards(std::span<const TensorSpec> tensors,
                                           std::int64_t max_shard_bytes);

/// Text of model.safetensors.index.json; empty for a single file, which has none.
/// Errors: bad_file for a name that is not UTF-8.
Result<std::string> weight_index_json(std::span<const WeightShard> shards);

/// Whether `name` looks like model-00001-of-00003.safetensors.
bool is_shard_file_name(std::string_view name);

/// Removes from `folder` the weight files and the index of an earlier export that `shards` does not
/// replace, the index first: no reader may find an old index over new files.
Result<void> remove_stale_weights(FileSystem& files, const std::string& folder,
                                  std::span<const WeightShard> shards);

}  // namespace underkeel::io
