#pragma once
// One record of comma separated values, cut into its values.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace underkeel::data {

/// The values of `text`: commas part them, quotation marks hold commas and line ends together, two
/// quotation marks are one. A value that pandas, LLaMA-Factory's reader, takes as missing (empty, NA,
/// null, ...) is none. Every other value is text, also one that is a number.
std::vector<std::optional<std::string>> csv_values(std::string_view text);

/// The same for the names of the columns, of which none is missing. A name that comes again has its number behind it, as
/// with pandas: a, a.1.
std::vector<std::string> csv_names(std::string_view text);

}  // namespace underkeel::data
