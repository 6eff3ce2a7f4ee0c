#include "train/job.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/check.h"
#include "base/units.h"
#include "comm/communicator.h"
#include "io/checkpoint_space.h"
#include "kernels/facts/facts.h"
#include "planner/fit.h"
#include "planner/planner.h"
#include "train/expected_tensors.h"
#include "train/process_memory.h"
#include "train/run_data.h"
#include "train/run_length.h"
#include "train/side_files.h"
#include "train/trainer_state.h"

namespace underkeel::train {

namespace {

Result<void> check_disk(io::FileSystem& files, const Job& job, std::int64_t standing) {
  const RunLength length{.steps = job.total_steps,
                         .steps_of_epoch = job.updates_per_epoch,
                         .done = job.resume ? job.resume->progress.step : 0};
  const io::SpaceNeed need = space_need(job.run, {.checkpoint = job.checkpoint_files,
                                                  .final = job.final_files,
                                                  .save_count = save_count(job.run, length),
                                                  .standing_count = standing});
  UK_TRY(free, files.free_bytes(job.output()));
  return io::check_space(need, free, job.output());
}

// Of rank 0's log history, which is kept to be written into each checkpoint.
std::int64_t log_history_bytes(const Job& job) {
  const spec::RunConfig& run = job.run;
  const auto entries = [&](spec::Cadence strategy, std::int64_t steps, double fraction) {
    const std::int64_t every = strategy == spec::Cadence::epoch
                                   ? job.updates_per_epoch
                                   : cadence_steps(strategy, steps, fraction, job.total_steps);
    return every > 0 ? job.total_steps / every + 1 : 0;
  };
  return static_cast<std::int64_t>(sizeof(LogEntry)) *
         (entries(run.logging, run.logging_steps, run.logging_fraction) +
          entries(run.evaluation.strategy, run.evaluation.steps, run.evaluation.steps_fraction));
}

// The driver and its libraries in the process and each further GPU of it (measured); GPUs are joined already.
std::int64_t driver_host_bytes(const Job& job) {
  return (512 + 64 * (job.ranks_in_process - 1)) * mebibyte;
}

// What is not resident yet when the data has been read: arenas, lanes, pools.
MemoryToCome memory_to_come(const Job& job) {
  std::int64_t arenas = 0;
  for (const std::int64_t size_bytes : job.plan.layout.size_bytes) arenas += size_bytes;
  if (job.is_on_gpus) arenas -= job.plan.layout.size_bytes[index(plan::MemorySpace::device)];
  const std::int64_t ranks = job.ranks_in_process;
  return {.arena_bytes = ranks * arenas,
          .thread_count = ranks * (plan::lanes::count + job.threads_per_rank),
          .packing_bytes = ranks * kernels::cpu_matmul_overhead_bytes(job.threads_per_rank),
          .log_bytes = 2 * mebibyte + log_history_bytes(job),
          .order_bytes = ranks * job.run.data.samples->order_bytes,
          .driver_bytes = job.is_on_gpus ? driver_host_bytes(job) : 0,
          .transport_bytes = ranks == 1 && job.world_size > 1 ? 20 * mebibyte : 0};
}

void take_data(RunData data, Job& job) {
  job.datasets = std::move(data.datasets);
  job.template_files = std::move(data.template_files);
  // `generate` asks the saved folder for it.
  if (job.run.data.template_name.empty() && !job.template_files.name.empty())
    job.run.provenance.push_back({"template", job.template_files.name, "derived"});
  job.data_report = std::move(data.report);
  job.notes = job.run.notes;
  job.notes.insert(job.notes.end(), data.notes.begin(), data.notes.end());
}

// The data's sizes and the run's length: what the plan and its checks go by.
Result<void> take_length(Job& job) {
  UK_TRY(sampler, data::Sampler::make(job.sampler_config(0)));
  job.updates_per_epoch = sampler.updates_per_epoch();
  job.total_steps = job.run.max_steps > 0 ? job.run.max_steps : sampler.updates_for(job.run.epochs);
  MetBy met_by{.world_size = job.world_size};
  if (job.resume)
    met_by.epochs = sampler.epochs_met(job.resume->progress.position,
                                       job.total_steps - job.resume->progress.step);
  take_sizes(job.datasets, met_by, job.run);
  return {};
}

}  // namespace

data::SamplerConfig Job::sampler_config(int rank) const {
  return train::sampler_config(run, datasets.training->count(), world_size, rank);
}

std::int64_t Job::sequences_per_step() const {
  return run.sequences_per_micro_batch * run.accumulation_steps * world_size;
}

ResumedRun Job::as_resumed() const {
  return {.run = run,
          .model = model,
          .data = data_identity(),
          .sequences_per_step = sequences_per_step(),
          .evaluation = datasets.evaluation_identity};
}

DataIdentity Job::data_identity() const {
  return DataIdentity::of(sampler_config(0), datasets.training_identity);
}

Result<std::vector<ExtraFile>> Job::folder_files(io::FileSystem& files) const {
  UK_TRY(typed, spec::rewrite_model_config(model_config_text, spec::export_type(run)));
  // As a model has it after training with transformers.
  UK_TRY(config, spec::set_config_entry(typed, "use_cache", "false"));
  std::vector<ExtraFile> made = {{"config.json", std::move(config)},
                                 {values_file, spec::values_json(run)}};
  for (const std::string_view name : side_files) {
    const std::string path = io::join_path(model_folder.string(), name);
    if (!files.exists(path)) continue;
    UK_TRY(text, files.read_text(path, largest_side_file_bytes));
    made.push_back({std::string(name), std::move(text)});
  }
  UK_TRY_VOID(apply_template(template_files, made));
  return made;
}

Result<Job> prepare_job(io::FileSystem& files, const spec::RunConfig& run, const World& world,
                        const RankDevices& devices) {
  const int world_size = world.size;
  Job job{.run = run, .is_on_gpus = devices.are_gpus(), .joining_bytes = devices.joining_bytes};
  const auto add_values = [&job] {
    for (const auto& [key, value] :
         {std::pair<const char*, std::int64_t>{"updates per epoch", job.updates_per_epoch},
          {"total steps", job.total_steps},
          {"warm-up steps", spec::warmup_steps_of(job.run.optimizer, job.total_steps)}})
      job.run.provenance.push_back({key, fmt::format("{}", value), "derived"});
  };
  job.world_size = world_size;
  job.ranks_in_process = world.ranks_in_process;
  UK_TRY_VOID(spec::check_world_size(run, {world_size, world.source}));
  UK_TRY(folder, spec::find_model_folder(run.model.string()));
  job.model_folder = std::move(folder);
  UK_TRY(model, spec::read_model_config(job.model_folder));
  job.model = std::move(model);
  spec::resolve_auto(job.run, job.model.width);
  UK_TRY(config_text,
         files.read_text(io::join_path(job.model_folder.string(), "config.json"), 16'000'000));
  job.model_config_text = std::move(config_text);
  if (run.precision == spec::Precision::f16 && job.model.stored_type == DType::bf16)
    job.run.notes.push_back(
        "the weights are stored in bf16 and train in fp16, which holds no value beyond 65,504: "
        "steps may overflow, or the first load; bf16: true does not");
  const spec::HardwareSpec machine = with_gpus(spec::this_machine(), devices, world.ranks_on_node);
  job.threads_per_rank = run.threads_per_rank > 0
                             ? run.threads_per_rank
                             : std::max(1, machine.cores / world.ranks_on_node);

  const planner::Placement placement{.world_size = world_size,
                                     .ranks_on_node = world.ranks_on_node,
                                     .ranks_are_processes = comm::started_by_mpi()};
  UK_TRY_VOID(planner::check_budgets(run, machine));
  UK_TRY_VOID(planner::check_shortest({job.model, run, machine, placement}));

  if (std::error_code status; std::filesystem::exists(job.run.output, status) &&
                              !std::filesystem::is_directory(job.run.output, status))
    return fail(ErrorCode::bad_config, "the output folder is a file", job.output(),
                "name a folder: output_dir");
  UK_TRY_VOID(files.make_folders(job.output()));
  io::CheckpointList standing;
  UK_TRY(resume, find_resume(files, run, standing));
  job.resume = std::move(resume);

  std::vector<std::string> weight_notes;
  if (!job.resume && !run.train_from_scratch) {
    UK_TRY(notes, check_weights(files, job.model_folder.string(), job.model));
    weight_notes = std::move(notes);
  }

  UK_TRY(data,
         read_run_data(
             files, {.run = run,
                     .model = job.model,
                     .model_folder = job.model_folder,
                     .thread_count = machine.cores,
                     .world_size = world_size,
                     .memory_bytes = memory_for_data(planner::room_of(run, machine, placement))}));
  take_data(std::move(data), job);
  UK_TRY_VOID(take_length(job));
  job.notes.insert(job.notes.end(), devices.notes.begin(), devices.notes.end());
  for (const std::string& note : weight_notes)
    job.notes.push_back(fmt::format("{}: {}", job.model_folder.string(), note));
  if (const std::int64_t longest = job.run.data.longest_sample();
      longest > job.model.max_position_embeddings)
    job.notes.push_back(
        fmt::format("samples have up to {} tokens, the model's max_position_embeddings is {}: it "
                    "was not made for positions "
                    "beyond that",
                    longest, job.model.max_position_embeddings));
  for (const io::CheckpointList::Skipped& skipped : standing.skipped)
    job.notes.push_back(
        fmt::format("{} is no checkpoint to go on from: {}", skipped.folder, skipped.reason));

  const planner::FitQuestion question{job.model, job.run, machine, placement};
  job.plan = planner::make_plan_on(question);
  UK_TRY_VOID(planner::check_fit(job.plan, question));

  const auto content = checkpoint_content(run, planner::request_of(job.model, job.run, world_size));
  UK_TRY(whole_files, lay_out_checkpoint(job.model, content, default_shard_bytes));
  job.checkpoint_files = std::move(whole_files);
  UK_TRY(weight_files, lay_out_checkpoint(job.model, final_content(run), default_shard_bytes));
  job.final_files = std::move(weight_files);

  UK_TRY_VOID(spec::check_total_steps(run, job.total_steps));
  add_values();
  for (const spec::Parameter& parameter : spec::parameters_of(job.model))
    if (parameter.name != "model.embed_tokens.weight")
      job.counted_parameters += static_cast<double>(parameter.element_count());
  if (job.resume && job.resume->progress.step > job.total_steps)
    return fail(
        ErrorCode::bad_config,
        fmt::format("the checkpoint is at step {}, the run ends at step {}",
                    job.resume->progress.step, job.total_steps),
        job.resume->checkpoint.folder,
        "raise max_steps or num_train_epochs; fewer steps make an epoch when a step takes more "
        "sequences");
  if (job.resume) {
    const ResumedRun now = job.as_resumed();
    UK_TRY(changed, check_same_run(files, *job.resume, now));
    job.resume->compares_evaluations = is_same_evaluation(job.resume->progress, now);
    job.notes.insert(job.notes.end(), changed.begin(), changed.end());
    job.notes.push_back(fmt::format(
        "going on after step {} of {} from {}{}", job.resume->progress.step, job.total_steps,
        job.resume->checkpoint.folder,
        job.resume->weights_only ? ", with its weights only and a fresh optimizer" : ""));
  }
  // A run that starts anew sets them aside: they stay, and none makes room.
  const auto rotating = job.resume ? standing.complete.size() : 0;
  UK_TRY_VOID(check_disk(files, job, static_cast<std::int64_t>(rotating)));
  UK_TRY(memory, read_process_memory());
  job.planned_process_bytes = planned_process_bytes(memory, memory_to_come(job));
  return job;
}

}  // namespace underkeel::train
