// config.json for an export: the bytes that were read, with one value replaced in place.

#include <algorithm>

#include <fmt/format.h>

#include "base/byte_order_mark.h"
#include "spec/json_reader.h"
#include "spec/model_spec.h"

namespace underkeel::spec {
namespace {

/// `text` with one more entry in the object `root`, after the last one, with the blanks that stand
/// before that one's key.
std::string with_entry(std::string text, const Value& root, std::string_view key,
                       std::string_view literal) {
  const std::string entry = fmt::format("\"{}\": {}", key, literal);
  if (root.entries.empty()) {
    text.replace(root.place.begin, root.place.end - root.place.begin, "{" + entry + "}");
    return text;
  }
  const Entry& last = root.entries.back();
  std::size_t blanks = last.key_place.begin;
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (blanks > 0 && is_blank(text[blanks - 1])) --blanks;
  const std::string separator = text.substr(blanks, last.key_place.begin - blanks);
  text.insert(last.value.place.end, "," + separator + entry);
  return text;
}

Result<JsonDocument> read_config(std::string_view text) {
  UK_TRY(document, read_json(text, "config.json", JsonDialect::strict));
  if (document.root.kind != ValueKind::mapping)
    return fail(ErrorCode::bad_file, "a JSON object is wanted", "config.json");
  return document;
}

}  // namespace

Result<std::string> rewrite_model_config(std::string_view original_json, DType stored_type) {
  std::string_view name;
  switch (stored_type) {
    case DType::f32:
      name = "float32";
      break;
    case DType::bf16:
      name = "bfloat16";
      break;
    case DType::f16:
      name = "float16";
      break;
    default:
      return fail(ErrorCode::unsupported,
                  fmt::format("config.json cannot name weights of type {}", name_of(stored_type)),
                  "config.json");
  }
  // Readers of the Hub take no mark.
  original_json = without_byte_order_mark(original_json);
  UK_TRY(document, read_config(original_json));
  const Value& root = document.root;

  const std::string quoted = fmt::format("\"{}\"", name);
  std::vector<Place> places;
  for (const char* key : {"dtype", "torch_dtype"})
    if (const Value* value = root.find(key)) places.push_back(value->place);
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.begin > b.begin; });
  std::string text(original_json);
  for (const Place& place : places) text.replace(place.begin, place.end - place.begin, quoted);
  if (!places.empty()) return text;

  const bool old_spelling =
      root.find("rope_theta") != nullptr || root.find("rope_scaling") != nullptr;
  return with_entry(std::move(text), root, old_spelling ? "torch_dtype" : "dtype", quoted);
}

Result<std::string> set_config_entry(std::string_view config_json, std::string_view key,
                                     std::string_view literal) {
  config_json = without_byte_order_mark(config_json);
  UK_TRY(document, read_config(config_json));
  std::string text(config_json);
  const Value* value = document.root.find(key);
  if (value == nullptr) return with_entry(std::move(text), document.root, key, literal);
  text.replace(value->place.begin, value->place.end - value->place.begin, literal);
  return text;
}

}  // namespace underkeel::spec
