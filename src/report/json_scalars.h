#pragma once
// Scalars out of JSON that nobody vouches for, by their path, without a document in memory.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/strict_json.h"

namespace underkeel::report {

/// Calls visit(path, value) for every scalar of `text`. NaN, Infinity and -Infinity, which Python writes where a figure is
/// none, count as null.
/// Errors: bad_file when it is not strict JSON, or is nested deeper than what is read here.
Result<void> for_each_scalar(std::string_view text, const std::string& where,
                             const std::function<void(io::JsonPath, const io::JsonScalar&)>& visit);

/// A number; nullopt of anything else.
std::optional<double> number_of(const io::JsonScalar& value);
/// A whole number; nullopt of anything else.
std::optional<std::int64_t> whole_of(const io::JsonScalar& value);
std::optional<std::string> text_of(const io::JsonScalar& value);
/// Any scalar in words.
std::string words_of(const io::JsonScalar& value);

}  // namespace underkeel::report
