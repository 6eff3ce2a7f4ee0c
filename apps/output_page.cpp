#include "output_page.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "base/check.h"

namespace underkeel::apps {

namespace {

bool begins_with(const std::string& path, std::string_view beginning) {
  std::string found(beginning.size(), '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.read(found.data(), static_cast<std::streamsize>(found.size()));
  return stream.gcount() == static_cast<std::streamsize>(found.size()) && found == beginning;
}

// Of the path itself: what a link names is not looked at, since the link is what would be replaced.
Result<void> check_replaceable(const std::string& path, std::string_view beginning) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, ignored);
  if (!std::filesystem::exists(status)) return {};
  if (std::filesystem::is_directory(status))
    return fail(ErrorCode::bad_config, "a folder stands where a file is to be written", path,
                "name a file in it");
  if (!std::filesystem::is_regular_file(status) || !begins_with(path, beginning))
    return fail(ErrorCode::bad_config, "what stands there is no file that this command has written",
                path, "choose another name, or remove it first");
  return {};
}

}  // namespace

Result<void> write_page(io::FileSystem& files, const std::string& path, std::string_view text,
                        std::string_view beginning) {
  UK_CHECK(text.starts_with(beginning), "a page begins otherwise than write_page was told");
  UK_TRY_VOID(check_replaceable(path, beginning));
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    return fail(ErrorCode::bad_config, "the folder to write into is not there", path,
                fmt::format("mkdir -p {}", folder.string()));
  return files.write_text_durably(path, text);
}

}  // namespace underkeel::apps
