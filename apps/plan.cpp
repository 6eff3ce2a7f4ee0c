// underkeel plan RUN.yaml [key=value ...]: what a run will need, before anything is read or taken.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/units.h"
#include "command.h"
#include "io/checkpoint_space.h"
#include "io/file.h"
#include "plan/listing.h"
#include "planner/fit.h"
#include "planner/planner.h"
#include "render/render.h"
#include "run_arguments.h"
#include "simulate/simulate.h"
#include "spec/hardware_spec.h"
#include "spec/model_spec.h"
#include "train/checkpoint_files.h"
#include "train/choose_gpu.h"
#include "train/run_data.h"

namespace underkeel::apps {

namespace {

struct Words {
  std::shared_ptr<RunArguments> run;
  std::string hardware;
  bool json = false;
  bool listing = false;
  bool data = false;
};

std::string summary(const spec::ModelSpec& model, const spec::RunConfig& run,
                    const plan::Plan& plan) {
  const planner::Request request = planner::request_of(model, run, plan.world_size);
  std::string text = fmt::format("{}: {} parameters, {}\n", model.architecture,
                                 format_count(plan.parameter_count), name_of(request.weight_type));
  text += fmt::format("{} {}, ZeRO stage {}, {} micro-batch{} of up to {} tokens on each\n",
                      plan.world_size, plan.world_size == 1 ? "rank" : "ranks", plan.stage,
                      plan.accumulation_steps, plan.accumulation_steps == 1 ? "" : "es",
                      format_count(request.max_rows));
  for (const plan::Decision& decision : plan.decisions) {
    text += fmt::format("decided: {} = {}: {}", decision.subject, decision.value, decision.reason);
    for (const plan::Alternative& other : decision.alternatives)
      text += fmt::format("; {} {}", other.value, other.effect);
    text += "\n";
  }
  return text;
}

// Sums of times differ in their last digits; less than this is not worth a number.
constexpr double shortest_wait_s = 1e-6;

std::string times_text(const render::Times& times, bool measured) {
  return fmt::format(
      "step {:.3g} s (micro-step {:.3g} s, update {:.3g} s), save {:.3g} s, of which {:.3g} s "
      "are waited for; from {} rates\n",
      times.step_s, times.micro_step_s, times.update_s, times.save_s,
      times.save_wait_s < shortest_wait_s ? 0 : times.save_wait_s,
      measured ? "measured" : "assumed");
}

/// What all ranks of a node take of its memory, and of what.
std::string total_text(const plan::Plan& plan, const planner::Room& room) {
  const std::int64_t needed = planner::needed_bytes(plan, room, std::nullopt);
  std::string text =
      fmt::format("host memory of a node: {}, of which {} outside the arenas", format_bytes(needed),
                  format_bytes(plan.overhead_bytes * planner::process_count(room.placement)));
  if (room.node)
    text +=
        fmt::format("; allowed {} ({})", format_bytes(room.node->size_bytes), room.node->reason);
  return text + "\n";
}

render::Outlook outlook_of(const plan::Plan& plan, const planner::Room& room,
                           const std::optional<planner::Shortage>& shortage,
                           const planner::Advice& advice, const spec::HardwareSpec& machine) {
  render::Outlook outlook{.fits = !shortage};
  for (int s = 0; s < plan::memory_space_count; ++s)
    outlook.budgets[static_cast<std::size_t>(s)] =
        planner::budget_of(plan, room, static_cast<plan::MemorySpace>(s));
  for (const planner::Change& change : advice.changes)
    outlook.suggestions.push_back({.change = change.words,
                                   .space = shortage->space.value_or(plan::MemorySpace::host),
                                   .peak_bytes = change.needed_bytes});
  const simulate::Simulation times = simulate::simulate(plan, machine);
  outlook.times = render::Times{times.step_s, times.micro_step_s, times.update_s, times.save_s,
                                times.save_wait_s};
  return outlook;
}

/// The data report and its notes; the longest samples go into the run, so that they are planned for.
Result<std::string> read_data(spec::RunConfig& config, const spec::ModelSpec& model,
                              const std::filesystem::path& folder) {
  io::FileSystem files;
  const spec::HardwareSpec here = spec::this_machine();
  const planner::Room room =
      planner::room_of(config, here, planner::spread_evenly(here, config.ranks, false));
  UK_TRY(data, train::read_run_data(files, {.run = config,
                                            .model = model,
                                            .model_folder = folder,
                                            .thread_count = here.cores,
                                            .world_size = config.ranks,
                                            .memory_bytes = train::memory_for_data(room)}));
  train::take_longest(data.datasets, config);
  config.notes.insert(config.notes.end(), data.notes.begin(), data.notes.end());
  return "data\n" + data.report + "\n";
}

// Each rank has a GPU of its own; GPUs that no rank uses are told.
Result<void> check_gpu_count(const Words& words, const spec::HardwareSpec& machine,
                             spec::RunConfig& config) {
  const std::int64_t gpus = machine.nodes * machine.gpus_per_node;
  if (gpus == 0) return {};
  if (config.ranks > gpus)
    return fail(ErrorCode::bad_config,
                fmt::format("{} ranks on {} GPU{}: each rank needs one", config.ranks, gpus,
                            gpus == 1 ? "" : "s"),
                words.hardware.empty() ? "--ranks" : words.hardware,
                fmt::format("--ranks {}, or more nodes", gpus));
  if (config.ranks < gpus)
    config.notes.push_back(fmt::format("{} of {} GPUs {} used; --ranks {} uses all", config.ranks,
                                       gpus, config.ranks == 1 ? "is" : "are", gpus));
  return {};
}

// Whether the checkpoints that will stand at once fit the disk of a machine that is described. Without max_steps at
// least one is written.
Result<void> check_disk(const Words& words, const spec::ModelSpec& model,
                        const spec::RunConfig& run, const plan::Plan& plan,
                        const spec::HardwareSpec& machine) {
  if (!machine.out_free_bytes || run.save.strategy == spec::Cadence::no) return {};
  UK_TRY(checkpoint, train::lay_out_checkpoint(model, train::checkpoint_content(run, plan),
                                               train::default_shard_bytes));
  UK_TRY(final,
         train::lay_out_checkpoint(model, train::final_content(run), train::default_shard_bytes));
  const bool counts_steps = run.save.strategy == spec::Cadence::steps && run.max_steps > 0 &&
                            run.save.steps > 0 && run.save.steps_fraction == 0;
  const io::SpaceNeed need{.checkpoint_bytes = checkpoint.size_bytes(),
                           .save_count = counts_steps ? ceil_div(run.max_steps, run.save.steps)
                                                      : run.save.total_limit.value_or(0) + 1,
                           .save_total_limit = run.save.total_limit.value_or(0),
                           .export_bytes = final.size_bytes()};
  return io::check_space(need, *machine.out_free_bytes, "out_free_gib of " + words.hardware);
}

// A machine that is described has a rank for each of its GPUs, unless someone says otherwise.
Result<spec::RunConfig> on_all_gpus(const Words& words, const spec::HardwareSpec& machine,
                                    spec::RunConfig config, std::vector<std::string> changes) {
  const std::int64_t gpus = machine.nodes * machine.gpus_per_node;
  if (gpus <= 1) return config;
  changes.push_back(fmt::format("underkeel.ranks={}", gpus));
  UK_TRY(wider,
         spec::read_run_file(words.run->run_file, changes, spec::WorldSize{gpus, words.hardware}));
  wider.notes.push_back(fmt::format("{} ranks, one for each GPU of {}", gpus, words.hardware));
  return wider;
}

Result<void> run(const Words& words) {
  UK_TRY(changes, words.run->all_changes());
  UK_TRY(config, spec::read_run_file(words.run->run_file, changes, words.run->world()));
  const bool says_ranks = std::any_of(
      config.provenance.begin(), config.provenance.end(), [](const spec::Provenance& entry) {
        return entry.key == "underkeel.ranks" && entry.source != "default";
      });
  std::optional<spec::HardwareSpec> described;
  if (!words.hardware.empty()) {
    UK_TRY(read, spec::read_hardware_file(words.hardware));
    described = std::move(read);
  }
  if (described && !says_ranks) {
    UK_TRY(on_all, on_all_gpus(words, *described, std::move(config), std::move(changes)));
    config = std::move(on_all);
  }
  UK_TRY(folder, spec::find_model_folder(config.model.string()));
  UK_TRY(model, spec::read_model_config(folder));
  spec::resolve_auto(config, model.width);
  UK_TRY(machine, described ? Result<spec::HardwareSpec>(*described)
                            : train::machine_for(config, config.ranks));
  UK_TRY_VOID(check_gpu_count(words, machine, config));
  std::string data_text;
  if (words.data) {
    UK_TRY_VOID(planner::check_shortest(
        {.model = model,
         .run = config,
         .machine = machine,
         .placement = planner::spread_evenly(machine, config.ranks, false)}));
    UK_TRY(text, read_data(config, model, folder));
    data_text = std::move(text);
  }
  const planner::FitQuestion question{
      .model = model,
      .run = config,
      .machine = machine,
      .placement = planner::spread_evenly(machine, config.ranks, false)};
  const plan::Plan plan = planner::make_plan_on(question);
  const planner::Room room = planner::room_of(config, machine, question.placement);
  const auto shortage = planner::shortage_of(plan, room);
  planner::Advice advice;
  if (shortage) advice = planner::advise(question, *shortage);
  const render::Outlook outlook = outlook_of(plan, room, shortage, advice, machine);
  if (words.listing) {
    std::fputs(plan::listing(plan).c_str(), stdout);
  } else if (words.json) {
    std::fputs(render::plan_json(plan, outlook).c_str(), stdout);
  } else {
    fmt::print("values in force that are no defaults\n{}\n{}{}\n{}\n{}{}",
               spec::chosen_values_table(config), data_text, summary(model, config, plan),
               render::peak_table(plan, outlook), total_text(plan, room),
               times_text(*outlook.times, machine.rates_are_measured));
    for (const std::string& note : config.notes) fmt::print("note: {}\n", note);
  }
  if (shortage) return tl::unexpected(planner::does_not_fit(plan, room, *shortage, advice));
  UK_TRY_VOID(check_disk(words, model, config, plan, machine));
  if (!words.json && !words.listing) fmt::print("it fits\n");
  return {};
}

}  // namespace

void add_plan(CLI::App& app, Chosen& chosen) {
  auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand(
      "plan", "Show what a run will need of every memory, and whether it fits. Reads no weights.");
  words->run = add_run_arguments(*command);
  command->add_option("--hardware", words->hardware,
                      "hardware.yaml of a machine that is not this one");
  command->add_flag("--data", words->data,
                    "read and tokenise the data: report on them, and plan for the longest sample "
                    "instead of cutoff_len; train finds the tokens again");
  CLI::Option* json = command->add_flag("--json", words->json, "print one JSON object");
  command->add_flag("--listing", words->listing, "print every operation of the plan")
      ->excludes(json);
  command->footer("Ends with exit code 2 when the plan does not fit.");
  command->callback([words, &chosen] { chosen.run = [words] { return run(*words); }; });
}

}  // namespace underkeel::apps
