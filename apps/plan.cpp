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
#include "data/sampler.h"
#include "disk_need.h"
#include "io/checkpoint_space.h"
#include "io/file.h"
#include "output_page.h"
#include "plan/listing.h"
#include "plan_fit.h"
#include "plan_page.h"
#include "planned.h"
#include "planner/planner.h"
#include "train/run_data.h"

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

// Whether the checkpoints that will stand at once fit the disk of a machine that is described.
Result<void> check_disk(const PlanWords& words, const spec::ModelSpec& model,
                        const spec::RunConfig& run, const plan::Plan& plan,
                        const spec::HardwareSpec& machine) {
  if (!machine.out_free_bytes || run.save.strategy == spec::Cadence::no) return {};
  UK_TRY(need, disk_need(model, run, plan));
  return io::check_space(need, *machine.out_free_bytes, "out_free_gib of " + words.hardware);
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

// Of a run whose data have been read; of others where max_steps says so.
std::optional<RunLength> length_of(const spec::RunConfig& run, std::int64_t ranks,
                                   const std::optional<DataFacts>& data) {
  std::optional<RunLength> length;
  if (run.max_steps > 0) length = RunLength{.steps = run.max_steps, .steps_of_epoch = {}};
  if (!data) return length;
  const auto sampler = data::Sampler::make(
      train::sampler_config(run, data->sample_count, static_cast<int>(ranks), 0));
  if (!sampler) return length;
  return RunLength{.steps = run.max_steps > 0 ? run.max_steps : sampler->updates_for(run.epochs),
                   .steps_of_epoch = sampler->updates_per_epoch()};
}

// Samples of an evaluation: of data that have been read, or held out by number.
std::optional<std::int64_t> evaluation_samples(const spec::RunConfig& run,
                                               const std::optional<DataFacts>& data) {
  if (data) return data->evaluation_sample_count;
  if (run.evaluation.validation_size > 1 && run.data.evaluation_datasets.empty())
    return static_cast<std::int64_t>(run.evaluation.validation_size);
  return std::nullopt;
}

Result<void> run_fit(const Words& words) {
  UK_TRY(budgets, parse_given_budgets(words.fit, "--fit"));
  std::optional<std::int64_t> nvme_bytes;
  for (const SpaceBudget& budget : budgets)
    if (budget.space == "nvme") nvme_bytes = budget.size_bytes;
  UK_TRY(asked, read_question(words.plan, budgets));
  return show_best_fit(asked.question(),
                       {.json = words.json,
                        .nvme_bytes = nvme_bytes,
                        .length =
                            [&](const spec::RunConfig& run) {
                              return length_of(run, asked.config.ranks, asked.data);
                            },
                        .evaluation_samples = evaluation_samples(asked.config, asked.data)});
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
    std::fputs(plan::listing(plan).c_str(), stdout);
  } else if (words.json) {
    std::fputs(render::plan_json(plan, made.outlook).c_str(), stdout);
  } else {
    fmt::print("values in force that are no defaults\n{}\n{}{}\n{}{}\n{}{}",
               spec::chosen_values_table(made.config), made.data_text,
               summary(made.model, made.config, plan), bars(plan, made.outlook),
               render::peak_table(plan, made.outlook), total_text(plan, made.room),
               times_text(*made.outlook.times, made.machine.rates_are_measured));
    for (const std::string& note : made.config.notes) fmt::print("note: {}\n", note);
  }
  if (made.shortage)
    return tl::unexpected(
        planner::does_not_fit(plan, made.config, made.room, *made.shortage, made.advice));
  UK_TRY_VOID(check_disk(words.plan, made.model, made.config, plan, made.machine));
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
