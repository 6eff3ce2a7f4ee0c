#include "train/run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/log.h"
#include "comm/communicator.h"
#include "io/faults.h"
#include "train/last_resort.h"
#include "train/loop.h"
#include "train/output_lock.h"
#include "train/rank_device.h"
#include "train/rank_threads.h"
#include "train/same_ranks.h"
#include "train/shared_output.h"
#include "train/signals.h"

namespace underkeel::train {

namespace {

/// What the rank threads of this process left behind.
struct Outcomes {
  std::mutex mutex;
  std::condition_variable changed;
  int running = 0;
  std::optional<Error> first_error;
};

// How long ranks get to end after one has failed; a hung thread cannot be ended from inside.
constexpr double grace_s = 3;

/// The values in force and their sources, then what the user should know, once.
void tell(const Job& job) {
  log(LogLevel::info,
      fmt::format("values in force that are no defaults (all of them: {}):\n{}",
                  io::join_path(job.output(), values_file), spec::chosen_values_table(job.run)));
  log(LogLevel::info, "data:\n" + job.data_report);
  for (const std::string& note : job.notes) log(LogLevel::info, note);
}

Result<void> run_as_threads(const spec::RunConfig& run, io::FileSystem& files) {
  auto collectives = comm::make_thread_group(run.ranks);
  auto controls = comm::make_thread_group(run.ranks);
  auto links = comm::make_thread_group(run.ranks);
  UK_TRY(devices, start_devices(run, {.rank = 0, .rank_count = run.ranks}, controls, links));
  UK_TRY(job, prepare_job(files, run,
                          {.size = run.ranks,
                           .ranks_on_node = run.ranks,
                           .ranks_in_process = run.ranks,
                           .source = "--ranks or underkeel.ranks"},
                          devices));
  UK_TRY(output_lock, OutputLock::take(job.output()));
  tell(job);
  if (stop_signal() != 0)
    return fail(ErrorCode::stopped, "stopped by a signal before the first step", job.output(),
                "run the same command again");
  Outcomes outcomes{.running = run.ranks};
  RankThreads threads;
  const auto give_up = [&](std::size_t i, const Error& reason) {
    collectives[i]->abort(reason);
    controls[i]->abort(reason);
  };
  const Result<void> all_run =
      threads.start(static_cast<std::size_t>(run.ranks), [&](std::size_t i) {
        const Result<void> result =
            run_rank(job, files, *collectives[i], *controls[i], std::move(devices.ranks[i]));
        if (!result && result.error().code != ErrorCode::stopped) give_up(i, result.error());
        const std::lock_guard lock(outcomes.mutex);
        if (!result && !outcomes.first_error) outcomes.first_error = result.error();
        --outcomes.running;
        outcomes.changed.notify_all();
      });
  if (!all_run) {
    for (std::size_t i = 0; i < controls.size(); ++i) give_up(i, all_run.error());
    threads.join();
    return all_run;
  }
  {
    std::unique_lock lock(outcomes.mutex);
    outcomes.changed.wait(lock, [&] { return outcomes.running == 0 || outcomes.first_error; });
    const bool ended = outcomes.changed.wait_for(lock, std::chrono::duration<double>(grace_s),
                                                 [&] { return outcomes.running == 0; });
    if (!ended) end_process(*outcomes.first_error);
  }
  threads.join();
  if (outcomes.first_error) return tl::unexpected(*outcomes.first_error);
  return {};
}

/// A refusal that every rank met in the same words is told by rank 0 alone: elsewhere it has no words.
Error told_once(comm::Communicator& control, Error error) {
  const auto texts = control.all_gather_text(to_text(error));
  (void)control.barrier();  // no rank gives up before all have read
  const bool same =
      texts && std::all_of(texts->begin(), texts->end(),
                           [&](const std::string& text) { return text == texts->front(); });
  if (same && control.rank() != 0) return {.code = error.code};
  return error;
}

Result<void> run_over_mpi(const spec::RunConfig& run, io::FileSystem& files) {
  UK_TRY(groups, comm::make_mpi_groups(3));
  comm::Communicator& collectives = *groups[0];
  comm::Communicator& control = *groups[1];
  RankDevices devices;
  const auto whole_run = [&]() -> Result<void> {
    if (Result<void> shared = check_output_is_shared(files, control, run.output.string()); !shared)
      return tl::unexpected(told_once(control, shared.error()));
    auto started =
        start_devices(run, {.rank = control.rank_on_node(), .rank_count = control.ranks_on_node()},
                      std::span(groups).subspan(1, 1), std::span(groups).subspan(2, 1));
    if (!started) return tl::unexpected(told_once(control, started.error()));
    devices = *std::move(started);
    auto job = prepare_job(files, run,
                           {.size = control.world_size(),
                            .ranks_on_node = control.ranks_on_node(),
                            .ranks_in_process = 1,
                            .source = "mpirun"},
                           devices);
    // One rank may be refused what the others are granted: all learn of it before anything starts.
    if (Result<void> all = agree(control, job); !all)
      return tl::unexpected(told_once(control, all.error()));
    if (Result<void> same = check_ranks_agree(files, control, *job); !same)
      return tl::unexpected(told_once(control, same.error()));
    std::optional<OutputLock> lock;
    const auto take_lock = [&]() -> Result<void> {
      UK_TRY(taken, OutputLock::take(job->output()));
      lock.emplace(std::move(taken));
      return {};
    };
    if (Result<void> held = on_rank_0(control, take_lock); !held)
      return tl::unexpected(told_once(control, held.error()));
    if (control.rank() == 0) tell(*job);
    return run_rank(*job, files, collectives, control, std::move(devices.ranks.front()));
  };
  Result<void> result = whole_run();
  if (!result && result.error().code != ErrorCode::stopped) {
    collectives.abort(result.error());
    control.abort(result.error());
    devices.abort();
  }
  return result;
}

}  // namespace

Result<void> train(const spec::RunConfig& run) {
  const StopSignals signals;
  UK_TRY(files, io::file_system_from_environment());
  // Never destroyed: ranks that hang may still use it when this returns.
  static io::FileSystem* kept = nullptr;
  kept = files.release();
  io::FileSystem& shared = *kept;
  const Result<void> result =
      comm::started_by_mpi() ? run_over_mpi(run, shared) : run_as_threads(run, shared);
  for (const std::string& note : shared.take_notes()) log(LogLevel::warning, note);
  return result;
}

}  // namespace underkeel::train
