#include "train/standing_checkpoints.h"

#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/units.h"
#include "train/checkpoint_writer.h"

namespace underkeel::train {

namespace {
constexpr std::size_t verify_buffer_bytes = 256 * 1024;

Result<std::int64_t> bytes_below(io::FileSystem& files, const std::string& folder) {
  std::int64_t size_bytes = 0;
  UK_TRY(entries, files.list(folder));
  for (const io::FolderEntry& entry : entries) {
    if (entry.kind == io::FileKind::file) size_bytes += entry.size_bytes;
    if (entry.kind != io::FileKind::folder) continue;
    UK_TRY(below, bytes_below(files, io::join_path(folder, entry.name)));
    size_bytes += below;
  }
  return size_bytes;
}
}  // namespace

Result<void> leave_earlier_run(io::FileSystem& files, const std::string& output) {
  UK_TRY(aside, io::set_checkpoints_aside(files, output));
  for (const std::string& path : aside)
    log(LogLevel::warning, "a checkpoint of an earlier run is set aside as " + path);
  if (aside.empty()) return {};
  const std::string folder = io::folder_of(aside.front());
  UK_TRY(entries, files.list(folder));
  UK_TRY(size_bytes, bytes_below(files, folder));
  log(LogLevel::warning,
      fmt::format("{} now holds {} {} with {}; nothing removes them but you", folder,
                  entries.size(), entries.size() == 1 ? "checkpoint" : "checkpoints",
                  format_bytes(size_bytes)));
  return {};
}

Result<void> verify_checkpoint(io::FileSystem& files, comm::Communicator& control,
                               const io::FoundCheckpoint& checkpoint) {
  std::vector<std::byte> buffer(verify_buffer_bytes);
  UK_TRY(problems,
         io::verify_checkpoint(files, checkpoint, buffer,
                               {.rank = control.rank(), .world_size = control.world_size()}));
  Result<void> own;
  if (!problems.empty()) {
    const Error& first = problems.front();
    own = fail(
        ErrorCode::bad_file,
        fmt::format(
            "the checkpoint is damaged: {}{}", first.what,
            problems.size() == 1 ? "" : fmt::format(" (and {} more places)", problems.size() - 1)),
        first.where.empty() ? checkpoint.folder : first.where,
        "resume from an older one with resume_from_checkpoint; `underkeel inspect --verify` "
        "names every damaged place");
  }
  return agree(control, std::move(own));
}

}  // namespace underkeel::train
