#include "run_arguments.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"

namespace underkeel::apps {

namespace {
constexpr std::int64_t least_budget_bytes = 4 * kibibyte;
constexpr const char* budget_form =
    "write SPACE=SIZE[,SPACE=SIZE], such as device=80GiB,host=100GiB";

std::string without_spaces_around(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

Result<std::vector<SpaceBudget>> parse_given_budgets(const std::string& text,
                                                     const std::string& flag) {
  if (text.empty()) return fail(ErrorCode::bad_config, "no budget is given", flag, budget_form);
  return parse_budgets(text, flag);
}

Result<std::vector<SpaceBudget>> parse_budgets(const std::string& text, const std::string& flag) {
  const bool takes_nvme = flag == "--fit";
  std::vector<SpaceBudget> budgets;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    const std::string part = without_spaces_around(text.substr(begin, end - begin));
    if (part.empty()) continue;  // a comma behind the last one, or two in a row
    const std::size_t sign = part.find('=');
    const std::string space = without_spaces_around(part.substr(0, sign));
    if (space == "nvme" && !takes_nvme)
      return fail(ErrorCode::bad_config, fmt::format("`{}`: no part of a run lies on nvme", part),
                  flag, "leave it out; `plan --fit` alone takes it, to say what the room would do");
    if (sign == std::string::npos ||
        (space != "device" && space != "host" && !(takes_nvme && space == "nvme")))
      return fail(ErrorCode::bad_config, fmt::format("`{}` is no budget", part), flag, budget_form);
    const std::string size = without_spaces_around(part.substr(sign + 1));
    const auto before =
        std::find_if(budgets.begin(), budgets.end(),
                     [&](const SpaceBudget& budget) { return budget.space == space; });
    if (before != budgets.end())
      return fail(ErrorCode::bad_config,
                  fmt::format("`{}` has two budgets: {} and {}", space, before->text, size), flag,
                  "leave one of them out");
    UK_TRY(size_bytes, parse_bytes(size, flag));
    if (size_bytes <= 0)
      return fail(ErrorCode::bad_config, fmt::format("`{}`: a size above 0 is wanted", part), flag,
                  budget_form);
    if (size_bytes < least_budget_bytes && !lacks_unit(size, size_bytes))
      return fail(ErrorCode::bad_config,
                  fmt::format("`{}` is {} {}, less than a page of memory; no run takes so little",
                              part, format_count(size_bytes), size_bytes == 1 ? "byte" : "bytes"),
                  flag, budget_form);
    if (lacks_unit(size, size_bytes))
      return fail(ErrorCode::bad_config,
                  fmt::format("`{}` is {} {}; no run takes so little", part,
                              format_count(size_bytes), size_bytes == 1 ? "byte" : "bytes"),
                  flag, fmt::format("write a unit: {0}={1}MiB / {0}={1}GiB", space, size));
    budgets.push_back({space, size, size_bytes});
  }
  if (budgets.empty() && !text.empty())
    return fail(ErrorCode::bad_config, fmt::format("no budget is given in `{}`", text), flag,
                budget_form);
  return budgets;
}

std::string refuse_empty(const std::string& word) {
  return word.empty() ? "it is given without a value" : "";
}

Result<std::vector<std::string>> RunArguments::all_changes() const {
  std::vector<std::string> all = changes;
  if (ranks) all.push_back(fmt::format("underkeel.ranks={}", *ranks));
  if (memory.empty()) return all;
  UK_TRY(budgets, parse_given_budgets(fmt::format("{}", fmt::join(memory, ",")), "--memory"));
  for (const SpaceBudget& budget : budgets)
    all.push_back(fmt::format("underkeel.memory.{}={}", budget.space, budget.text));
  return all;
}

void RunArguments::name_budgets(spec::RunConfig& run) const {
  if (memory.empty()) return;
  const auto budgets = parse_given_budgets(fmt::format("{}", fmt::join(memory, ",")), "--memory");
  if (!budgets) return;  // all_changes() has said so
  for (const SpaceBudget& budget : *budgets)
    for (spec::Provenance& entry : run.provenance)
      if (entry.key == "underkeel.memory." + budget.space) entry.source = "--memory";
}

std::optional<spec::WorldSize> RunArguments::world() const {
  if (!ranks) return std::nullopt;
  return spec::WorldSize{*ranks, "--ranks"};
}

std::shared_ptr<RunArguments> add_run_arguments(CLI::App& command) {
  auto arguments = add_run_flags(command);
  command.add_option("RUN.yaml", arguments->run_file, "run file, as LLaMA-Factory takes it")
      ->required();
  command.add_option("KEY=VALUE", arguments->changes,
                     "changes of the run file; dots reach into mappings "
                     "(deepspeed.zero_optimization.stage=3)");
  return arguments;
}

std::shared_ptr<RunArguments> add_run_flags(CLI::App& command) {
  auto arguments = std::make_shared<RunArguments>();
  // Of a flag that is given twice the last one holds, so that a suggestion can be put behind a command.
  command.add_option("--ranks", arguments->ranks, "ranks as threads of this process")
      ->check(CLI::Range(1, 4096))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command
      .add_option("--memory", arguments->memory,
                  "budgets: SPACE=SIZE[,SPACE=SIZE]; device: of one rank, host: of one node")
      ->allow_extra_args(false)  // one value a flag: words behind it are changes of the run file
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return arguments;
}

}  // namespace underkeel::apps
