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
  if (!std::filesystem::exists(file, status))
    return fail(ErrorCode::not_found, "the file is not there", file.string());
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
