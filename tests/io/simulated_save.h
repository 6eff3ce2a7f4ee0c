#pragma once
// A save as a run makes it: two files of tensors that two ranks fill in turns, and a small text file.
// What is in the tensors follows from the step.

#include <array>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/part_list.h"
#include "io/safetensors.h"

namespace underkeel::io {

constexpr std::int64_t simulated_world_size = 2;

inline std::vector<std::byte> simulated_bytes(std::int64_t step, std::int64_t rank,
                                              std::int64_t size_bytes) {
  return std::vector<std::byte>(static_cast<std::size_t>(size_bytes),
                                static_cast<std::byte>(step * 16 + rank));
}

/// Everything up to finish_checkpoint(); gives the manifest.
inline Result<Manifest> write_simulated_save(FileSystem& files, const std::string& output,
                                             std::int64_t step) {
  UK_TRY(folder, begin_checkpoint(files, output, step));
  Manifest manifest{.step = step, .plan_hash = "plan", .state = "{}"};
  std::vector<RankParts> parts(simulated_world_size);
  for (const std::string name : {"model.safetensors", "state-00001.safetensors"}) {
    const std::string prefix = name.substr(0, 6) + "weights.";
    UK_TRY(layout, lay_out_safetensors(
                       {{prefix + "a", DType::f32, {2, 50}}, {prefix + "b", DType::bf16, {70}}}));
    UK_TRY_VOID(create_safetensors(files, join_path(folder, name), layout));
    for (const TensorEntry& tensor : layout.tensors)
      manifest.tensors.push_back(
          {tensor.name, *tensor.type, tensor.shape, name, tensor.begin, tensor.end, {}});
    for (std::int64_t rank = 0; rank < simulated_world_size; ++rank) {
      UK_TRY(file, files.open_for_update(join_path(folder, name)));
      for (const TensorEntry& tensor : layout.tensors) {
        const std::int64_t half_bytes = tensor.size_bytes() / simulated_world_size;
        PartWriter writer(file, tensor.begin + rank * half_bytes);
        const auto bytes = simulated_bytes(step, rank, half_bytes);
        const auto middle = bytes.size() / 3;
        UK_TRY_VOID(writer.write(std::span(bytes).first(middle)));
        UK_TRY_VOID(writer.write(std::span(bytes).subspan(middle)));
        parts[rank].rank = rank;
        parts[rank].entries.push_back({tensor.name, writer.part()});
      }
      UK_TRY_VOID(file.sync());
    }
    UK_TRY(described, describe_file(files, folder, name));
    manifest.files.push_back(std::move(described));
  }
  UK_TRY(config, files.create(join_path(folder, "config.json")));
  const std::string text = "{\"step\": " + std::to_string(step) + "}\n";
  UK_TRY_VOID(config.write(std::as_bytes(std::span(text)), 0));
  std::array<std::byte, 64> buffer;
  UK_TRY(described, describe_file(files, folder, "config.json", buffer));
  manifest.files.push_back(std::move(described));
  UK_TRY_VOID(merge_parts(manifest, parts));
  return manifest;
}

inline Result<void> simulated_save(FileSystem& files, const std::string& output, std::int64_t step,
                                   const Rotation& rotation = {}) {
  UK_TRY(manifest, write_simulated_save(files, output, step));
  UK_TRY_VOID(finish_checkpoint(files, output, manifest));
  UK_TRY_VOID(remove_old_checkpoints(files, output, rotation));
  return {};
}

}  // namespace underkeel::io
