#pragma once
// A look at the values of weights that reads no more than it is allowed to: all of a small file, blocks spread evenly
// over the tensors of a large one.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "io/model_files.h"

namespace underkeel::io {

constexpr std::int64_t all_bytes = std::numeric_limits<std::int64_t>::max();

/// Index of the first value that is not finite; -1 without one. `bytes` holds whole elements.
std::int64_t first_not_finite(DType type, std::span<const std::byte> bytes);

struct ValueLook {
  struct Place {
    std::string path;
    std::string tensor;
    std::int64_t element_index = 0;
  };
  std::optional<Place> first_not_finite;
  std::int64_t tensors_not_finite = 0;
  std::int64_t read_bytes = 0;
  std::int64_t total_bytes = 0;

  bool is_whole() const { return read_bytes == total_bytes; }
};

/// Looks for values that are no finite numbers in all tensors of a type that is ours; at least one block of each while
/// that takes no more than as much again, pages where tensors are many, nothing of more than `most_bytes` / 4096 of them.
/// Errors: as FileSystem::open() and File::read().
Result<ValueLook> look_at_values(FileSystem& files, std::span<const SafetensorsHeader> headers,
                                 std::int64_t most_bytes);

struct Likeness {
  bool is_equal = false;
  std::int64_t read_bytes = 0;   // of one of them
  std::int64_t total_bytes = 0;  // of one of them

  bool is_whole() const { return read_bytes == total_bytes; }
};
/// Whether two tensors have the same type, shape and bytes. Those of unlike type or shape are not read.
/// Errors: as look_at_values().
Result<Likeness> compare_tensors(FileSystem& files, const FoundTensor& a, const FoundTensor& b,
                                 std::int64_t most_bytes);

}  // namespace underkeel::io
