// The one binary: finds the subcommand, runs it, tells how it went.

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/nearest_word.h"
#include "comm/communicator.h"
#include "command.h"

namespace underkeel::apps {

namespace {

constexpr bool has_mpi = UNDERKEEL_HAS_MPI;
constexpr bool has_cuda = UNDERKEEL_HAS_CUDA;

std::string version_text() {
  const auto word = [](bool there) { return there ? "yes" : "no"; };
  return fmt::format("underkeel {}\nbackends: cpu yes, cuda {}, mpi {}", UNDERKEEL_VERSION,
                     word(has_cuda), word(has_mpi));
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

// Words that no argument takes, told with the nearest one that there is.
std::optional<Error> unknown_word(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string help =
      chosen.empty() ? "underkeel --help" : fmt::format("underkeel {} --help", command.get_name());
  for (const std::string& word : command.remaining()) {
    if (word == "--") continue;
    const bool is_flag = word.starts_with("-");
    std::vector<std::string> known;
    if (is_flag) {
      known = flags_of(command);
    } else if (chosen.empty()) {
      for (const CLI::App* sub : app.get_subcommands({})) known.push_back(sub->get_name());
    }
    const std::string nearest = nearest_word(word.substr(0, word.find('=')), known);
    const char* kind = is_flag ? "flag" : chosen.empty() ? "subcommand" : "argument";
    return Error{.code = ErrorCode::bad_config,
                 .what = fmt::format("unknown {} `{}`", kind, word),
                 .where = "command line",
                 .fix = nearest.empty()
                            ? help
                            : fmt::format("the nearest is `{}`; all of them: {}", nearest, help)};
  }
  return std::nullopt;
}

int tell(const Error& error) {
  std::fflush(stdout);
  // Without words it is another rank's to tell.
  if (!error.what.empty()) std::fputs((to_text(error) + "\n").c_str(), stderr);
  return exit_code(error.code);
}

/// What is wrong in a file and says nothing of a cure: doctor reads the same file, and tells what comes of each key.
Error with_cure(Error error) {
  if (!error.fix.empty() || exit_code(error.code) != 2) return error;
  const std::string file = error.where.substr(0, error.where.find(", "));
  std::error_code status;
  if (!file.empty() && std::filesystem::is_regular_file(file, status))
    error.fix =
        fmt::format("mend what is named; `underkeel doctor {}` says what comes of it", file);
  return error;
}

int run(int argument_count, char** arguments) {
  CLI::App app("Fine-tunes Llama-family models, and knows every byte before the first step.",
               "underkeel");
  app.set_version_flag("--version", version_text(), "version, and the backends built in");
  app.allow_extras();
  app.require_subcommand(0, 1);
  app.footer(
      "Exit codes: 0 done; 2 a mistake in what was given, or the plan does not fit; 3 the world "
      "failed (disk full, rank lost);\n4 numbers are no longer finite; 75 stopped early by a "
      "signal, "
      "resumable; 134 a bug in this program.");
  Chosen chosen;
  add_train(app, chosen);
  add_plan(app, chosen);
  add_doctor(app, chosen);
  add_report(app, chosen);
  add_bench(app, chosen);
  add_inspect(app, chosen);
  add_export(app, chosen);
  add_generate(app, chosen);
  for (CLI::App* command : app.get_subcommands({})) command->allow_extras();
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    if (const auto unknown = unknown_word(app)) return tell(*unknown);
    const auto commands = app.get_subcommands();
    return tell({.code = ErrorCode::bad_config,
                 .what = error.what(),
                 .where = "command line",
                 .fix = commands.empty()
                            ? "underkeel --help"
                            : fmt::format("underkeel {} --help", commands.front()->get_name())});
  }
  if (const auto unknown = unknown_word(app)) return tell(*unknown);
  if (!chosen.run) {
    std::fputs(app.help().c_str(), stdout);
    return 2;
  }
  set_up_logging();
  const Error no_output{.code = ErrorCode::io,
                        .what = "what was to be printed could not be written",
                        .where = "standard output",
                        .fix = "look at where it is redirected: a full disk, or a closed pipe"};
  try {
    const Result<void> result = chosen.run();
    if (!result) return tell(with_cure(result.error()));
  } catch (const std::system_error&) {  // fmt's, of a failed write
    return tell(no_output);
  }
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? chosen.exit_code : tell(no_output);
}

}  // namespace

}  // namespace underkeel::apps

int main(int argument_count, char** arguments) {
  const int code = underkeel::apps::run(argument_count, arguments);
  underkeel::comm::finalize_mpi();  // last: after a failure it may end the process itself
  return code;
}
