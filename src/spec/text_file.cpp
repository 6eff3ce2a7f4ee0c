#include "spec/text_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/foreign_content.h"

namespace underkeel::spec {

Result<std::string> read_text_file(const std::filesystem::path& file) {
  constexpr std::size_t longest_bytes = std::size_t{16} << 20;
  std::error_code status;
  const std::filesystem::file_type type = std::filesystem::status(file, status).type();
  if (type == std::filesystem::file_type::not_found)
    return fail(ErrorCode::not_found, "the file is not there", file.string());
  if (status)  // a folder above it may not be entered, links lead back to themselves
    return fail(ErrorCode::io, fmt::format("the file cannot be read: {}", status.message()),
                file.string(), "look at the folders and links on its path: `ls -l`");
  if (type == std::filesystem::file_type::directory)
    return fail(ErrorCode::bad_file, "this is not a file", file.string(),
                "it is a folder: name a file in it");
  if (!std::filesystem::is_regular_file(file, status))
    return fail(ErrorCode::bad_file, "this is not a file", file.string(),
                "name a file; what comes from a pipe or a device is to be written into one first");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  while (stream && text.size() <= longest_bytes) {
    char block[65536];
    stream.read(block, sizeof(block));
    text.append(block, static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad() || (!stream && !stream.eof()))
    return fail(ErrorCode::io, fmt::format("the file cannot be read: {}", std::strerror(errno)),
                file.string(), "let this user read it: `ls -l` shows whose it is");
  if (text.size() > longest_bytes)
    return fail(ErrorCode::bad_file,
                fmt::format("the file has more than {} bytes; a configuration is far smaller",
                            longest_bytes),
                file.string(), "name the configuration itself");
  if (const auto foreign = foreign_content_of(text))
    return fail(ErrorCode::bad_file, fmt::format("the content is {}", foreign->what), file.string(),
                foreign->fix);
  return text;
}

}  // namespace underkeel::spec
