// underkeel plan RUN.yaml [key=value ...]: what a run will need, before anything is read or taken.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/units.h"
#include "command.h"
#include "disk_outlook.h"
#include "io/checkpoint_space.h"
#include "io/file.h"
#include "output_page.h"
#include "plan/listing.h"
#include "plan_fit.h"
#include "plan_page.h"
#include "planned.h"
#include "planner/planner.h"
#include "time_text.h"

namespace underkeel::apps {

namespace {

struct Words {
  PlanWords plan;
  bool asks_fit = false;
  std::string fit;  // --fit, as written
  bool json = false;
  bool listing = false;
  bool whole_listing = false;  // each operation on a line of its own
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
      text += fmt::format("; or {}: {}", other.value, other.effect);
    text += "\n";
  }
  return text;
}

std::string times_text(const render::Outlook& outlook, bool measured) {
  const render::Times& times = *outlook.times;
  std::string text = fmt::format("step {} (micro-step {}, update {})", time_text(times.step_s),
                                 time_text(times.micro_step_s), time_text(times.update_s));
  if (outlook.saves == render::Saves::on_the_way)
    text += fmt::format(", save {}, of which {} are waited for", time_text(times.save_s),
                        time_text(times.save_wait_s));
  return text + fmt::format("; from {} rates\n", measured ? "measured" : "assumed");
}

/// Of a run without saves between its steps: what it writes all the same.
std::string saves_text(const render::Outlook& outlook) {
  if (outlook.saves == render::Saves::on_the_way) return "";
  return fmt::format(
      "saves: none on the way; {}; a signal that stops the run makes it write a checkpoint of {}\n",
      outlook.saves == render::Saves::at_the_end ? "the final model at the end"
                                                 : "no weights at the end either",
      format_bytes(outlook.disk->checkpoint_bytes));
}

/// What all ranks of a node take of its memory at most, and of what.
std::string total_text(const render::NodeMemory& node) {
  std::string text = fmt::format(
      "host memory of a node: at most {}: {} of arenas, {} for code, libraries, "
      "threads, lists of samples and heap of its process{} (a table's bound; train measures it)",
      format_bytes(node.needed_bytes), format_bytes(node.needed_bytes - node.outside_bytes),
      format_bytes(node.outside_bytes), node.process_count == 1 ? "" : "es");
  if (node.budget)
    text += fmt::format("; allowed {} ({})", format_bytes(node.budget->size_bytes),
                        node.budget->reason);
  return text + "\n";
}

/// What is known of the disk; `asked` must outlive it.
Result<std::optional<FitDisk>> disk_of(const PlanWords& words, Asked& asked) {
  UK_TRY(output, output_disk(words, asked));
  std::optional<FitDisk> disk;
  if (!output.free_bytes) return disk;
  // Files that cannot be laid out can be with no setting.
  UK_TRY_VOID(need_on(output, asked, asked.config));
  disk = FitDisk{.free_bytes = *output.free_bytes,
                 .source = output.source,
                 .need = [&asked, output = output](const spec::RunConfig& changed) {
                   return need_on(output, asked, changed).value();
                 }};
  return disk;
}

std::string disk_text(const render::DiskNeed& disk) {
  std::string text = fmt::format("disk: {}", format_bytes(disk.needed_bytes));
  if (disk.free_bytes)
    text += fmt::format(" of {} ({})", format_bytes(*disk.free_bytes), disk.source);
  if (disk.is_least)
    text +=
        " at least (all checkpoints are kept, and how many there are is not known: give "
        "max_steps, --data or save_total_limit)";
  text +=
      disk.checkpoint_count > 0
          ? fmt::format(": {} checkpoint{} of {} at once", disk.checkpoint_count,
                        disk.checkpoint_count == 1 ? "" : "s", format_bytes(disk.checkpoint_bytes))
          : std::string(": no checkpoint");
  if (disk.export_bytes > 0)
    text += disk.checkpoint_count > 0
                ? fmt::format(", then {} and the final model of {}", disk.kept_count,
                              format_bytes(disk.export_bytes))
                : fmt::format(", the final model of {}", format_bytes(disk.export_bytes));
  return text + (disk.free_bytes ? "\n" : "; train asks what is free before step 1\n");
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

/// --fit asks within budgets; --memory beside it would be a second answer for the same space.
Result<void> check_one_budget(const std::vector<SpaceBudget>& of_fit,
                              const std::vector<std::string>& memory) {
  if (memory.empty()) return {};
  UK_TRY(others, parse_given_budgets(fmt::format("{}", fmt::join(memory, ",")), "--memory"));
  for (const SpaceBudget& own : of_fit)
    for (const SpaceBudget& other : others)
      if (own.space == other.space && own.size_bytes != other.size_bytes)
        return fail(ErrorCode::bad_config,
                    fmt::format("`{}` has two budgets: {} and {}", own.space, own.text, other.text),
                    "--fit and --memory", "give the space to one of the two");
  return {};
}

Result<void> run_fit(const Words& words) {
  UK_TRY(budgets, parse_given_budgets(words.fit, "--fit"));
  UK_TRY_VOID(check_one_budget(budgets, words.plan.run->memory));
  std::optional<std::int64_t> nvme_bytes;
  for (const SpaceBudget& budget : budgets)
    if (budget.space == "nvme") nvme_bytes = budget.size_bytes;
  UK_TRY(asked, read_question(words.plan, budgets));
  UK_TRY(disk, disk_of(words.plan, asked));
  return show_best_fit(asked.question(), {.json = words.json,
                                          .budgets = budgets,
                                          .nvme_bytes = nvme_bytes,
                                          .data = asked.data,
                                          .disk = std::move(disk)});
}

Result<void> run(const Words& words) {
  if (words.asks_fit) return run_fit(words);
  UK_TRY(made, make_planned(words.plan));
  const plan::Plan& plan = made.plan;
  if (!words.html.empty()) {
    io::FileSystem files;
    UK_TRY_VOID(write_page(files, words.html, plan_page(made, words.plan), page_beginning));
  }
  if (words.listing) {
    const std::string text = words.whole_listing ? plan::listing(plan) : plan::folded_listing(plan);
    std::fputs(text.c_str(), stdout);
  } else if (words.json) {
    std::fputs(render::plan_json(plan, made.outlook).c_str(), stdout);
  } else {
    fmt::print("values in force that are no defaults\n{}\n{}{}\n{}{}\n{}{}{}{}",
               printable_lines(spec::chosen_values_table(made.config)),
               (made.data ? made.data->report : std::string()),
               summary(made.model, made.config, plan), bars(plan, made.outlook),
               render::peak_table(plan, made.outlook), total_text(*made.outlook.node),
               made.outlook.disk ? disk_text(*made.outlook.disk) : "", saves_text(made.outlook),
               times_text(made.outlook, made.machine.rates_are_measured));
    for (const std::string& note : made.config.notes)
      fmt::print("note: {}\n", printable(note, any_length));
    if (!made.data)
      fmt::print(
          "note: the data were not read: samples count as cutoff_len long; --data finds the "
          "longest, and counts samples, steps and windows that train nothing\n");
  }
  UK_TRY_VOID(check_fits(made));
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
      command
          ->add_flag("--listing", words->listing,
                     "print the operations of the plan, those of equal layers once")
          ->excludes(json);
  command
      ->add_flag("--all", words->whole_listing,
                 "with --listing: each operation on a line of its own")
      ->needs(listing);
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
