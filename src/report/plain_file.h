#pragma once
// Opens files of a folder that somebody else may write to: a name that leads elsewhere is refused.

#include <string>

#include "io/file.h"

namespace underkeel::report {

/// For reading. Errors: not_found; bad_file when `path` itself is a link, or no regular file; io.
Result<io::File> open_plain_file(io::FileSystem& files, const std::string& path);

}  // namespace underkeel::report
