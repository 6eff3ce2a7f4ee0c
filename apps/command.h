#pragma once
// What the files of the subcommands share: one add_... function each, which declares the
// subcommand's arguments and leaves what to run in `chosen` when the command line names it.

#include <functional>
#include <string>

#include "base/result.h"

namespace CLI {
class App;
}

namespace underkeel::apps {

struct Chosen {
  std::function<Result<void>()> run;
  int exit_code = 0;  // of a run without an error: doctor's verdict is one
};

void add_bench(CLI::App& app, Chosen& chosen);
void add_doctor(CLI::App& app, Chosen& chosen);
void add_export(CLI::App& app, Chosen& chosen);
void add_generate(CLI::App& app, Chosen& chosen);
void add_inspect(CLI::App& app, Chosen& chosen);
void add_plan(CLI::App& app, Chosen& chosen);
void add_report(CLI::App& app, Chosen& chosen);
void add_train(CLI::App& app, Chosen& chosen);

/// Lines of log() go to the error stream, with time and level, so that standard output holds
/// results alone.
void set_up_logging();

}  // namespace underkeel::apps
