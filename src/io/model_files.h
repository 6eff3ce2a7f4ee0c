#pragma once
// The weights of a model folder: `model.safetensors`, or the shards that an index names. Headers
// only; nothing is read of the tensors themselves.
// Not here: comparing with what a model needs (verify_folder.h), writing (model_shards.h).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "io/weight_index.h"

namespace underkeel::io {

constexpr std::string_view single_weights_file = "model.safetensors";

/// Where a tensor lies.
struct FoundTensor {
  const std::string& path;
  const TensorEntry& entry;
};

struct ModelFiles {
  std::string folder;
  std::vector<SafetensorsHeader> files;  // by name

  struct Place {
    std::size_t file_index = 0;
    std::size_t tensor_index = 0;
  };
  std::map<std::string, Place, std::less<>> places;  // of every tensor, by name

  std::optional<FoundTensor> find(std::string_view name) const;
};

/// All that is wrong with a folder's weights, as far as the files alone tell.
struct ModelFolderScan {
  ModelFiles model;
  std::vector<Error> problems;
  std::vector<std::string> warnings;
  std::vector<std::string> adapter_files;  // names of those beside the weights

  /// `warnings`, and one for each file of adapters.
  std::vector<std::string> all_warnings() const;
};

/// Reads every header and compares with the index. Finds missing files, tensors that the index names
/// and no file holds, tensors that the index does not name, tensors in two files.
/// Errors: not_found when there is no such folder or no weights in it; unsupported when the weights
/// are there in another format. All else is in the scan.
Result<ModelFolderScan> scan_model_folder(FileSystem& files, const std::string& folder);

/// Bytes of text that a scan would parse: the index, and the headers of every safetensors file that stands in `folder`. What
/// is no such file counts nothing. For those who have little time. Errors: as FileSystem::list().
Result<std::int64_t> scan_bytes(FileSystem& files, const std::string& folder);

/// Weights beside adapters are the base alone, which is not the model that was trained: transformers reads both.
/// Errors: unsupported where files of adapters lie in the folder, whatever else does.
Result<void> refuse_adapters(FileSystem& files, const std::string& folder);

/// The scan for those who only want sound files. Errors: those of refuse_adapters() and scan_model_folder(), or its first
/// problem.
Result<ModelFiles> open_model_files(FileSystem& files, const std::string& folder);

/// "5 tensors (`a`, `b`, `c`, ...)": the count and at most three names.
std::string count_and_names(const std::vector<std::string>& names);

}  // namespace underkeel::io
