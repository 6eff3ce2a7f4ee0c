#pragma once
// What can be said of an adapter file by itself.

#include <optional>
#include <string_view>

#include "io/safetensors.h"

namespace underkeel::io {

constexpr std::string_view adapter_weights_file = "adapter_model.safetensors";

/// Whether all second matrices (`lora_B`) hold zeros alone, as before training: the adapter then changes nothing. Nothing
/// when there are none, the file cannot be read, or they are larger than 256 MiB together.
std::optional<bool> second_matrices_are_zero(FileSystem& files, const SafetensorsHeader& header);

}  // namespace underkeel::io
