// Reads a safetensors header. Every number is checked before it is used, every length before memory
// is taken for it.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/foreign_content.h"
#include "base/printable.h"
#include "base/units.h"
#include "io/safetensors.h"
#include "io/safetensors_types.h"
#include "io/strict_json.h"

namespace underkeel::io {

namespace {

constexpr std::string_view reload_hint = "copy or download the file again";
constexpr std::string_view metadata_key = "__metadata__";

std::string tensor_place(const std::string& path, std::string_view name) {
  return fmt::format("{}, tensor {}", path, printable(name));
}

/// Gathers the entries; ranges stay relative to the data section.
class HeaderVisitor final : public JsonVisitor {
 public:
  explicit HeaderVisitor(SafetensorsHeader& header) : header_(header) {}

  Result<void> begin_object(JsonPath path) override {
    if (path.size() == 1 && path[0].key != metadata_key) {
      entry_ = {};
      entry_.name = path[0].key;
      seen_ = {};
      offset_count_ = 0;
      return {};
    }
    if (path.size() >= 2) return begin_container(path);
    return {};
  }

  Result<void> begin_array(JsonPath path) override {
    if (path.size() < 2) return not_an_object(path);
    if (path.size() == 2 && path[0].key != metadata_key) {
      if (path[1].key == "shape") seen_.shape = true;
      if (path[1].key == "data_offsets") seen_.offsets = true;
      if (path[1].key == "shape" || path[1].key == "data_offsets") return {};
    }
    return begin_container(path);
  }

  Result<void> scalar(JsonPath path, const JsonScalar& value) override {
    if (path.size() < 2) return not_an_object(path);
    if (path[0].key == metadata_key) {
      const auto* text = std::get_if<std::string_view>(&value);
      if (text == nullptr)
        return bad(fmt::format("__metadata__ key `{}` is not a text", printable(path[1].key)));
      header_.metadata[path[1].key] = std::string(*text);
      return {};
    }
    const std::string& key = path[1].key;
    if (path.size() == 2) {
      if (key == "dtype") return take_type(value);
      if (key == "shape" || key == "data_offsets")
        return bad_entry(entry_.name, fmt::format("`{}` is not a list", key));
      return {};  // other keys are for other readers
    }
    if (path.size() == 3 && key == "shape") return take_dimension(value);
    if (path.size() == 3 && key == "data_offsets") return take_offset(value);
    return {};
  }

  Result<void> end(JsonPath path) override {
    if (path.size() != 1 || path[0].key == metadata_key) return {};
    if (!seen_.type) return bad_entry(entry_.name, "has no `dtype`");
    if (!seen_.shape) return bad_entry(entry_.name, "has no `shape`");
    if (!seen_.offsets || offset_count_ != 2)
      return bad_entry(entry_.name,
                       fmt::format("`data_offsets` needs 2 numbers, found {}", offset_count_));
    UK_TRY_VOID(check_size());
    header_.tensors.push_back(std::move(entry_));
    return {};
  }

 private:
  struct Seen {
    bool type = false;
    bool shape = false;
    bool offsets = false;
  };

  tl::unexpected<Error> bad(std::string what) const {
    return fail(ErrorCode::bad_file, std::move(what), header_.path, std::string(reload_hint));
  }
  tl::unexpected<Error> bad_entry(std::string_view name, std::string what) const {
    return fail(ErrorCode::bad_file, "header entry " + std::move(what),
                tensor_place(header_.path, name), std::string(reload_hint));
  }

  tl::unexpected<Error> not_an_object(JsonPath path) const {
    if (path.empty()) return bad("the header is not a JSON object");
    return bad_entry(path[0].key, "is not a JSON object");
  }

  /// An object or list where only one of our own fields, or nobody's, may have one.
  Result<void> begin_container(JsonPath path) const {
    if (path[0].key == metadata_key)
      return bad(fmt::format("__metadata__ key `{}` is not a text", printable(path[1].key)));
    const std::string& key = path[1].key;
    if (key == "dtype") return bad_entry(entry_.name, "`dtype` is not a text");
    if (key == "shape" || key == "data_offsets")
      return bad_entry(entry_.name, fmt::format("`{}` is not a list of numbers", key));
    return {};
  }

  Result<void> take_type(const JsonScalar& value) {
    const auto* text = std::get_if<std::string_view>(&value);
    if (text == nullptr) return bad_entry(entry_.name, "`dtype` is not a text");
    const auto* known =
        std::find_if(safetensors_types.begin(), safetensors_types.end(),
                     [&](const SafetensorsType& candidate) { return candidate.text == *text; });
    if (known == safetensors_types.end())
      return bad_entry(entry_.name, fmt::format("has an unknown type `{}`", printable(*text)));
    entry_.dtype_text = known->text;
    entry_.type = known->type;
    bits_ = known->bits;
    seen_.type = true;
    return {};
  }

  Result<std::int64_t> whole_number(const JsonScalar& value, std::string_view key) const {
    const auto* number = std::get_if<std::uint64_t>(&value);
    if (number == nullptr || *number > std::numeric_limits<std::int64_t>::max())
      return bad_entry(
          entry_.name,
          fmt::format("`{}` holds something else than a whole number from 0 to 2^63", key));
    return static_cast<std::int64_t>(*number);
  }

  Result<void> take_dimension(const JsonScalar& value) {
    UK_TRY(size, whole_number(value, "shape"));
    if (entry_.shape.size() == most_dimensions)
      return bad_entry(entry_.name, fmt::format("has more than {} dimensions", most_dimensions));
    entry_.shape.push_back(size);
    return {};
  }

  Result<void> take_offset(const JsonScalar& value) {
    UK_TRY(offset, whole_number(value, "data_offsets"));
    if (offset_count_ == 0) entry_.begin = offset;
    if (offset_count_ == 1) entry_.end = offset;
    ++offset_count_;
    return {};
  }

  Result<void> check_size() const {
    if (entry_.end < entry_.begin)
      return bad_entry(entry_.name, fmt::format("ends at byte {} before its begin {}", entry_.end,
                                                entry_.begin));
    std::int64_t bits = bits_;
    for (const std::int64_t size : entry_.shape)
      if (__builtin_mul_overflow(bits, size, &bits))
        return bad_entry(entry_.name,
                         fmt::format("has a shape {} beyond any size", shape_text(entry_.shape)));
    if (bits % 8 != 0)
      return bad_entry(entry_.name, fmt::format("of type {} and shape {} does not fill whole bytes",
                                                entry_.dtype_text, shape_text(entry_.shape)));
    if (entry_.end - entry_.begin != bits / 8)
      return bad_entry(entry_.name,
                       fmt::format("covers {} bytes; type {} and shape {} need {}",
                                   format_count(entry_.end - entry_.begin), entry_.dtype_text,
                                   shape_text(entry_.shape), format_count(bits / 8)));
    return {};
  }

  SafetensorsHeader& header_;
  TensorEntry entry_;
  Seen seen_;
  int bits_ = 0;
  std::int64_t offset_count_ = 0;
};

/// Entries in byte order follow one another from 0 to the end of the file.
Result<void> check_coverage(const SafetensorsHeader& header, std::int64_t data_size_bytes) {
  std::int64_t position = 0;
  for (const TensorEntry& entry : header.tensors) {
    if (entry.begin != position)
      return fail(ErrorCode::bad_file,
                  fmt::format("{} of {} bytes before the tensor at byte {} of the data",
                              entry.begin > position ? "hole" : "overlap",
                              format_count(entry.begin > position ? entry.begin - position
                                                                  : position - entry.begin),
                              entry.begin),
                  tensor_place(header.path, entry.name), std::string(reload_hint));
    position = entry.end;
  }
  if (position != data_size_bytes)
    return fail(ErrorCode::bad_file,
                fmt::format("the file {}: {} bytes of tensors expected, {} found",
                            position > data_size_bytes ? "is short" : "has bytes left over",
                            format_count(position), format_count(data_size_bytes)),
                header.path, std::string(reload_hint));
  return {};
}

}  // namespace

std::int64_t TensorEntry::element_count() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

const TensorEntry* SafetensorsHeader::find(std::string_view name) const {
  for (const TensorEntry& entry : tensors)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Result<std::int64_t> safetensors_header_bytes(std::span<const std::byte, 8> first_bytes,
                                              const std::string& path,
                                              std::int64_t file_size_bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, first_bytes.data(), sizeof length);
  if (length > longest_safetensors_header_bytes)
    return fail(ErrorCode::bad_file,
                fmt::format("header of {} bytes; at most {} are allowed", length,
                            format_count(longest_safetensors_header_bytes)),
                path, "is this a safetensors file? " + std::string(reload_hint));
  const auto header_bytes = static_cast<std::int64_t>(length);
  if (8 + header_bytes > file_size_bytes)
    return fail(ErrorCode::bad_file,
                fmt::format("file is short: header of {} bytes in a file of {}",
                            format_count(header_bytes), format_count(file_size_bytes)),
                path, std::string(reload_hint));
  return header_bytes;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, const std::string& path,
                                                   std::int64_t data_size_bytes) {
  if (!json.starts_with('{'))
    return fail(ErrorCode::bad_file, "the header does not start with `{`", path,
                "is this a safetensors file? " + std::string(reload_hint));
  SafetensorsHeader header;
  header.path = path;
  header.data_begin = 8 + static_cast<std::int64_t>(json.size());
  header.file_size_bytes = header.data_begin + data_size_bytes;
  HeaderVisitor visitor(header);
  UK_TRY_VOID(read_strict_json(json, path, visitor));
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const TensorEntry& a, const TensorEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  UK_TRY_VOID(check_coverage(header, data_size_bytes));
  for (TensorEntry& entry : header.tensors) {
    entry.begin += header.data_begin;
    entry.end += header.data_begin;
  }
  return header;
}

Result<std::int64_t> safetensors_header_bytes(FileSystem& files, const std::string& path) {
  UK_TRY(file, files.open(path));
  UK_TRY(file_size_bytes, file.size_bytes());
  std::array<std::byte, 8> first_bytes{};
  if (file_size_bytes < std::ssize(first_bytes))
    return fail(ErrorCode::bad_file, fmt::format("file of {} bytes", file_size_bytes), path);
  UK_TRY_VOID(file.read(first_bytes, 0));
  return safetensors_header_bytes(first_bytes, path, file_size_bytes);
}

Result<SafetensorsHeader> read_safetensors_header(FileSystem& files, const std::string& path) {
  UK_TRY(file, files.open(path));
  UK_TRY(file_size_bytes, file.size_bytes());
  std::string start(static_cast<std::size_t>(std::min<std::int64_t>(file_size_bytes, 512)), '\0');
  UK_TRY_VOID(file.read(std::as_writable_bytes(std::span(start)), 0));
  if (const auto foreign = stand_in_of(start))
    return fail(ErrorCode::bad_file, fmt::format("the content is {}", foreign->what), path,
                foreign->fix);
  if (file_size_bytes < 8)
    return fail(ErrorCode::bad_file,
                fmt::format("file of {} bytes; a safetensors file has at least 8", file_size_bytes),
                path, std::string(reload_hint));
  const auto first_bytes = std::as_bytes(std::span(start)).first<8>();
  UK_TRY(header_bytes, safetensors_header_bytes(first_bytes, path, file_size_bytes));
  std::string json(static_cast<std::size_t>(header_bytes), '\0');
  UK_TRY_VOID(file.read(std::as_writable_bytes(std::span(json)), 8));
  return parse_safetensors_header(json, path, file_size_bytes - 8 - header_bytes);
}

}  // namespace underkeel::io
