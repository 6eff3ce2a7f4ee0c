#pragma once
// YAML text into a Value with places. For spec and doctor.

#include <string_view>

#include "base/result.h"
#include "spec/value.h"

namespace underkeel::spec {

/// Plain words are typed as LLaMA-Factory's loader (OmegaConf) has it: 1e-4 is a number; yes, no,
/// on and off are truth values. JSON is YAML, so a JSON file reads too. An empty text is an empty
/// mapping.
/// Errors:  bad_file with line and column: syntax, a key twice in one mapping, anchors and aliases,
/// tags, bytes that are no UTF-8, nesting deeper than 64, several documents, more than 10,000 keys and values.
Result<Value> read_yaml(std::string_view text, std::string_view where);

}  // namespace underkeel::spec
