#pragma once
// JSON from a file that nobody vouches for: read as a stream of events, nothing kept. Stricter than
// the library below it: no doubled key, no zero byte, no byte-order mark, bounded depth and names.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace underkeel::io {

/// null, a truth value, a whole number that is not negative, a negative whole number, any other
/// number, a text.
using JsonScalar =
    std::variant<std::nullptr_t, bool, std::uint64_t, std::int64_t, double, std::string_view>;

/// One step from a container to what it holds.
struct JsonStep {
  std::string key;          // in an object
  std::int64_t index = -1;  // in an array, from 0
};
/// The way from the top to a value; empty for the top value itself.
using JsonPath = std::span<const JsonStep>;

/// Told of every value in the order of the text. An error ends the reading and is handed on.
class JsonVisitor {
 public:
  virtual ~JsonVisitor() = default;
  virtual Result<void> begin_object(JsonPath path) = 0;
  virtual Result<void> begin_array(JsonPath path) = 0;
  /// The object or array at `path` is complete.
  virtual Result<void> end(JsonPath path) = 0;
  virtual Result<void> scalar(JsonPath path, const JsonScalar& value) = 0;
};

struct JsonLimits {
  int depth = 16;
  std::size_t key_bytes = 4096;
};

/// Reads `text` whole. `where` names the source in errors.
/// Errors: bad_file for anything that is not strict JSON (with the byte); the visitor's own.
Result<void> read_strict_json(std::string_view text, const std::string& where, JsonVisitor& visitor,
                              const JsonLimits& limits = {});

/// `text` as a JSON string with its quotes. Errors: bad_file when it is not UTF-8.
Result<std::string> json_quoted(std::string_view text);

}  // namespace underkeel::io
