#pragma once
// RUN.yaml [key=value ...] [--ranks N] [--memory SPACE=SIZE,...]: what `train` and `plan` share.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/run_config.h"

namespace CLI {
class App;
}

namespace underkeel::apps {

struct SpaceBudget {
  std::string space;  // "device", "host" or "nvme"
  std::string text;   // the size, as written
  std::int64_t size_bytes = 0;
};
/// "device=80GiB, host=100gib," in parts, in order; nothing of an empty text. `flag` names the source in errors; --fit
/// takes nvme too.
/// Errors:  bad_config for another space, a space given twice, a size that is none, or without a unit below 1 MiB, or
/// below a page in any, or commas alone.
Result<std::vector<SpaceBudget>> parse_budgets(const std::string& text,
                                               const std::string& flag = "--memory");
/// The same of a flag that is there, where nothing is no answer.
Result<std::vector<SpaceBudget>> parse_given_budgets(const std::string& text,
                                                     const std::string& flag);

/// For CLI11's check(): a word that is there and says nothing, as an empty shell variable leaves it.
std::string refuse_empty(const std::string& word);

struct RunArguments {
  std::filesystem::path run_file;
  std::vector<std::string> changes;  // key=value, as written
  std::optional<int> ranks;          // --ranks
  std::vector<std::string> memory;   // --memory, as written

  /// `changes`, then those that the flags stand for: flags win.
  Result<std::vector<std::string>> all_changes() const;
  /// Names the flag as the source of budgets that it gave, for errors.
  void name_budgets(spec::RunConfig& run) const;
  /// How many ranks are asked for on the command line, for DeepSpeed's batch equation.
  std::optional<spec::WorldSize> world() const;
};

/// Declares the flags alone, where the words stand otherwise.
std::shared_ptr<RunArguments> add_run_flags(CLI::App& command);
/// Declares the arguments; the values are there once the command line is parsed.
std::shared_ptr<RunArguments> add_run_arguments(CLI::App& command);

}  // namespace underkeel::apps
