// When a run logs, saves and evaluates.

#include <algorithm>
#include <array>
#include <cmath>

#include "spec/run_sections.h"

namespace underkeel::spec {
namespace {

struct Interval {
  std::int64_t steps = 0;
  double fraction = 0;
};

/// A number of steps, or below 1 a share of all steps. Both 0 when the key is absent.
Interval read_interval(RunReading& reading, std::string_view key) {
  const auto number = reading.fields.number(
      key, {.least = 0, .most = double(most_steps), .least_is_allowed = false});
  if (!number) return {};
  reading.keep(key, number, 0.0);
  if (*number < 1) return {.fraction = *number};
  if (std::trunc(*number) != *number) {
    reading.fields.problem(key, fmt::format("{} is neither whole nor a share below 1", *number));
    return {};
  }
  return {.steps = static_cast<std::int64_t>(*number)};
}

Cadence read_cadence(RunReading& reading, std::string_view key, Cadence fallback,
                     bool allows_best = false) {
  const Value* value = reading.fields.take(key);
  if (value == nullptr || value->kind == ValueKind::null) {
    reading.note_source(key, fallback == Cadence::no ? "no" : "steps", false);
    return fallback;
  }
  // A bare `no` is a truth value in YAML.
  const std::string name = value->kind == ValueKind::boolean && !value->boolean ? "no"
                           : value->kind == ValueKind::text                     ? value->text
                                                                                : shown(*value);
  reading.note_source(key, name, true);
  if (name == "no") return Cadence::no;
  if (name == "steps") return Cadence::steps;
  if (name == "epoch") return Cadence::epoch;
  if (name == "best" && allows_best) return Cadence::best;
  reading.fields.problem(
      key, fmt::format("`{}` is not supported", name),
      allows_best ? "supported are no, steps, epoch and best" : "supported are no, steps and epoch",
      ErrorCode::unsupported);
  return fallback;
}

/// Trackers whose clients are Python programs.
constexpr std::array<std::string_view, 12> other_trackers = {
    "wandb",   "mlflow",     "comet_ml", "swanlab", "clearml",  "neptune",
    "trackio", "codecarbon", "dvclive",  "flyte",   "azure_ml", "dagshub"};

void read_trackers(RunReading& reading) {
  Fields& fields = reading.fields;
  RunConfig& run = reading.run;
  if (fields.is_null("report_to")) fields.take("report_to");
  std::vector<std::string> others;
  for (const std::string& name : fields.words("report_to").value_or(std::vector<std::string>())) {
    if (name == "none") continue;
    if (name == "tensorboard" || name == "all")
      run.reports_to_tensorboard = true;
    else if (std::find(other_trackers.begin(), other_trackers.end(), name) != other_trackers.end())
      others.push_back(name);
    else
      fields.problem("report_to", fmt::format("`{}` is no tracker", name),
                     "write tensorboard or none");
  }
  if (fields.has("report_to"))
    reading.note_source("report_to", run.reports_to_tensorboard ? "tensorboard" : "none", true);
  if (fields.boolean("use_swanlab") == true) others.emplace_back("swanlab");
  if (!others.empty())
    run.notes.push_back(
        fmt::format("{} will not hear of this run: their clients are Python programs. The same "
                    "values are in trainer_log.jsonl and events.jsonl, and in TensorBoard's files "
                    "with report_to: tensorboard",
                    fmt::join(others, ", ")));
  if (const auto folder = fields.text("logging_dir")) run.logging_folder = *folder;
  if (!run.logging_folder.empty())
    reading.note_source("logging_dir", run.logging_folder.string(), true);
}

/// What makes one model better than another, and what follows from it.
void read_best(RunReading& reading) {
  Fields& fields = reading.fields;
  RunConfig& run = reading.run;
  EvaluationConfig& evaluation = run.evaluation;
  const bool loads =
      reading.keep("load_best_model_at_end", fields.boolean("load_best_model_at_end"), false);
  const auto metric = fields.text("metric_for_best_model");
  const auto larger = fields.boolean("greater_is_better");
  const auto patience = fields.integer("early_stopping_steps", {1, most_steps});
  evaluation.larger_is_better = reading.keep("greater_is_better", larger, false);
  if (metric && *metric != "loss" && *metric != "eval_loss")
    fields.problem("metric_for_best_model", fmt::format("`{}` is not measured", *metric),
                   "write eval_loss", ErrorCode::unsupported);
  if (metric) reading.note_source("metric_for_best_model", *metric, true);
  const bool plateau = run.optimizer.schedule == LearningRateSchedule::reduce_lr_on_plateau;
  evaluation.tracks_best = metric || loads || plateau || run.save.strategy == Cadence::best;
  evaluation.loads_best_at_end = loads;
  if (patience) {
    evaluation.early_stopping_steps = patience;
    reading.keep<std::int64_t>("early_stopping_steps", patience, 0);
    if (!evaluation.tracks_best)
      fields.problem("early_stopping_steps", "it wants to know which evaluation is better",
                     "write metric_for_best_model: eval_loss, or load_best_model_at_end: true");
  }
  const auto wants_evaluation = [&](std::string_view key, bool is_asked) {
    if (is_asked && evaluation.strategy == Cadence::no)
      fields.problem(key, "nothing is evaluated while training: eval_strategy is no",
                     "write eval_strategy: steps or epoch");
  };
  wants_evaluation("early_stopping_steps", patience.has_value());
  wants_evaluation("lr_scheduler_type", plateau);
  wants_evaluation("save_strategy", run.save.strategy == Cadence::best);
  if (!loads || run.save.strategy == Cadence::best) return;
  if (run.save.strategy != evaluation.strategy) {
    fields.problem("load_best_model_at_end",
                   "saves and evaluations do not come together: save_strategy and eval_strategy "
                   "differ",
                   "give both the same value, or write save_strategy: best");
  } else if (run.save.strategy == Cadence::steps) {
    const bool shares = run.save.steps_fraction > 0 || evaluation.steps_fraction > 0;
    const double ratio =
        shares ? run.save.steps_fraction / evaluation.steps_fraction
               : static_cast<double>(run.save.steps) / static_cast<double>(evaluation.steps);
    if (!std::isfinite(ratio) || std::abs(ratio - std::round(ratio)) > 1e-9 || ratio < 0.5)
      fields.problem("load_best_model_at_end", "save_steps is not a multiple of eval_steps",
                     "otherwise the best model may not be among the checkpoints");
  } else if (run.save.strategy == Cadence::no) {
    fields.problem("load_best_model_at_end", "nothing is evaluated or saved while training",
                   "write eval_strategy and save_strategy: steps or epoch");
  }
}

}  // namespace

void read_events(RunReading& reading) {
  Fields& fields = reading.fields;
  RunConfig& run = reading.run;
  run.logging = read_cadence(reading, "logging_strategy", Cadence::steps);
  const Interval logging = read_interval(reading, "logging_steps");
  if (logging.steps > 0) run.logging_steps = logging.steps;
  run.logging_fraction = logging.fraction;
  run.log_first_step =
      reading.keep("logging_first_step", fields.boolean("logging_first_step"), false);
  run.plot_loss = reading.keep("plot_loss", fields.boolean("plot_loss"), false);

  run.save.strategy = read_cadence(reading, "save_strategy", Cadence::steps, true);
  const Interval save = read_interval(reading, "save_steps");
  if (save.steps > 0) run.save.steps = save.steps;
  run.save.steps_fraction = save.fraction;
  const auto limit = fields.integer("save_total_limit", {-1, INT32_MAX});
  if (limit) reading.keep<std::int64_t>("save_total_limit", limit, 0);
  if (limit && *limit > 0) run.save.total_limit = limit;
  run.save.weights_only = reading.keep("save_only_model", fields.boolean("save_only_model"), false);

  EvaluationConfig& evaluation = run.evaluation;
  const bool old_name = fields.has("evaluation_strategy");
  if (old_name && fields.has("eval_strategy"))
    fields.problem("evaluation_strategy", "this is the old name of eval_strategy, also given",
                   "keep one of the two");
  evaluation.strategy =
      read_cadence(reading, old_name ? "evaluation_strategy" : "eval_strategy", Cadence::no);
  const Interval interval = read_interval(reading, "eval_steps");
  const bool own_interval = interval.steps > 0 || interval.fraction > 0;
  if (interval.steps > 0) evaluation.steps = interval.steps;
  evaluation.steps_fraction = interval.fraction;
  if (!own_interval && evaluation.strategy == Cadence::steps) {
    evaluation.steps = run.logging_steps;
    evaluation.steps_fraction = run.logging_fraction;
  }
  evaluation.on_start = reading.keep("eval_on_start", fields.boolean("eval_on_start"), false);
  evaluation.delay = reading.keep("eval_delay", fields.number("eval_delay", {}), 0.0);
  const bool asked = reading.keep("do_eval", fields.boolean("do_eval"), false);
  evaluation.at_end = asked || evaluation.strategy != Cadence::no;
  if ((evaluation.at_end || evaluation.on_start) && run.data.evaluation_datasets.empty() &&
      evaluation.validation_size <= 1e-6)
    fields.problem(asked                 ? "do_eval"
                   : evaluation.on_start ? "eval_on_start"
                                         : "eval_strategy",
                   "there is nothing to evaluate on: neither eval_dataset nor val_size is given");
  read_best(reading);
  read_trackers(reading);
}

}  // namespace underkeel::spec
