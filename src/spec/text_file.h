#pragma once
// For spec and doctor.

#include <filesystem>
#include <string>

#include "base/result.h"

namespace underkeel::spec {

/// The whole text of a small configuration file.
/// Errors:  not_found, io; bad_file above 16 MiB.
Result<std::string> read_text_file(const std::filesystem::path& file);

}  // namespace underkeel::spec
