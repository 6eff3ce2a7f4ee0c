#pragma once
// JSON text into a Value with places. For spec and doctor.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/value.h"

namespace underkeel::spec {

/// strict: JSON as RFC 8259 has it, plus a byte-order mark.
/// relaxed: also `//`, `#` and `/* */` comments, trailing commas and bare keys, as DeepSpeed's
/// reader takes them.
/// last_holds: relaxed, and of a key that is given twice the last holds, as for Python's json.
enum class JsonDialect { strict, relaxed, last_holds };

struct RepeatedKey {
  std::string key;
  Place place;  // of the later one
};

struct JsonDocument {
  Value root;
  /// What a strict reader would refuse, one sentence each with line and column, of the first 20. Relaxed only.
  std::vector<std::string> departures;
  std::vector<RepeatedKey> repeated;  // of last_holds; the first 20
};

/// Errors: bad_file with line and column: syntax, a key twice in one object (but last_holds), nesting deeper than
/// 64, text that is no UTF-8, NaN or Infinity, more than 16 MiB of text; unsupported above 100,000 values.
Result<JsonDocument> read_json(std::string_view text, std::string_view where, JsonDialect dialect);

}  // namespace underkeel::spec
