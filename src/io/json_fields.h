#pragma once
// Fields of the JSON that checkpoints are described in; private to this layer.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/result.h"
#include "io/checksum.h"
#include "io/file.h"
#include "io/strict_json.h"

namespace underkeel::io {

/// Reads scalars out of events; shared by the manifest and the part lists.
class FieldVisitor : public JsonVisitor {
 public:
  explicit FieldVisitor(const std::string& source) : source_(source) {}

 protected:
  tl::unexpected<Error> bad(JsonPath path, std::string_view what) const {
    std::string field;
    for (const JsonStep& step : path)
      field += step.index >= 0 ? fmt::format("[{}]", step.index)
                               : fmt::format("{}{}", field.empty() ? "" : ".", printable(step.key));
    return fail(ErrorCode::bad_file, fmt::format("`{}` {}", field, what), source_);
  }

  Result<void> take(JsonPath path, const JsonScalar& value, std::optional<std::int64_t>& into) {
    const auto* number = std::get_if<std::uint64_t>(&value);
    if (number == nullptr || *number > std::numeric_limits<std::int64_t>::max())
      return bad(path, "is not a whole number from 0 to 2^63");
    into = static_cast<std::int64_t>(*number);
    return {};
  }
  Result<void> take(JsonPath path, const JsonScalar& value, std::optional<std::string>& into) {
    const auto* text = std::get_if<std::string_view>(&value);
    if (text == nullptr) return bad(path, "is not a text");
    into = std::string(*text);
    return {};
  }
  Result<void> take_checksum(JsonPath path, const JsonScalar& value,
                             std::optional<std::uint64_t>& into) {
    const auto* text = std::get_if<std::string_view>(&value);
    if (text != nullptr) into = parse_checksum(*text);
    if (!into) return bad(path, "is not a checksum of 16 hexadecimal digits");
    return {};
  }

  /// One part being read.
  struct PartDraft {
    std::optional<std::int64_t> begin;
    std::optional<std::int64_t> end;
    std::optional<std::uint64_t> xxh3_64;
  };
  Result<void> take_part_field(JsonPath path, const JsonScalar& value, PartDraft& part) {
    const std::string& key = path.back().key;
    if (key == "begin") return take(path, value, part.begin);
    if (key == "end") return take(path, value, part.end);
    if (key == "xxh3_64") return take_checksum(path, value, part.xxh3_64);
    return {};
  }
  Result<FilePart> finished(JsonPath path, const PartDraft& part) const {
    if (!part.begin || !part.end || !part.xxh3_64)
      return bad(path, "lacks one of begin, end, xxh3_64");
    return FilePart{*part.begin, *part.end, *part.xxh3_64};
  }

  const std::string& source_;
};

}  // namespace underkeel::io
