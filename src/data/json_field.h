#pragma once
// Typed fields of a JSON object, with errors that name the key. Json is nlohmann::json, which
// headers do not include.

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/result.h"

namespace underkeel::data {

/// The error for `key`, inside the object that lies at `path`.
inline tl::unexpected<Error> bad_field(std::string_view path, std::string_view key,
                                       std::string_view wanted) {
  return fail(ErrorCode::bad_file, fmt::format("`{}` is not {}", key, wanted),
              fmt::format("{}.{}", path, key));
}

/// nullptr when the key is absent or null.
template <class Json>
const Json* find_field(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

template <class Json>
Result<bool> bool_field(const Json& object, std::string_view path, std::string_view key,
                        bool absent) {
  const Json* field = find_field(object, key);
  if (field == nullptr) return absent;
  if (!field->is_boolean()) return bad_field(path, key, "true or false");
  return field->template get<bool>();
}

/// Empty when absent.
template <class Json>
Result<std::string> text_field(const Json& object, std::string_view path, std::string_view key) {
  const Json* field = find_field(object, key);
  if (field == nullptr) return std::string();
  if (!field->is_string()) return bad_field(path, key, "a text");
  return field->template get<std::string>();
}

}  // namespace underkeel::data
