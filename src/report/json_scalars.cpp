#include "report/json_scalars.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace underkeel::report {

namespace {

/// Python's words for figures that are none, outside of strings, as null.
std::string with_nulls(std::string_view text) {
  std::string made;
  made.reserve(text.size() + 64);
  bool is_in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    std::size_t length = 1;
    if (is_in_string && rest[0] == '\\') {
      length = std::min<std::size_t>(2, rest.size());
    } else if (rest[0] == '"') {
      is_in_string = !is_in_string;
    } else if (!is_in_string) {
      for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
        if (!rest.starts_with(word)) continue;
        made += "null";
        at += word.size();
        length = 0;
        break;
      }
    }
    made.append(rest.substr(0, length));
    at += length;
  }
  return made;
}

class Scalars final : public io::JsonVisitor {
 public:
  using Visit = std::function<void(io::JsonPath, const io::JsonScalar&)>;
  explicit Scalars(const Visit& visit) : visit_(visit) {}
  Result<void> begin_object(io::JsonPath) override { return {}; }
  Result<void> begin_array(io::JsonPath) override { return {}; }
  Result<void> end(io::JsonPath) override { return {}; }
  Result<void> scalar(io::JsonPath path, const io::JsonScalar& value) override {
    visit_(path, value);
    return {};
  }

 private:
  const Visit& visit_;
};

}  // namespace

Result<void> for_each_scalar(
    std::string_view text, const std::string& where,
    const std::function<void(io::JsonPath, const io::JsonScalar&)>& visit) {
  Scalars scalars(visit);
  const bool has_none =
      text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos;
  if (!has_none) return io::read_strict_json(text, where, scalars);
  return io::read_strict_json(with_nulls(text), where, scalars);
}

std::optional<double> number_of(const io::JsonScalar& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* whole = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<std::int64_t> whole_of(const io::JsonScalar& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  const auto* whole = std::get_if<std::uint64_t>(&value);
  if (whole == nullptr || *whole > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return static_cast<std::int64_t>(*whole);
}

std::optional<std::string> text_of(const io::JsonScalar& value) {
  const auto* text = std::get_if<std::string_view>(&value);
  return text == nullptr ? std::nullopt : std::optional(std::string(*text));
}

std::string words_of(const io::JsonScalar& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::nullptr_t>)
          return "null";
        else if constexpr (std::is_same_v<Held, std::string_view>)
          return std::string(held);
        else
          return fmt::format("{}", held);
      },
      value);
}

}  // namespace underkeel::report
