#include "report/json_scalars.h"

#include <limits>

#include <fmt/format.h>

namespace underkeel::report {

namespace {

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
  return io::read_strict_json(text, where, scalars);
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
