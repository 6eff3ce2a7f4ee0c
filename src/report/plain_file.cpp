#include "report/plain_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace underkeel::report {

Result<io::File> open_plain_file(io::FileSystem& files, const std::string& path) {
  // O_NONBLOCK: a named pipe must not hang us.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT) return fail(ErrorCode::not_found, "no such file", path);
    if (errno == ELOOP)
      return fail(ErrorCode::bad_file, "a link stands where a file is expected", path);
    return fail(ErrorCode::io, fmt::format("cannot open: {}", std::strerror(errno)), path);
  }
  io::File file(files, descriptor, path);
  struct stat raw {};
  if (::fstat(descriptor, &raw) != 0 || !S_ISREG(raw.st_mode))
    return fail(ErrorCode::bad_file, "not a regular file", path);
  return file;
}

}  // namespace underkeel::report
