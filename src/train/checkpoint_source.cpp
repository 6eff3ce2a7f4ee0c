#include "train/checkpoint_source.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/units.h"
#include "io/safetensors.h"
#include "plan/stored_name.h"
#include "train/checkpoint_files.h"
#include "train/model_source.h"

namespace underkeel::train {

namespace {
constexpr std::int64_t chunk_bytes = 256 * kibibyte;
}

CheckpointSource::CheckpointSource(io::FileSystem& files, io::FoundCheckpoint checkpoint)
    : files_(files), checkpoint_(std::move(checkpoint)), chunk_(chunk_bytes) {
  // Files may be gone when only the weights are asked for; a resume with all state has checked for all.
  std::map<std::string, bool> is_there;
  for (const io::CheckpointTensor& tensor : checkpoint_.manifest.tensors) {
    const auto [file, is_new] = is_there.try_emplace(tensor.file);
    if (is_new) file->second = files_.exists(io::join_path(checkpoint_.folder, tensor.file));
    if (file->second) tensors_[tensor.name] = &tensor;
  }
}

Result<void> CheckpointSource::read(const plan::UnitTensor& tensor, plan::StatePart part,
                                    std::int64_t begin, std::int64_t end, float* into) {
  auto found = tensors_.find(plan::stored_name(part, tensor.name));
  if (part == plan::StatePart::weights) {
    // The master copy is the exact value; the weights are it, rounded.
    const auto master = tensors_.find(plan::stored_name(plan::StatePart::master, tensor.name));
    if (master != tensors_.end()) found = master;
  } else if (part == plan::StatePart::master && found == tensors_.end()) {
    found = tensors_.find(tensor.name);
  }
  if (found == tensors_.end())
    return fail(
        ErrorCode::bad_file,
        fmt::format("the checkpoint has no `{}`", plan::stored_name(part, tensor.name)),
        checkpoint_.folder,
        part == plan::StatePart::weights
            ? "resume with the model that this checkpoint was made from"
            : "resume with `underkeel.resume_weights_only=true`: the moments then start from zero");
  const io::CheckpointTensor& stored = *found->second;
  if (stored.shape != tensor.shape)
    return fail(ErrorCode::bad_file,
                fmt::format("`{}` has shape {}, the model needs {}", stored.name,
                            io::shape_text(stored.shape), io::shape_text(tensor.shape)),
                checkpoint_.folder, "resume with the model that this checkpoint was made from");
  const std::string path = checkpoint_.folder + "/" + stored.file;
  auto file = open_.find(path);
  if (file == open_.end()) {
    UK_TRY(opened, files_.open(path));
    file = open_.emplace(path, std::move(opened)).first;
  }
  const std::int64_t chunk_elements = chunk_bytes * 8 / bits_of(stored.type);
  for (std::int64_t at = begin; at < end; at += chunk_elements) {
    const std::int64_t count = std::min(chunk_elements, end - at);
    const auto bytes = static_cast<std::size_t>(bytes_of(stored.type, count));
    UK_TRY_VOID(file->second.read(std::span(chunk_.data(), bytes),
                                  stored.begin + bytes_of(stored.type, at)));
    bytes_read_ += static_cast<std::int64_t>(bytes);
    widen(chunk_.data(), stored.type, count, into + (at - begin));
  }
  return {};
}

}  // namespace underkeel::train
