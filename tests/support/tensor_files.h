#pragma once
// Whole safetensors files in memory, for goldens and tiny models. Written apart from src/io on
// purpose: what one writes the other must read. Trusts its input; throws when it cannot be read.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace underkeel::test {

struct StoredTensor {
  DType type = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::int64_t element_count() const;
  /// Elements as f32, from f32, bf16 or f16.
  std::vector<float> as_f32() const;
  std::vector<std::int32_t> as_i32() const;
};

/// Rounds `values` to `type` (f32, bf16 or f16).
StoredTensor stored(DType type, std::vector<std::int64_t> shape, const std::vector<float>& values);
StoredTensor stored(std::vector<std::int64_t> shape, const std::vector<std::int32_t>& values);

using StoredTensors = std::map<std::string, StoredTensor>;

StoredTensors read_tensors(const std::filesystem::path& file);
/// In the map's order, with {"format": "pt"} as metadata.
void write_tensors(const std::filesystem::path& file, const StoredTensors& tensors);

}  // namespace underkeel::test
