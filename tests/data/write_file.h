#pragma once
// Writes a small file for a test, and the folders above it.

#include <filesystem>
#include <fstream>
#include <string_view>

namespace underkeel::data {

inline void write_file(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace underkeel::data
