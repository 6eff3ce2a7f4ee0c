// Where the values of a run come from, and the batch equation that spans several files.

#include <algorithm>

#include "spec/run_sections.h"

namespace underkeel::spec {

std::string source_of(const RunConfig& run, std::string_view key) {
  for (const Provenance& entry : run.provenance)
    if (entry.key == key) return entry.source;
  return "default";
}

std::string provenance_table(const RunConfig& run) {
  std::size_t key_width = 0, value_width = 0;
  for (const Provenance& entry : run.provenance) {
    key_width = std::max(key_width, entry.key.size());
    value_width = std::max(value_width, std::min<std::size_t>(entry.value.size(), 40));
  }
  std::string table;
  for (const Provenance& entry : run.provenance)
    table += fmt::format("{:<{}}  {:<{}}  {}\n", entry.key, key_width, entry.value, value_width,
                         entry.source);
  return table;
}

std::optional<Problem> batch_problem(const RunConfig& run, const WorldSize& world) {
  if (!run.global_batch_sequences) return std::nullopt;
  const std::int64_t micro = run.sequences_per_micro_batch;
  const std::int64_t wanted = *run.global_batch_sequences;
  const std::int64_t given = micro * run.accumulation_steps * world.ranks;
  if (given == wanted) return std::nullopt;
  Problem problem;
  problem.key = "deepspeed.train_batch_size";
  problem.what = fmt::format(
      "{} ({}) is not per_device_train_batch_size {} ({}) x gradient_accumulation_steps {} ({}) x "
      "ranks {} ({}) = {}",
      wanted, source_of(run, "deepspeed.train_batch_size"), micro,
      source_of(run, "per_device_train_batch_size"), run.accumulation_steps,
      source_of(run, "gradient_accumulation_steps"), world.ranks, world.source, given);
  if (wanted % (micro * world.ranks) == 0)
    problem.fix = fmt::format("gradient_accumulation_steps: {} makes {}",
                              wanted / (micro * world.ranks), wanted);
  else
    problem.fix = fmt::format("train_batch_size: {} or \"auto\" is what the run file gives", given);
  return problem;
}

Result<void> check_world_size(const RunConfig& run, const WorldSize& world) {
  const auto problem = batch_problem(run, world);
  if (!problem) return {};
  return fail(problem->code, problem->what, problem->key, problem->fix);
}

}  // namespace underkeel::spec
