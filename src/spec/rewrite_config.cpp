// config.json for an export: the bytes that were read, with one value replaced in place.

#include <algorithm>

#include <fmt/format.h>

#include "spec/json_reader.h"
#include "spec/model_spec.h"

namespace underkeel::spec {

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
  UK_TRY(document, read_json(original_json, "config.json", JsonDialect::strict));
  const Value& root = document.root;
  if (root.kind != ValueKind::mapping)
    return fail(ErrorCode::bad_file, "a JSON object is wanted", "config.json");

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
  const std::string entry =
      fmt::format("\"{}\": {}", old_spelling ? "torch_dtype" : "dtype", quoted);
  if (root.entries.empty()) {
    text.replace(root.place.begin, root.place.end - root.place.begin, "{" + entry + "}");
    return text;
  }
  // After the last entry, with the blanks that stand before its key.
  const Entry& last = root.entries.back();
  std::size_t blanks = last.key_place.begin;
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (blanks > 0 && is_blank(text[blanks - 1])) --blanks;
  const std::string separator = text.substr(blanks, last.key_place.begin - blanks);
  text.insert(last.value.place.end, "," + separator + entry);
  return text;
}

}  // namespace underkeel::spec
