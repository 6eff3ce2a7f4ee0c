#include "planner/settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace underkeel::planner {

Settings settings_of(const spec::RunConfig& run) {
  return {.recompute = run.recompute,
          .micro_batch = run.sequences_per_micro_batch,
          .accumulation = run.accumulation_steps,
          .stage = run.zero.stage,
          .prefetch_elements = run.zero.prefetch_bucket_elements,
          .evaluation_batch = run.evaluation.batch_size};
}

std::string_view name_of(spec::Recompute level) {
  switch (level) {
    case spec::Recompute::automatic:
      return "auto";
    case spec::Recompute::none:
      return "none";
    case spec::Recompute::cheap:
      return "cheap";
    case spec::Recompute::block:
      return "block";
  }
  return "";
}

std::vector<std::string> words_for(const spec::RunConfig& run, const Settings& settings) {
  const Settings now = settings_of(run);
  std::vector<std::string> words;
  const auto add = [&](bool differs, std::string word) {
    if (differs) words.push_back(std::move(word));
  };
  add(settings.recompute != now.recompute,
      fmt::format("underkeel.recompute={}", name_of(settings.recompute)));
  add(settings.micro_batch != now.micro_batch,
      fmt::format("per_device_train_batch_size={}", settings.micro_batch));
  add(settings.accumulation != now.accumulation,
      fmt::format("gradient_accumulation_steps={}", settings.accumulation));
  const std::size_t without_deepspeed = words.size();
  add(settings.stage != now.stage,
      fmt::format("deepspeed.zero_optimization.stage={}", settings.stage));
  if (settings.prefetch_elements != now.prefetch_elements) {
    UK_CHECK(settings.prefetch_elements.has_value(), "a bound that was given cannot be taken back");
    words.push_back(fmt::format("deepspeed.zero_optimization.stage3_prefetch_bucket_size={}",
                                *settings.prefetch_elements));
  }
  if (words.size() > without_deepspeed && !run.has_deepspeed && settings.accumulation > 1 &&
      (run.precision == spec::Precision::bf16 || run.precision == spec::Precision::f16))
    words.emplace_back("deepspeed.data_types.grad_accum_dtype=fp32");
  add(settings.evaluation_batch != now.evaluation_batch,
      fmt::format("per_device_eval_batch_size={}", settings.evaluation_batch));
  return words;
}

spec::RunConfig with_settings(spec::RunConfig run, const Settings& settings) {
  run.recompute = settings.recompute;
  run.sequences_per_micro_batch = settings.micro_batch;
  run.accumulation_steps = settings.accumulation;
  run.zero.stage = settings.stage;
  run.zero.prefetch_bucket_elements = settings.prefetch_elements;
  if (settings.prefetch_elements) run.zero.auto_prefetch_bucket = false;
  run.evaluation.batch_size = settings.evaluation_batch;
  return run;
}

std::optional<ChangedRun> read_changed(const spec::RunConfig& run,
                                       const std::vector<std::string>& words,
                                       std::int64_t world_size) {
  // A DeepSpeed config may repeat what is changed here; "auto" makes it follow.
  const std::vector<std::vector<std::string>> followers = {
      {},
      {"deepspeed.train_micro_batch_size_per_gpu=auto",
       "deepspeed.gradient_accumulation_steps=auto"},
      {"deepspeed.bf16.enabled=auto"}};
  for (const std::vector<std::string>& more : followers) {
    ChangedRun changed;
    changed.words = words;
    changed.words.insert(changed.words.end(), more.begin(), more.end());
    std::vector<std::string> changes = run.changes;
    changes.insert(changes.end(), changed.words.begin(), changed.words.end());
    auto read = spec::read_run_file(run.run_file, changes, spec::WorldSize{world_size, "--ranks"});
    if (!read) continue;
    changed.run = std::move(*read);
    changed.run.data.samples = run.data.samples;
    return changed;
  }
  return std::nullopt;
}

std::vector<std::int64_t> divisors_of(std::int64_t value) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= value / d; ++d) {
    if (value % d != 0) continue;
    divisors.push_back(d);
    if (d != value / d) divisors.push_back(value / d);
  }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

}  // namespace underkeel::planner
