#include "train/shared_output.h"

#include <array>
#include <chrono>

#include <fmt/format.h>
#include <unistd.h>

#include "io/shared_folder.h"
#include "train/checkpoint_writer.h"

namespace underkeel::train {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

}  // namespace

Result<void> check_output_is_shared(io::FileSystem& files, comm::Communicator& control,
                                    const std::string& output) {
  if (control.world_size() == 1) return {};
  const std::string own_token =
      fmt::format("{} {} {}", host_name(), getpid(),
                  std::chrono::system_clock::now().time_since_epoch().count());
  UK_TRY(tokens, control.all_gather_text(own_token));
  UK_TRY_VOID(on_rank_0(control, [&] { return io::place_probe(files, output, tokens[0]); }));
  const Result<bool> sees = io::sees_probe(files, output, tokens[0]);
  const std::string blind = sees && *sees ? "" : fmt::format("{} on {}", output, host_name());
  UK_TRY(folders, control.all_gather_text(blind));
  const Result<void> removed = on_rank_0(control, [&] { return io::remove_probe(files, output); });
  std::string missing;
  for (std::size_t rank = 0; rank < folders.size(); ++rank)
    if (!folders[rank].empty())
      missing += fmt::format("{}rank {} ({})", missing.empty() ? "" : ", ", rank, folders[rank]);
  if (missing.empty()) return removed;
  return fail(
      ErrorCode::bad_config,
      fmt::format("the ranks do not share one output folder: what rank 0 wrote there is not "
                  "seen by {}",
                  missing),
      "output_dir of rank 0: " + output,
      "every rank writes its shards into the same files there: put output_dir on a folder "
      "that all nodes mount");
}

}  // namespace underkeel::train
