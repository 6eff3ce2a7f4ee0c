#include "io/model_shards.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "io/model_files.h"
#include "io/strict_json.h"
#include "io/weight_index.h"

namespace underkeel::io {

std::vector<WeightShard> split_into_shards(std::span<const TensorSpec> tensors,
                                           std::int64_t max_shard_bytes) {
  std::vector<WeightShard> shards;
  WeightShard open;
  std::int64_t open_bytes = 0;
  for (const TensorSpec& tensor : tensors) {
    const std::int64_t size_bytes = tensor.size_bytes();
    if (size_bytes > max_shard_bytes) {
      // The open file stays open and is numbered after this one, as in the reference.
      shards.push_back({.tensors = {tensor}});
      continue;
    }
    if (open_bytes + size_bytes > max_shard_bytes) {
      shards.push_back(std::exchange(open, {}));
      open_bytes = 0;
    }
    open.tensors.push_back(tensor);
    open_bytes += size_bytes;
  }
  if (!open.tensors.empty() || shards.empty()) shards.push_back(std::move(open));
  if (shards.size() == 1) shards[0].file = single_weights_file;
  for (std::size_t i = 0; shards.size() > 1 && i < shards.size(); ++i)
    shards[i].file = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
  return shards;
}

Result<std::string> weight_index_json(std::span<const WeightShard> shards) {
  if (shards.size() < 2) return std::string{};
  std::int64_t total_size_bytes = 0;
  std::int64_t total_parameters = 0;
  std::map<std::string_view, std::string_view> file_of_tensor;
  for (const WeightShard& shard : shards) {
    for (const TensorSpec& tensor : shard.tensors) {
      total_size_bytes += tensor.size_bytes();
      total_parameters += tensor.element_count();
      file_of_tensor[tensor.name] = shard.file;
    }
  }
  std::string json = fmt::format(
      "{{\n  \"metadata\": {{\n    \"total_parameters\": {},\n    \"total_size\": {}\n  }},\n"
      "  \"weight_map\": {{",
      total_parameters, total_size_bytes);
  std::string_view separator = "\n";
  for (const auto& [tensor, file] : file_of_tensor) {
    UK_TRY(name, json_quoted(tensor));
    json += fmt::format("{}    {}: \"{}\"", separator, name, file);
    separator = ",\n";
  }
  return json + "\n  }\n}\n";
}

bool is_shard_file_name(std::string_view name) {
  constexpr std::string_view pattern = "model-00000-of-00000.safetensors";
  return name.size() == pattern.size() &&
         std::equal(name.begin(), name.end(), pattern.begin(), [](char c, char expected) {
           return expected == '0' ? c >= '0' && c <= '9' : c == expected;
         });
}

Result<void> remove_stale_weights(FileSystem& files, const std::string& folder,
                                  std::span<const WeightShard> shards) {
  UK_TRY(entries, files.list(folder));
  const auto is_kept = [&](const std::string& name) {
    return std::any_of(shards.begin(), shards.end(),
                       [&](const WeightShard& shard) { return shard.file == name; });
  };
  if (files.exists(join_path(folder, weight_index_file)))
    UK_TRY_VOID(files.remove_file(join_path(folder, weight_index_file)));
  for (const FolderEntry& entry : entries)
    if ((is_shard_file_name(entry.name) || entry.name == single_weights_file) &&
        !is_kept(entry.name))
      UK_TRY_VOID(files.remove_file(join_path(folder, entry.name)));
  return {};
}

}  // namespace underkeel::io
