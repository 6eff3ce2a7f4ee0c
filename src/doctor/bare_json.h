#pragma once
// JSON files that are whole and hold nothing to read: `{}`, `null`, a list where a config is due.

#include <string>
#include <string_view>
#include <vector>

#include "doctor/document.h"

namespace underkeel::doctor {

/// Whether `text`, all of the document's file, is such JSON. Then it is told, or the document is what its name says it is.
bool take_bare_json(std::string_view text, Document& document, std::vector<Finding>& findings);

}  // namespace underkeel::doctor
