#include "train/standing_checkpoints.h"

#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "train/checkpoint_writer.h"

namespace underkeel::train {

namespace {
constexpr std::size_t verify_buffer_bytes = 256 * 1024;
}

Result<void> leave_earlier_run(io::FileSystem& files, const std::string& output) {
  UK_TRY(aside, io::set_checkpoints_aside(files, output));
  for (const std::string& path : aside)
    log(LogLevel::warning, "a checkpoint of an earlier run is set aside as " + path);
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
