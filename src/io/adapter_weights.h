#pragma once
// What can be said of an adapter file by itself.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/safetensors.h"

namespace underkeel::io {

constexpr std::string_view adapter_weights_file = "adapter_model.safetensors";

/// What is wrong with the pairs of LoRA's matrices: one without the other, inner sizes that differ from one another or from
/// `rank` (0: not known, or not the same for all). The first few of each kind.
std::vector<Error> check_adapter_pairs(const SafetensorsHeader& header, std::int64_t rank);

/// Whether all second matrices (`lora_B`) hold zeros alone, as before training: the adapter then changes nothing. Nothing
/// when there are none, the file cannot be read, or they are larger than 256 MiB together.
std::optional<bool> second_matrices_are_zero(FileSystem& files, const SafetensorsHeader& header);

}  // namespace underkeel::io
