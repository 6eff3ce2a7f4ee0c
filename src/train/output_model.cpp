#include "train/output_model.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "io/model_files.h"

namespace underkeel::train {

namespace {

constexpr std::int64_t buffer_bytes = mebibyte;

/// Compares an opened model with checkpoints by the checksums in their manifests.
class Comparison {
 public:
  Comparison(io::FileSystem& files, const io::ModelFiles& model)
      : files_(files), model_(model), buffer_(static_cast<std::size_t>(buffer_bytes)) {}

  /// Whether each tensor of the model is in the checkpoint, with the same bytes.
  Result<bool> is_same(const io::Manifest& manifest) {
    for (const io::SafetensorsHeader& file : model_.files)
      for (const io::TensorEntry& entry : file.tensors) {
        const io::CheckpointTensor* stored = manifest.find(entry.name);
        if (stored == nullptr || stored->type != entry.type || stored->shape != entry.shape)
          return false;
        for (const io::FilePart& part : stored->parts) {
          const std::int64_t begin = entry.begin + (part.begin - stored->begin);
          UK_TRY(sum, sum_of(file.path, begin, begin + (part.end - part.begin)));
          if (sum != part.xxh3_64) return false;
        }
      }
    return true;
  }

 private:
  Result<std::uint64_t> sum_of(const std::string& path, std::int64_t begin, std::int64_t end) {
    auto file = open_.find(path);
    if (file == open_.end()) {
      UK_TRY(opened, files_.open(path));
      file = open_.emplace(path, std::move(opened)).first;
    }
    return io::checksum_of(file->second, begin, end, buffer_);
  }

  io::FileSystem& files_;
  const io::ModelFiles& model_;
  std::map<std::string, io::File> open_;  // by path
  std::vector<std::byte> buffer_;
};

}  // namespace

bool holds_a_model(io::FileSystem& files, const std::string& folder) {
  const auto has = [&](std::string_view name) { return files.exists(io::join_path(folder, name)); };
  return has("config.json") && (has(io::single_weights_file) || has(io::weight_index_file));
}

Result<OutputModel> model_of_output(io::FileSystem& files, const std::string& folder) {
  // A checkpoint is one model, and no output folder.
  if (files.exists(io::join_path(folder, io::manifest_file))) return OutputModel{.folder = folder};
  UK_TRY(standing, io::list_checkpoints(files, folder));
  if (standing.complete.empty()) return OutputModel{.folder = folder};
  const std::string newest = standing.complete.front().folder;
  if (!holds_a_model(files, folder)) {
    UK_TRY(manifest, io::read_manifest(files, newest));
    return OutputModel{.folder = newest,
                       .checkpoint = io::FoundCheckpoint{newest, std::move(manifest)}};
  }
  OutputModel found{.folder = folder};
  UK_TRY(model, io::open_model_files(files, folder));
  Comparison comparison(files, model);
  for (const auto& candidate : standing.complete) {
    UK_TRY(manifest, io::read_manifest(files, candidate.folder));
    UK_TRY(same, comparison.is_same(manifest));
    if (!same) continue;
    found.checkpoint = io::FoundCheckpoint{candidate.folder, std::move(manifest)};
    break;
  }
  if (found.checkpoint && found.checkpoint->folder == newest) return found;
  found.note = fmt::format(
      "the model in {} is {}, not that of the newest checkpoint: name {} for that one", folder,
      found.checkpoint ? fmt::format("that of {} (the best one, where load_best_model_at_end is "
                                     "true)",
                                     found.checkpoint->folder)
                       : std::string("that of no checkpoint which stands there"),
      newest);
  return found;
}

}  // namespace underkeel::train
