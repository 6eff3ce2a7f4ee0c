// underkeel plan RUN.yaml [key=value ...]: what a run will need, before anything is read or taken.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/units.h"
#include "command.h"
#include "disk_need.h"
#include "io/checkpoint_space.h"
#include "io/file.h"
#include "output_page.h"
#include "plan/listing.h"
#include "plan_fit.h"
#include "plan_page.h"
#include "planned.h"
#include "planner/planner.h"
#include "run_length.h"

namespace underkeel::apps {

namespace {

struct Words {
  PlanWords plan;
  bool asks_fit = false;
  std::string fit;  // --fit, as written
  bool json = false;
  bool listing = false;
  std::string html;
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

/// What all ranks of a node take of its memory at most, and of what.
std::string total_text(const plan::Plan& plan, const planner::Room& room) {
  const std::int64_t needed = planner::needed_bytes(plan, room, std::nullopt);
  const std::int64_t outside = plan.overhead_bytes * planner::process_count(room.placement);
  std::string text = fmt::format(
      "host memory of a node: at most {}: {} of arenas, {} for code, libraries, "
      "threads, lists of samples and heap of its process{} (a table's bound; train measures it)",
      format_bytes(needed), format_bytes(needed - outside), format_bytes(outside),
      planner::process_count(room.placement) == 1 ? "" : "es");
  if (room.node)
    text +=
        fmt::format("; allowed {} ({})", format_bytes(room.node->size_bytes), room.node->reason);
  return text + "\n";
}

/// What is known of the disk of a machine that is described.
Result<std::optional<FitDisk>> disk_of(const PlanWords& words, const spec::ModelSpec& model,
                                       const spec::RunConfig& run,
                                       const spec::HardwareSpec& machine,
                                       const std::optional<DataFacts>& data) {
  std::optional<FitDisk> disk;
  if (!machine.out_free_bytes) return disk;
  // Files that cannot be laid out can be with no setting.
  UK_TRY_VOID(disk_need(model, run, std::nullopt));
  disk =
      FitDisk{.free_bytes = *machine.out_free_bytes,
              .source = "out_free_gib of " + words.hardware,
              .need = [&model, &data](const spec::RunConfig& changed) {
                return disk_need(model, changed, length_of(changed, changed.ranks, data)).value();
              }};
  return disk;
}

std::string disk_text(const FitDisk& disk, const spec::RunConfig& run) {
  const io::SpaceNeed need = disk.need(run);
  return fmt::format("disk: {} of {} ({}): {} checkpoint{} of {} at once, the final model {}\n",
                     format_bytes(io::needed_bytes(need)), format_bytes(disk.free_bytes),
                     disk.source, io::checkpoints_at_once(need),
                     io::checkpoints_at_once(need) == 1 ? "" : "s",
                     format_bytes(need.checkpoint_bytes), format_bytes(need.export_bytes));
}

/// Bars on a terminal; nothing where a program reads.
std::string bars(const plan::Plan& plan, const render::Outlook& outlook) {
  if (::isatty(STDOUT_FILENO) == 0) return "";
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool colored = (no_color == nullptr || *no_color == '\0') && terminal != nullptr &&
                       std::string_view(terminal) != "dumb";
  winsize size{};
  const int columns =
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  return render::peak_bars(plan, outlook, {.columns = columns, .colored = colored}) + "\n";
}

Result<void> run_fit(const Words& words) {
  UK_TRY(budgets, parse_given_budgets(words.fit, "--fit"));
  std::optional<std::int64_t> nvme_bytes;
  for (const SpaceBudget& budget : budgets)
    if (budget.space == "nvme") nvme_bytes = budget.size_bytes;
  UK_TRY(asked, read_question(words.plan, budgets));
  UK_TRY(disk, disk_of(words.plan, asked.model, asked.config, asked.machine, asked.data));
  return show_best_fit(
      asked.question(),
      {.json = words.json, .nvme_bytes = nvme_bytes, .data = asked.data, .disk = std::move(disk)});
}

Result<void> run(const Words& words) {
  if (words.asks_fit) return run_fit(words);
  UK_TRY(made, make_planned(words.plan));
  const plan::Plan& plan = made.plan;
  UK_TRY(disk, disk_of(words.plan, made.model, made.config, made.machine, made.data));
  if (!words.html.empty()) {
    io::FileSystem files;
    UK_TRY_VOID(write_page(files, words.html, plan_page(made, words.plan), page_beginning));
  }
  if (words.listing) {
    std::fputs(plan::listing(plan).c_str(), stdout);
  } else if (words.json) {
    std::fputs(render::plan_json(plan, made.outlook).c_str(), stdout);
  } else {
    fmt::print("values in force that are no defaults\n{}\n{}{}\n{}{}\n{}{}{}",
               spec::chosen_values_table(made.config),
               (made.data ? made.data->report : std::string()),
               summary(made.model, made.config, plan), bars(plan, made.outlook),
               render::peak_table(plan, made.outlook), total_text(plan, made.room),
               disk ? disk_text(*disk, made.config) : "",
               times_text(*made.outlook.times, made.machine.rates_are_measured));
    for (const std::string& note : made.config.notes) fmt::print("note: {}\n", note);
    if (!made.data)
      fmt::print(
          "note: the data were not read: samples count as cutoff_len long; --data finds the "
          "longest, and counts samples, steps and windows that train nothing\n");
  }
  if (made.shortage)
    return tl::unexpected(
        planner::does_not_fit(plan, made.config, made.room, *made.shortage, made.advice));
  if (disk) UK_TRY_VOID(io::check_space(disk->need(made.config), disk->free_bytes, disk->source));
  if (!words.json && !words.listing) fmt::print("it fits\n");
  return {};
}

}  // namespace

void add_plan(CLI::App& app, Chosen& chosen) {
  auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand(
      "plan", "Show what a run will need of every memory, and whether it fits. Reads no weights.");
  words->plan.run = add_run_arguments(*command);
  add_plan_flags(*command, words->plan);
  CLI::Option* json = command->add_flag("--json", words->json, "print one JSON object");
  CLI::Option* listing =
      command->add_flag("--listing", words->listing, "print every operation of the plan")
          ->excludes(json);
  CLI::Option* html = command->add_option(
      "--html", words->html, "also write a page with pictures of memory and lanes (see report)");
  CLI::Option* fit =
      command
          ->add_option(
              "--fit", words->fit,
              "SPACE=SIZE[,...]: the fastest settings within these budgets of a rank's device, a "
              "node's host and nvme memory, at the same ranks and global batch")
          ->excludes(listing)
          ->excludes(html);
  command->footer(
      "Ends with exit code 2 when the plan does not fit. Host memory of a node holds the arenas of "
      "all its ranks in host memory, and a bound from a table on everything else in its processes; "
      "train puts what is resident when it starts in that bound's place, so that its figure is "
      "smaller.");
  command->callback([words, fit, &chosen] {
    words->asks_fit = fit->count() > 0;
    chosen.run = [words] { return run(*words); };
  });
}

}  // namespace underkeel::apps
