#include "io/strict_json.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "io/file.h"

namespace underkeel::io {

namespace {

using Json = nlohmann::json;

/// Receives the library's events, keeps the path and the rules, and hands values to the visitor.
class Events final : public nlohmann::json_sax<Json> {
 public:
  Events(const std::string& where, JsonVisitor& visitor, const JsonLimits& limits)
      : where_(where), visitor_(visitor), limits_(limits) {}

  std::optional<Error> take_error() { return std::move(error_); }

  bool null() override { return scalar_value(nullptr); }
  bool boolean(bool value) override { return scalar_value(value); }
  // The library comes here only for a number with a minus sign.
  bool number_integer(number_integer_t value) override { return scalar_value(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    return scalar_value(std::uint64_t{value});
  }
  bool number_float(number_float_t value, const string_t&) override { return scalar_value(value); }
  bool string(string_t& value) override { return scalar_value(std::string_view(value)); }
  bool binary(binary_t&) override { return refuse("binary data in JSON"); }

  bool start_object(std::size_t) override { return start(true); }
  bool start_array(std::size_t) override { return start(false); }
  bool end_object() override { return finish(); }
  bool end_array() override { return finish(); }

  bool key(string_t& key) override {
    if (key.size() > limits_.key_bytes)
      return refuse(
          fmt::format("a name of {} bytes; at most {} are read", key.size(), limits_.key_bytes));
    keys_[path_.size() - 1].push_back(key);
    path_.back().key = std::move(key);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse(fmt::format("not JSON at byte {}", position));
  }

 private:
  bool refuse(std::string what) {
    error_ = Error{.code = ErrorCode::bad_file, .what = std::move(what), .where = where_};
    return false;
  }

  bool keep(Result<void> result) {
    if (!result) error_ = std::move(result).error();
    return !error_.has_value();
  }

  void enter_value() {
    if (!path_.empty() && !in_object_.back()) ++path_.back().index;
  }

  bool scalar_value(JsonScalar value) {
    enter_value();
    return keep(visitor_.scalar(path_, value));
  }

  bool start(bool is_object) {
    enter_value();
    if (static_cast<int>(path_.size()) >= limits_.depth)
      return refuse(fmt::format("nested deeper than {} levels", limits_.depth));
    if (!keep(is_object ? visitor_.begin_object(path_) : visitor_.begin_array(path_))) return false;
    path_.emplace_back();
    in_object_.push_back(is_object);
    if (keys_.size() < path_.size()) keys_.emplace_back();
    return true;
  }

  bool finish() {
    path_.pop_back();
    in_object_.pop_back();
    std::vector<std::string>& keys = keys_[path_.size()];
    std::sort(keys.begin(), keys.end());
    if (const auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end())
      return refuse(fmt::format("the key `{}` stands twice in one object", printable(*twice)));
    keys.clear();
    return keep(visitor_.end(path_));
  }

  const std::string& where_;
  JsonVisitor& visitor_;
  const JsonLimits& limits_;
  std::vector<JsonStep> path_;  // one step for each open container, to the value in it
  std::vector<bool> in_object_;
  std::vector<std::vector<std::string>> keys_;  // of the open objects, by depth; kept for the next
  std::optional<Error> error_;
};

}  // namespace

Result<void> read_strict_json(std::string_view text, const std::string& where, JsonVisitor& visitor,
                              const JsonLimits& limits) {
  // The library takes a zero byte for the end of the text, and skips a byte-order mark.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    return fail(ErrorCode::bad_file, fmt::format("not JSON at byte {}: a zero byte", zero + 1),
                where);
  if (text.starts_with("\xef\xbb\xbf"))
    return fail(ErrorCode::bad_file, "not JSON at byte 1: a byte-order mark", where);
  Events events(where, visitor, limits);
  if (Json::sax_parse(text.begin(), text.end(), &events)) return {};
  std::optional<Error> error = events.take_error();
  if (!error) error = Error{.code = ErrorCode::bad_file, .what = "not JSON", .where = where};
  return tl::unexpected(std::move(*error));
}

Result<std::string> json_quoted(std::string_view text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    return fail(ErrorCode::bad_file, fmt::format("the text `{}` is not UTF-8", printable(text)));
  }
}

}  // namespace underkeel::io
