#pragma once
// Files that a user named, and what to do where a path is not there.

#include <filesystem>
#include <string>

#include "base/result.h"

namespace underkeel::spec {

/// What to do where a path that a user gave is not there: the nearest name in its folder, else where it was looked for.
std::string where_to_look(const std::filesystem::path& path);

/// read_text_file() of a file that a user named: where it is not there, the error says what to do.
Result<std::string> read_named_file(const std::filesystem::path& file);

}  // namespace underkeel::spec
