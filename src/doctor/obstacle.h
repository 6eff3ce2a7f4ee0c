#pragma once
// What keeps a path from being looked at: nothing there, no permission, links in a loop.

#include <filesystem>
#include <optional>
#include <string>

#include "doctor/finding.h"

namespace underkeel::doctor {

/// Nothing when `path` is a folder or a file that can be read, or is neither, which is the caller's to tell. `file` is the
/// name in the finding, an error.
std::optional<Finding> obstacle_of(const std::filesystem::path& path, const std::string& file);

}  // namespace underkeel::doctor
