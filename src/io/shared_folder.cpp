#include "io/shared_folder.h"

namespace underkeel::io {

namespace {
constexpr std::string_view probe_file = ".underkeel-shared-folder";
constexpr std::int64_t longest_probe_bytes = 4096;
}  // namespace

Result<void> place_probe(FileSystem& files, const std::string& output, std::string_view token) {
  UK_TRY_VOID(files.make_folders(output));
  return files.write_text_durably(join_path(output, probe_file), token);
}

Result<bool> sees_probe(FileSystem& files, const std::string& output, std::string_view token) {
  // A network file system may remember for seconds that a name was not there; listing the folder
  // makes it look again.
  if (!files.exists(output)) return false;
  UK_TRY_VOID(files.list(output));
  const auto text = files.read_text(join_path(output, probe_file), longest_probe_bytes);
  if (!text && text.error().code == ErrorCode::not_found) return false;
  if (!text) return tl::unexpected(text.error());
  return *text == token;
}

Result<void> remove_probe(FileSystem& files, const std::string& output) {
  return files.remove_tree(join_path(output, probe_file));
}

}  // namespace underkeel::io
