// underkeel train RUN.yaml [key=value ...]

#include <CLI/CLI.hpp>

#include "comm/communicator.h"
#include "command.h"
#include "run_arguments.h"
#include "train/run.h"

namespace underkeel::apps {

namespace {

Result<void> run(const RunArguments& arguments) {
  if (arguments.ranks && comm::started_by_mpi())
    return fail(ErrorCode::bad_config, "--ranks asks for threads, and a launcher started processes",
                "--ranks", "leave --ranks out: mpirun or srun says how many ranks there are");
  UK_TRY(changes, arguments.all_changes());
  UK_TRY(config, spec::read_run_file(arguments.run_file, changes, arguments.world()));
  arguments.name_budgets(config);
  return train::train(config);
}

}  // namespace

void add_train(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("train", "Fine-tune, or train from scratch.");
  const auto arguments = add_run_arguments(*command);
  command->footer(
      "Ranks as processes: mpirun -n N underkeel train RUN.yaml. A run that was stopped goes on "
      "with the same command.");
  command->callback([arguments, &chosen] { chosen.run = [arguments] { return run(*arguments); }; });
}

}  // namespace underkeel::apps
