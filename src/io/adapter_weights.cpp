#include "io/adapter_weights.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/units.h"

namespace underkeel::io {
namespace {

// Adapters are small; what is larger is not read.
constexpr std::int64_t most_adapter_bytes = 256 * mebibyte;

}  // namespace

std::optional<bool> second_matrices_are_zero(FileSystem& files, const SafetensorsHeader& header) {
  auto file = files.open(header.path);
  if (!file) return std::nullopt;
  std::int64_t read = 0;
  bool any = false;
  for (const TensorEntry& entry : header.tensors) {
    if (entry.name.find(".lora_B") == std::string::npos || entry.size_bytes() == 0) continue;
    read += entry.size_bytes();
    if (read > most_adapter_bytes) return std::nullopt;
    std::vector<std::byte> bytes(static_cast<std::size_t>(entry.size_bytes()));
    if (!file->read(bytes, entry.begin)) return std::nullopt;
    any = true;
    const bool is_zero = std::all_of(bytes.begin(), bytes.end(),
                                     [](std::byte byte) { return byte == std::byte{0}; });
    if (!is_zero) return false;
  }
  return any ? std::optional(true) : std::nullopt;
}

}  // namespace underkeel::io
