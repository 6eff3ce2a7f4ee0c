// Lays out a safetensors file before a byte of it is written.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/units.h"
#include "io/safetensors.h"
#include "io/safetensors_types.h"
#include "io/strict_json.h"

namespace underkeel::io {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

namespace {

/// Position in the writer's order of types; the table's size for a type the format does not know.
std::size_t type_rank(DType type) {
  const auto* found =
      std::find_if(safetensors_types.begin(), safetensors_types.end(),
                   [&](const SafetensorsType& candidate) { return candidate.type == type; });
  return static_cast<std::size_t>(found - safetensors_types.begin());
}

}  // namespace

std::int64_t TensorSpec::element_count() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

const TensorEntry* SafetensorsLayout::find(std::string_view name) const {
  for (const TensorEntry& entry : tensors)
    if (entry.name == name) return &entry;
  return nullptr;
}

Result<SafetensorsLayout> lay_out_safetensors(std::vector<TensorSpec> tensors,
                                              const std::map<std::string, std::string>& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorSpec& a, const TensorSpec& b) {
    return std::pair(type_rank(a.type), std::string_view(a.name)) <
           std::pair(type_rank(b.type), std::string_view(b.name));
  });

  SafetensorsLayout layout;
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      UK_TRY(quoted_key, json_quoted(key));
      UK_TRY(quoted_value, json_quoted(value));
      json += fmt::format("{}{}:{}", json.ends_with('{') ? "" : ",", quoted_key, quoted_value);
    }
    json += "}";
  }
  std::vector<std::string_view> names;
  std::int64_t position = 0;
  for (TensorSpec& tensor : tensors) {
    const std::size_t rank = type_rank(tensor.type);
    if (rank == safetensors_types.size())
      return fail(ErrorCode::unsupported,
                  fmt::format("safetensors knows no type {}", name_of(tensor.type)),
                  "tensor " + printable(tensor.name), "store its bytes as u8");
    const std::int64_t end = position + tensor.size_bytes();
    UK_TRY(name, json_quoted(tensor.name));
    json += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        json.size() == 1 ? "" : ",", name, safetensors_types[rank].text,
                        fmt::join(tensor.shape, ","), position, end);
    layout.tensors.push_back({.name = std::move(tensor.name),
                              .dtype_text = std::string(safetensors_types[rank].text),
                              .type = tensor.type,
                              .shape = std::move(tensor.shape),
                              .begin = position,
                              .end = end});
    position = end;
  }
  json += "}";
  json.resize(static_cast<std::size_t>(round_up(std::ssize(json), 8)), ' ');
  if (std::ssize(json) > longest_safetensors_header_bytes)
    return fail(
        ErrorCode::unsupported,
        fmt::format("a header of {} bytes; safetensors allows {}", format_count(std::ssize(json)),
                    format_count(longest_safetensors_header_bytes)),
        "", "write smaller shards");

  for (const TensorEntry& entry : layout.tensors) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return fail(ErrorCode::bad_file, "two tensors of one name in one file",
                "tensor " + printable(*twice));

  const std::uint64_t json_bytes = json.size();
  layout.header.resize(8);
  std::memcpy(layout.header.data(), &json_bytes, 8);
  layout.header += json;
  const std::int64_t data_begin = std::ssize(layout.header);
  for (TensorEntry& entry : layout.tensors) {
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  layout.file_size_bytes = data_begin + position;
  return layout;
}

Result<File> create_safetensors(FileSystem& files, const std::string& path,
                                const SafetensorsLayout& layout) {
  UK_TRY(file, files.create(path));
  UK_TRY_VOID(file.preallocate(layout.file_size_bytes));
  UK_TRY_VOID(file.write(std::as_bytes(std::span(layout.header)), 0));
  return file;
}

}  // namespace underkeel::io
