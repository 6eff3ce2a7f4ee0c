#include "train/model_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace underkeel::train {

namespace {

/// Quoted, so that no name can end the front matter or a line of it. JSON strings are YAML strings.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string model_card(const Job& job, const TrainerState& state) {
  const spec::RunConfig& run = job.run;
  const std::string base = run.model.string();
  const std::string name =
      run.output.filename().empty() ? run.output.parent_path().filename() : run.output.filename();
  std::string text = fmt::format(
      "---\nlibrary_name: transformers\nbase_model: {}\ntags:\n- full\n- generated_from_trainer\n"
      "model-index:\n- name: {}\n  results: []\n---\n\n# {}\n\n",
      quoted(base), quoted(name), name);
  text += fmt::format(
      "{} {} on the data set{} {}.\n",
      run.train_from_scratch ? "Random weights of the shape of" : "A fine-tuned version of", base,
      run.data.datasets.size() == 1 ? "" : "s", fmt::join(run.data.datasets, ", "));
  for (auto entry = state.history.rbegin(); entry != state.history.rend(); ++entry) {
    if (entry->kind != LogEntry::Kind::evaluation) continue;
    text += fmt::format("Evaluation loss after step {}: {:.4f}.\n", entry->step,
                        entry->value("eval_loss"));
    break;
  }
  text += "\n## Training hyperparameters\n\n";
  const auto line = [&](std::string_view key, const auto& value) {
    text += fmt::format("- {}: {}\n", key, value);
  };
  line("learning_rate", run.optimizer.learning_rate);
  line("train_batch_size", run.sequences_per_micro_batch);
  line("eval_batch_size", run.evaluation.batch_size);
  line("seed", run.seed);
  line("ranks", job.world_size);
  line("gradient_accumulation_steps", run.accumulation_steps);
  line("total_train_batch_size",
       run.sequences_per_micro_batch * run.accumulation_steps * job.world_size);
  line("optimizer",
       fmt::format("AdamW, betas ({}, {}), epsilon {}, weight decay {}", run.optimizer.beta1,
                   run.optimizer.beta2, run.optimizer.epsilon, run.optimizer.weight_decay));
  for (const spec::Provenance& value : run.provenance)
    if (value.key == "lr_scheduler_type" || value.key == "deepspeed.scheduler.type")
      line(value.key, value.value);
  line("lr_scheduler_warmup_steps", spec::warmup_steps_of(run.optimizer, job.total_steps));
  line("training_steps", state.step);
  return text;
}

}  // namespace underkeel::train
