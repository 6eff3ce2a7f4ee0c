// When a run logs, saves and evaluates.

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

Cadence read_cadence(RunReading& reading, std::string_view key, Cadence fallback) {
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
  reading.fields.problem(key, fmt::format("`{}` is not supported", name),
                         "supported are no, steps and epoch", ErrorCode::unsupported);
  return fallback;
}

}  // namespace

void read_events(RunReading& reading) {
  Fields& fields = reading.fields;
  RunConfig& run = reading.run;
  const Interval logging = read_interval(reading, "logging_steps");
  if (logging.steps > 0) run.logging_steps = logging.steps;
  run.logging_fraction = logging.fraction;
  run.log_first_step =
      reading.keep("logging_first_step", fields.boolean("logging_first_step"), false);
  run.plot_loss = reading.keep("plot_loss", fields.boolean("plot_loss"), false);

  run.save.strategy = read_cadence(reading, "save_strategy", Cadence::steps);
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
  evaluation.steps = interval.steps > 0 ? interval.steps : run.logging_steps;
  evaluation.steps_fraction = own_interval ? interval.fraction : run.logging_fraction;
  const bool asked = reading.keep("do_eval", fields.boolean("do_eval"), false);
  evaluation.at_end = asked || evaluation.strategy != Cadence::no;
  if (evaluation.at_end && run.data.evaluation_datasets.empty() &&
      evaluation.validation_size <= 1e-6)
    fields.problem(asked ? "do_eval" : "eval_strategy",
                   "there is nothing to evaluate on: neither eval_dataset nor val_size is given");
}

}  // namespace underkeel::spec
