#pragma once
// What a checkpoint folder holds: every tensor with its place and checksums, whatever the number of
// ranks that wrote it. Plain data, its JSON text, and the check of that text.
// Not here: folders, durability, rotation (checkpoint.h).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/checksum.h"
#include "tensor/dtype.h"

namespace underkeel::io {

constexpr std::string_view manifest_file = "manifest.json";

struct CheckpointFile {
  std::string name;  // plain file name in the checkpoint's folder
  std::int64_t size_bytes = 0;
  std::optional<std::uint64_t> xxh3_64;  // of the whole file; for files without tensors
};

struct CheckpointTensor {
  std::string name;
  DType type = DType::f32;
  std::vector<std::int64_t> shape;
  std::string file;
  std::int64_t begin = 0;       // bytes of the file
  std::int64_t end = 0;         // exclusive
  std::vector<FilePart> parts;  // in order, covering [begin, end) exactly; none when empty
};

struct Manifest {
  std::int64_t step = 0;
  std::string plan_hash;
  std::string state;  // the trainer's own JSON, kept as it is
  std::vector<CheckpointFile> files;
  std::vector<CheckpointTensor> tensors;

  const CheckpointTensor* find(std::string_view name) const;
};

/// Errors: bad_file for a text that is not UTF-8.
Result<std::string> to_json(const Manifest& manifest);

/// Reads the text and checks all that it says by itself: see check_manifest().
/// Errors: bad_file, naming `path` and the tensor; unsupported for a newer version.
Result<Manifest> parse_manifest(std::string_view text, const std::string& path);

/// Names are plain and single; every tensor lies inside a listed file, has the bytes that its type
/// and shape need, is covered by its parts exactly, and overlaps no other.
Result<void> check_manifest(const Manifest& manifest, const std::string& path);

}  // namespace underkeel::io
