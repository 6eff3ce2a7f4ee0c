#pragma once
// model.safetensors.index.json: which file of a folder holds which tensor.
// Not here: whether the files agree (model_files.h), writing one (model_shards.h).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace underkeel::io {

constexpr std::string_view weight_index_file = "model.safetensors.index.json";

struct WeightIndex {
  std::map<std::string, std::string> file_of_tensor;  // plain file names
  std::optional<std::int64_t> total_size_bytes;
};

/// Reads the text of an index. A file name with a separator or `..` is refused.
/// Errors: bad_file.
Result<WeightIndex> parse_weight_index(std::string_view text, const std::string& path);

}  // namespace underkeel::io
