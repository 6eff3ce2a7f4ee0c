// From the words of a command line to a plan: what `plan` and `report` share.

#include "planned.h"

#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/units.h"
#include "disk_outlook.h"
#include "io/file.h"
#include "io/model_files.h"
#include "planner/planner.h"
#include "simulate/simulate.h"
#include "train/choose_gpu.h"
#include "train/run_data.h"

namespace underkeel::apps {

namespace {

render::Outlook outlook_of(const plan::Plan& plan, const planner::Room& room,
                           const std::vector<planner::Shortage>& shortages,
                           const planner::Advice& advice, const spec::HardwareSpec& machine,
                           const DiskOutlook& disk) {
  render::Outlook outlook{.saves = disk.saves()};
  const std::int64_t processes = planner::process_count(room.placement);
  outlook.node = {.needed_bytes = planner::needed_bytes(plan, room, std::nullopt),
                  .outside_bytes = plan.overhead_bytes * processes,
                  .process_count = processes,
                  .budget = room.node};
  outlook.disk = {.needed_bytes = io::needed_bytes(disk.need),
                  .free_bytes = disk.free_bytes,
                  .source = disk.source,
                  .checkpoint_bytes = disk.need.checkpoint_bytes,
                  .checkpoint_count = io::checkpoints_at_once(disk.need),
                  .kept_count = io::checkpoints_at_end(disk.need),
                  .export_bytes = disk.need.export_bytes,
                  .is_least = disk.need.is_least};
  for (const planner::Shortage& shortage : shortages)
    outlook.shortages.push_back({.needed = {short_name(shortage.space), shortage.needed_bytes},
                                 .allowed_bytes = shortage.allowed_bytes,
                                 .reason = shortage.reason});
  if (disk.is_short())
    outlook.shortages.push_back({.needed = {"disk", outlook.disk->needed_bytes},
                                 .allowed_bytes = *disk.free_bytes,
                                 .reason = disk.source});
  outlook.fits = outlook.shortages.empty();
  for (int s = 0; s < plan::memory_space_count; ++s)
    outlook.budgets[static_cast<std::size_t>(s)] =
        planner::budget_of(plan, room, static_cast<plan::MemorySpace>(s));
  for (const planner::Change& change : advice.changes) {
    outlook.suggestions.push_back({.change = change.words});
    for (std::size_t i = 0; i < shortages.size(); ++i)
      outlook.suggestions.back().needs.push_back(
          {short_name(shortages[i].space), change.needed_bytes[i]});
  }
  const simulate::Simulation times = simulate::simulate(plan, machine);
  outlook.times = render::Times{times.step_s, times.micro_step_s, times.update_s, times.save_s,
                                times.save_wait_s};
  return outlook;
}

/// The data report and its notes; the sizes of the samples go into the run, so that they are planned for.
Result<DataFacts> read_data(spec::RunConfig& config, const spec::ModelSpec& model,
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
  train::take_sizes(data.datasets, {.world_size = config.ranks}, config);
  config.notes.insert(config.notes.end(), data.notes.begin(), data.notes.end());
  return DataFacts{
      .report = "data\n" + data.report + "\n",
      .sample_count = data.datasets.training->count(),
      .evaluation_sample_count = data.datasets.evaluation ? data.datasets.evaluation->count() : 0};
}

// Each rank has a GPU of its own; GPUs that no rank uses are told.
Result<void> check_gpu_count(const PlanWords& words, const spec::HardwareSpec& machine,
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

// A machine that is described has a rank for each of its GPUs, unless someone says otherwise.
std::optional<spec::WorldSize> world_on(const PlanWords& words,
                                        const std::optional<spec::HardwareSpec>& described) {
  const std::int64_t gpus = described ? described->nodes * described->gpus_per_node : 0;
  if (words.run->ranks || gpus <= 1) return words.run->world();
  return spec::WorldSize{.ranks = gpus, .source = words.hardware, .yields = true};
}

void take_budgets(const std::vector<SpaceBudget>& budgets, spec::RunConfig& config) {
  for (const SpaceBudget& budget : budgets) {
    if (budget.space == "nvme") continue;  // nothing of a run lies there
    auto& own = budget.space == "device" ? config.device_budget_bytes : config.host_budget_bytes;
    if (own && *own <= budget.size_bytes) continue;  // the smaller one holds
    own = budget.size_bytes;
    const std::string key = "underkeel.memory." + budget.space;
    config.changes.push_back(fmt::format("{}={}", key, budget.text));
    std::erase_if(config.provenance,
                  [&](const spec::Provenance& entry) { return entry.key == key; });
    config.provenance.push_back({key, format_bytes(budget.size_bytes), "--fit"});
  }
}

}  // namespace

Result<Asked> read_question(const PlanWords& words, const std::vector<SpaceBudget>& budgets) {
  UK_TRY(changes, words.run->all_changes());
  std::optional<spec::HardwareSpec> described;
  if (!words.hardware.empty()) {
    UK_TRY(read, spec::read_hardware_file(words.hardware));
    described = std::move(read);
  }
  const std::optional<spec::WorldSize> world = world_on(words, described);
  UK_TRY(config, spec::read_run_file(words.run->run_file, changes, world));
  if (config.changes.size() > changes.size())
    config.notes.push_back(
        fmt::format("{} ranks, one for each GPU of {}", config.ranks, words.hardware));
  words.run->name_budgets(config);
  take_budgets(budgets, config);
  UK_TRY(folder, spec::find_model_folder(config.model.string()));
  io::FileSystem files;
  UK_TRY_VOID(io::refuse_adapters(files, folder.string()));
  UK_TRY(model, spec::read_model_config(folder));
  spec::resolve_auto(config, model.width);
  UK_TRY(machine, described ? Result<spec::HardwareSpec>(*described)
                            : train::machine_for(config, config.ranks));
  UK_TRY_VOID(check_gpu_count(words, machine, config));
  UK_TRY_VOID(planner::check_budgets(config, machine));
  Asked asked{
      .config = std::move(config), .model = std::move(model), .machine = machine, .data = {}};
  if (words.data) {
    // Where other settings are looked for, these need not fit.
    if (budgets.empty()) UK_TRY_VOID(planner::check_shortest(asked.question()));
    UK_TRY(facts, read_data(asked.config, asked.model, folder));
    asked.data = std::move(facts);
  }
  return asked;
}

planner::FitQuestion Asked::question() const {
  return {.model = model,
          .run = config,
          .machine = machine,
          .placement = planner::spread_evenly(machine, config.ranks, false)};
}

std::string disk_source(const PlanWords& words) {
  return "out_free_gib of " + words.hardware;
}

Result<Planned> make_planned(const PlanWords& words) {
  UK_TRY(asked, read_question(words));
  const planner::FitQuestion question = asked.question();
  plan::Plan plan = planner::make_plan_on(question);
  planner::Room room = planner::room_of(asked.config, asked.machine, question.placement);
  std::vector<planner::Shortage> shortages = planner::shortages_of(plan, room);
  planner::Advice advice;
  if (!shortages.empty()) advice = planner::advise(question, shortages);
  UK_TRY(output, output_disk(words, asked));
  UK_TRY(need, need_on(output, asked, asked.config));
  DiskOutlook disk{.free_bytes = output.free_bytes, .source = output.source, .need = need};
  render::Outlook outlook = outlook_of(plan, room, shortages, advice, asked.machine, disk);
  if (!shortages.empty() && disk.is_short())
    outlook.suggestions = cures_of_both(asked, output, shortages, advice);
  return Planned{.config = std::move(asked.config),
                 .model = std::move(asked.model),
                 .machine = asked.machine,
                 .plan = std::move(plan),
                 .room = std::move(room),
                 .shortages = std::move(shortages),
                 .advice = std::move(advice),
                 .outlook = std::move(outlook),
                 .data = std::move(asked.data),
                 .disk = std::move(disk)};
}

render::Saves DiskOutlook::saves() const {
  if (need.save_count > 0) return render::Saves::on_the_way;
  return need.export_bytes > 0 ? render::Saves::at_the_end : render::Saves::never;
}

bool DiskOutlook::is_short() const {
  return free_bytes && io::needed_bytes(need) > *free_bytes;
}

std::string short_name(std::optional<plan::MemorySpace> space) {
  return std::string(space ? plan::name_of(*space) : "host");
}

Result<void> check_fits(const Planned& made) {
  Result<void> disk;
  if (made.disk.free_bytes)
    disk = io::check_space(made.disk.need, *made.disk.free_bytes, made.disk.source);
  if (made.shortages.empty()) return disk;
  Error error =
      planner::does_not_fit(made.plan, made.config, made.room, made.shortages, made.advice);
  if (disk) return tl::unexpected(std::move(error));
  return tl::unexpected(refuse_both(std::move(error), disk.error(), made.outlook.suggestions));
}

void add_plan_flags(CLI::App& command, PlanWords& words) {
  command
      .add_option("--hardware", words.hardware, "hardware.yaml of a machine that is not this one")
      ->check(refuse_empty);
  command.add_flag(
      "--data", words.data,
      "read and tokenise the data: report on them, and plan for the largest "
      "micro-batch that they make instead of cutoff_len; train finds the tokens again");
}

}  // namespace underkeel::apps
