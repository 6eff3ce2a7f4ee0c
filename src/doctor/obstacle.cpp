#include "doctor/obstacle.h"

#include <fcntl.h>
#include <unistd.h>

namespace underkeel::doctor {

namespace fs = std::filesystem;

std::optional<Finding> obstacle_of(const fs::path& path, const std::string& file) {
  const auto told = [&](std::string_view id, std::vector<Slot> slots) {
    return Finding{.id = std::string(id),
                   .severity = Severity::error,
                   .file = file,
                   .slots = std::move(slots)};
  };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    return told("file-absent", {{"path", path.string()}});
  if (error == std::errc::too_many_symbolic_link_levels)
    return told("file-link-loop", {{"path", path.string()}});
  if (error == std::errc::permission_denied)
    return told("file-no-permission", {{"path", path.string()}});
  if (error) return told("file-unreadable", {{"what", error.message()}, {"fix", "@look-at-path"}});
  // A folder is listed and entered; both need their own right.
  const bool is_folder = status.type() == fs::file_type::directory;
  if (!is_folder && status.type() != fs::file_type::regular) return std::nullopt;
  if (faccessat(AT_FDCWD, path.c_str(), is_folder ? R_OK | X_OK : R_OK, AT_EACCESS) != 0)
    return told("file-no-permission", {{"path", path.string()}});
  return std::nullopt;
}

}  // namespace underkeel::doctor
