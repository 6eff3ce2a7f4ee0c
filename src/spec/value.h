#pragma once
// A parsed JSON or YAML document: kinds, text as written, and where every value stands. Shared by
// the model config, the run file, the DeepSpeed JSON and hardware.yaml, so that all of them can
// name line and column. For spec, and for doctor, which explains such files.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace underkeel::spec {

enum class ValueKind { null, boolean, number, text, list, mapping };

/// A stretch of the source text. Lines and columns count from 1; line 0 means "not from a file".
struct Place {
  int line = 0;
  int column = 0;
  std::size_t begin = 0;  // byte offsets
  std::size_t end = 0;
};

struct Entry;

struct Value {
  ValueKind kind = ValueKind::null;
  bool boolean = false;
  bool overridden = false;     // given on the command line
  std::string text;            // the content of a text, a number as it is written
  std::vector<Value> items;    // of a list
  std::vector<Entry> entries;  // of a mapping, in the file's order, keys unique
  Place place;

  /// The entry's value, or null when this is no mapping or has no such key.
  const Value* find(std::string_view key) const;
};

struct Entry {
  std::string key;
  Place key_place;
  Value value;
};

/// "a number", "text", "a list", ... for messages.
std::string_view name_of(ValueKind kind);
/// The value as a message shows it: `8`, `"8"`, `null`, `[...]`; long text is cut.
std::string shown(const Value& value);
/// A number or a text as a finite double; nullopt for anything else, and for what overflows.
std::optional<double> to_double(const Value& value);
/// A whole number, also written as 5e8 or 4096.0; nullopt when it has a fraction or does not fit.
std::optional<std::int64_t> to_integer(const Value& value);
std::optional<double> parse_double(std::string_view text);
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace underkeel::spec
