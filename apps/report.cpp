// underkeel report [RUN_FOLDER] [--plan RUN.yaml [key=value ...]]: one page of a plan, a run, or both.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "command.h"
#include "io/file.h"
#include "output_page.h"
#include "plan_page.h"
#include "planned.h"
#include "render/render.h"
#include "report/page.h"
#include "report/run_folder.h"
#include "report/server.h"
#include "report/shown_run.h"

namespace underkeel::apps {

namespace {

struct Words {
  std::vector<std::string> words;  // RUN_FOLDER and key=value
  std::string run_file;
  PlanWords plan;
  std::string output;
  std::string trace;
  bool watch = false;
  int port = 0;
  std::string address = "127.0.0.1";
  std::string folder;  // of the run, once `words` are parted; empty: none
};

/// Parts folders from changes, and says what does not go together.
Result<void> part_words(Words& words) {
  std::vector<std::string> folders;
  for (const std::string& word : words.words)
    (word.find('=') == std::string::npos || std::filesystem::exists(word) ? folders
                                                                          : words.plan.run->changes)
        .push_back(word);
  if (folders.size() > 1)
    return fail(ErrorCode::bad_config, fmt::format("{} run folders", folders.size()),
                fmt::format("command line: {}", fmt::join(folders, ", ")),
                "give one; a run file goes behind --plan");
  if (!folders.empty()) words.folder = folders[0];
  words.plan.run->run_file = words.run_file;
  const bool has_plan = !words.run_file.empty();
  if (words.folder.empty() && !has_plan)
    return fail(ErrorCode::bad_config, "nothing to report on", "command line",
                "underkeel report RUN_FOLDER, or --plan RUN.yaml, or both");
  if (!words.plan.run->changes.empty() && !has_plan)
    return fail(
        ErrorCode::bad_config,
        fmt::format("`{}` changes a run file, and none is given", words.plan.run->changes[0]),
        "command line", "--plan RUN.yaml");
  if (!words.trace.empty() && !has_plan)
    return fail(ErrorCode::bad_config, "a trace is made from a plan, and none is given", "--trace",
                "--plan RUN.yaml");
  if (words.watch && words.folder.empty())
    return fail(ErrorCode::bad_config, "no run to watch", "--watch", "name its folder");
  if (words.watch && !words.output.empty())
    return fail(ErrorCode::bad_config, "a watched page is served, not written", "--output",
                "leave out --watch or --output");
  return {};
}

/// The name of a run's folder, for a title.
std::string title_of(const Words& words) {
  if (!words.run_file.empty()) return std::filesystem::path(words.run_file).filename().string();
  const std::filesystem::path folder = std::filesystem::path(words.folder).lexically_normal();
  const std::string name =
      (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  return name.empty() ? words.folder : name;
}

/// What `--watch` serves. Reads the folder again at most twice a second.
class Watched {
 public:
  Watched(report::RunFolder folder, report::Page page)
      : folder_(std::move(folder)), page_(std::move(page)) {}

  std::string page() {
    refresh();
    page_.run_json = run_json_;
    return report::html_of(page_);
  }
  std::string figures() {
    refresh();
    return report::live_json(run_json_);
  }

 private:
  void refresh() {
    constexpr std::chrono::milliseconds shortest_pause{500};
    const auto now = std::chrono::steady_clock::now();
    if (read_ && now - *read_ < shortest_pause) return;
    read_ = now;
    folder_.refresh();
    run_json_ = report::to_json(folder_.record());
  }

  report::RunFolder folder_;
  report::Page page_;
  std::string run_json_;
  std::optional<std::chrono::steady_clock::time_point> read_;
};

/// Until a signal asks to stop.
Result<void> serve(const Words& words, Watched& watched) {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGINT);
  sigaddset(&stops, SIGTERM);
  // Before the server's thread is there, so that it inherits the mask.
  pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  UK_TRY(server, report::Server::start({.address = words.address,
                                        .port = words.port,
                                        .page = [&] { return watched.page(); },
                                        .figures = [&] { return watched.figures(); }}));
  const bool is_v6 = words.address.find(':') != std::string::npos;
  fmt::print("watching {}: http://{}{}{}:{}/ (Ctrl-C ends it)\n", words.folder, is_v6 ? "[" : "",
             words.address, is_v6 ? "]" : "", server.port());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&stops, &signal);
  return {};
}

/// Beside a run the plan that the run had: it knew the data. Where they cannot be read any more, the plan without them.
Result<Planned> plan_beside(const Words& words) {
  if (words.folder.empty() || words.plan.data) return make_planned(words.plan);
  PlanWords with_data = words.plan;
  with_data.data = true;
  Result<Planned> made = make_planned(with_data);
  if (made) return made;
  UK_TRY(without, make_planned(words.plan));
  // A plan that does not fit tells so itself, whatever the data are.
  if (made.error().code != ErrorCode::does_not_fit)
    fmt::print(
        "note: the data were not read, so that samples count as cutoff_len long; the plan of the "
        "run, which read them, may be smaller (--data: {})\n",
        made.error().what);
  return without;
}

Result<void> run(Words& words) {
  UK_TRY_VOID(part_words(words));
  io::FileSystem files;
  report::Page page{.title = title_of(words), .made = maker(), .is_live = words.watch};
  Result<void> fits;
  if (!words.run_file.empty()) {
    // Beside a run that has written its own part of the disk, what is free now says nothing.
    words.plan.asks_disk_here = words.folder.empty();
    UK_TRY(made, plan_beside(words));
    fits = check_fits(made);
    const report::ShownRun shown = report::shown_run(made.plan, made.machine);
    page.plan_json = plan_part(made, shown);
    if (!words.trace.empty()) {
      UK_TRY_VOID(write_page(files, words.trace, render::trace_json(made.plan, shown.timeline),
                             trace_beginning));
      fmt::print("{}: open it in https://ui.perfetto.dev\n", words.trace);
    }
  }
  std::optional<report::RunFolder> folder;
  if (!words.folder.empty()) {
    UK_TRY(opened, report::RunFolder::open(files, words.folder));
    folder = std::move(opened);
  }
  if (words.watch) {
    if (!fits) log(LogLevel::warning, to_text(fits.error()));
    Watched watched(std::move(*folder), std::move(page));
    return serve(words, watched);
  }
  if (folder) {
    folder->refresh();
    page.run_json = report::to_json(folder->record());
    for (const std::string& remark : folder->record().remarks) fmt::print("note: {}\n", remark);
  }
  // With the run that it shows; of a plan alone in the current folder.
  const std::string output =
      !words.output.empty()
          ? words.output
          : (std::filesystem::path(words.folder) / "report.html").lexically_normal().string();
  UK_TRY_VOID(write_page(files, output, report::html_of(page), page_beginning));
  fmt::print("{}: open it in a browser\n", output);
  return fits;
}

}  // namespace

void add_report(CLI::App& app, Chosen& chosen) {
  auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand(
      "report", "Write one HTML page with pictures of a plan, of a run, or of both.");
  command->add_option("RUN_FOLDER", words->words,
                      "output folder of a run; with --plan also key=value changes of its run file");
  words->plan.run = add_run_flags(*command);
  command->add_option(
      "--plan", words->run_file,
      "run file to plan, as `plan` takes it; beside a run as with --data, where the data "
      "are there");
  add_plan_flags(*command, words->plan);
  command->add_option("-o,--output", words->output,
                      "the page (report.html, in RUN_FOLDER where one is given)");
  command->add_option("--trace", words->trace,
                      "also write the plan's forecast as a trace for Perfetto");
  command->add_flag("--watch", words->watch,
                    "serve the page of a run in progress, with live figures, until Ctrl-C");
  command->add_option("--port", words->port, "of --watch (0: a free one)")
      ->check(CLI::Range(0, 65535));
  command->add_option(
      "--listen", words->address,
      "address that --watch listens on, in figures (127.0.0.1: this machine alone)");
  command->footer(
      "The page needs no network. A run's folder may be one of this engine, LLaMA-Factory or the "
      "Trainer. Of a plan that does not fit the page is written, and the exit code is 2.");
  command->callback([words, &chosen] { chosen.run = [words] { return run(*words); }; });
}

}  // namespace underkeel::apps
