#pragma once
// One safetensors file: reading its header as if it came from an enemy, and laying out a new one so
// that several ranks can write their byte ranges into it.
// Not here: a folder of files with an index (model_files.h).
// Source: the format text and the reference reader's rules; stricter for doubled names.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "tensor/dtype.h"

namespace underkeel::io {

/// The reference reader's bound on a header.
constexpr std::int64_t longest_safetensors_header_bytes = 100'000'000;

struct TensorEntry {
  std::string name;
  std::string dtype_text;     // as in the file: "BF16"
  std::optional<DType> type;  // when it is one of ours
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // bytes of the file, from its first byte
  std::int64_t end = 0;    // exclusive

  std::int64_t size_bytes() const { return end - begin; }
  std::int64_t element_count() const;
};

struct SafetensorsHeader {
  std::string path;
  std::int64_t file_size_bytes = 0;
  std::int64_t data_begin = 0;       // of the first tensor byte
  std::vector<TensorEntry> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;

  /// Null when there is none; linear, for a few look-ups.
  const TensorEntry* find(std::string_view name) const;
};

/// "[2, 3]".
std::string shape_text(std::span<const std::int64_t> shape);

/// Reads and checks the header: its length against the file, JSON, entries, types, sizes, and that
/// the tensors cover the rest of the file exactly, without a hole or an overlap.
/// Memory: the header's own length and its entries; nothing is reserved on the file's word alone.
/// Errors: bad_file, naming the file and the tensor; as FileSystem::open().
Result<SafetensorsHeader> read_safetensors_header(FileSystem& files, const std::string& path);

/// The same for the JSON text alone. `data_size_bytes` is what follows it in the file.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, const std::string& path,
                                                   std::int64_t data_size_bytes);

/// Checks the first 8 bytes of a file of `file_size_bytes` and gives the length of the JSON.
Result<std::int64_t> safetensors_header_bytes(std::span<const std::byte, 8> first_bytes,
                                              const std::string& path,
                                              std::int64_t file_size_bytes);

/// The length of the JSON of the file at `path`, which is read no further. Errors: as read_safetensors_header().
Result<std::int64_t> safetensors_header_bytes(FileSystem& files, const std::string& path);

/// A tensor to be written.
struct TensorSpec {
  std::string name;
  DType type = DType::f32;
  std::vector<std::int64_t> shape;

  std::int64_t element_count() const;
  std::int64_t size_bytes() const { return bytes_of(type, element_count()); }
};

/// A file laid out before a byte is written.
struct SafetensorsLayout {
  std::string header;                // all bytes before the first tensor
  std::vector<TensorEntry> tensors;  // in the order of their bytes, with absolute ranges
  std::int64_t file_size_bytes = 0;

  const TensorEntry* find(std::string_view name) const;
};

/// Places `tensors` as the reference writer does: by type, inside a type by name, no gaps. The file
/// is, byte for byte, what that writer makes from the same tensors.
/// Errors: unsupported for nf4, which the format does not know; bad_file for a doubled name or one
/// that is not UTF-8.
Result<SafetensorsLayout> lay_out_safetensors(std::vector<TensorSpec> tensors,
                                              const std::map<std::string, std::string>& metadata = {
                                                  {"format", "pt"}});

/// Creates `path` at its full size and writes the header; the tensor bytes are up to the ranks.
Result<File> create_safetensors(FileSystem& files, const std::string& path,
                                const SafetensorsLayout& layout);

}  // namespace underkeel::io
