#pragma once
// Whole text files, for tests. Throws when the file system refuses.

#include <filesystem>
#include <string>
#include <string_view>

namespace underkeel::test {

std::string read_text(const std::filesystem::path& file);
/// Makes the folder above it too.
void write_text(const std::filesystem::path& file, std::string_view text);

}  // namespace underkeel::test
