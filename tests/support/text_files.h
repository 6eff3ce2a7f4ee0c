#pragma once
// Whole text files, for tests. Throws when the file system refuses.

#include <filesystem>
#include <string>
#include <string_view>

namespace underkeel::test {

/// The source tree; or, where what was built elsewhere is run, the copy of its parts that scripts/gpu_check made and
/// UNDERKEEL_SOURCE_DIR names.
std::filesystem::path source_folder();

std::string read_text(const std::filesystem::path& file);
/// Makes the folder above it too.
void write_text(const std::filesystem::path& file, std::string_view text);

}  // namespace underkeel::test
