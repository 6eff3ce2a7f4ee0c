// lr_scheduler_type, the warm-up keys, and lr_scheduler_kwargs: each schedule with the options that
// transformers gives it.

#include <algorithm>
#include <array>
#include <cmath>

#include "spec/run_keys.h"
#include "spec/run_sections.h"

namespace underkeel::spec {
namespace {

using Schedule = LearningRateSchedule;

struct NamedSchedule {
  std::string_view name;
  Schedule schedule;
};

constexpr std::array schedules = {
    NamedSchedule{"linear", Schedule::linear},
    NamedSchedule{"cosine", Schedule::cosine},
    NamedSchedule{"cosine_with_restarts", Schedule::cosine_with_restarts},
    NamedSchedule{"polynomial", Schedule::polynomial},
    NamedSchedule{"constant", Schedule::constant},
    NamedSchedule{"constant_with_warmup", Schedule::constant_with_warmup},
    NamedSchedule{"inverse_sqrt", Schedule::inverse_sqrt},
    NamedSchedule{"cosine_with_min_lr", Schedule::cosine_with_min_lr},
    NamedSchedule{"cosine_warmup_with_min_lr", Schedule::cosine_warmup_with_min_lr},
    NamedSchedule{"warmup_stable_decay", Schedule::warmup_stable_decay},
    NamedSchedule{"reduce_lr_on_plateau", Schedule::reduce_lr_on_plateau}};

constexpr NumberRange any_number = {.least = -1e300};
constexpr NumberRange not_negative = {.least = 0};
constexpr NumberRange share = {.least = 0, .most = 1};

/// Reads the options that belong to one schedule; every other key is unknown to it.
class OptionReader {
 public:
  OptionReader(RunReading& reading, const Value& mapping)
      : reading_(reading),
        fields_(mapping, "lr_scheduler_kwargs.", reading.problems, QuotedValues::accept),
        options_(reading.run.optimizer.schedule_options) {}

  void read(Schedule schedule) {
    switch (schedule) {
      case Schedule::constant:
      case Schedule::constant_with_warmup:
      case Schedule::linear:
        break;
      case Schedule::cosine:
        number("num_cycles", any_number, options_.cycles);
        break;
      case Schedule::cosine_with_restarts:
        if (const auto cycles = fields_.integer("num_cycles", {0, 1 << 30}))
          options_.cycles = static_cast<double>(*cycles);
        break;
      case Schedule::polynomial:
        number("lr_end", not_negative, options_.end_rate);
        number("power", any_number, options_.power);
        break;
      case Schedule::inverse_sqrt:
        options_.timescale = fields_.integer("timescale", {1, most_steps});
        break;
      case Schedule::cosine_warmup_with_min_lr:
        options_.warmup_share = fields_.number("warmup_lr_rate", share);
        [[fallthrough]];
      case Schedule::cosine_with_min_lr:
        number("num_cycles", any_number, options_.cycles);
        read_least();
        break;
      case Schedule::warmup_stable_decay:
        options_.stable_steps = fields_.integer("num_stable_steps", {0, most_steps});
        options_.decay_steps = fields_.integer("num_decay_steps", {0, most_steps});
        shape("warmup_type", options_.warmup_shape);
        shape("decay_type", options_.decay_shape);
        number("min_lr_ratio", share, options_.min_share);
        number("num_cycles", any_number, options_.cycles);
        break;
      case Schedule::reduce_lr_on_plateau:
        read_plateau();
        break;
    }
    const std::vector<std::string> known = fields_.asked();
    fields_.refuse_unread([&](const Entry& entry) -> Fields::Refusal {
      const std::string nearest = nearest_word(entry.key, known);
      return {"unknown option of this schedule",
              !nearest.empty() ? fmt::format("the nearest is `{}`", nearest)
              : known.empty()  ? std::string("it has none")
                               : fmt::format("it has {}", fmt::join(known, ", "))};
    });
    for (const std::string& note : fields_.notes()) reading_.run.notes.push_back(note);
  }

 private:
  void number(std::string_view key, NumberRange range, double& into) {
    if (const auto given = fields_.number(key, range)) into = *given;
  }

  void read_least() {
    const auto rate = fields_.number("min_lr", not_negative);
    const auto part = fields_.number("min_lr_rate", share);
    const double base = reading_.run.optimizer.learning_rate;
    if (rate && part)
      fields_.problem("min_lr", "min_lr and min_lr_rate exclude each other", "keep one of the two");
    else if (part)
      options_.min_share = *part;
    else if (rate && base > 0)
      options_.min_share = *rate / base;
  }

  void shape(std::string_view key, RampShape& into) {
    const auto name = fields_.text(key);
    if (!name) return;
    if (*name == "linear")
      into = RampShape::linear;
    else if (*name == "cosine")
      into = RampShape::cosine;
    else if (*name == "1-sqrt")
      into = RampShape::one_minus_sqrt;
    else
      fields_.problem(key, fmt::format("unknown shape `{}`", *name),
                      "write linear, cosine or 1-sqrt");
  }

  void read_plateau() {
    if (const auto mode = fields_.text("mode")) {
      if (*mode != "min" && *mode != "max")
        fields_.problem("mode", fmt::format("unknown mode `{}`", *mode), "write min or max");
      options_.larger_is_better = *mode == "max";
    }
    number("factor", {.least = 0, .most = 0.9999999, .least_is_allowed = false}, options_.factor);
    if (const auto patience = fields_.integer("patience", {0, most_steps}))
      options_.patience = *patience;
    number("threshold", not_negative, options_.threshold);
    if (const auto mode = fields_.text("threshold_mode")) {
      if (*mode != "rel" && *mode != "abs")
        fields_.problem("threshold_mode", fmt::format("unknown mode `{}`", *mode),
                        "write rel or abs");
      options_.threshold_is_relative = *mode != "abs";
    }
    if (const auto cooldown = fields_.integer("cooldown", {0, most_steps}))
      options_.cooldown = *cooldown;
    number("min_lr", not_negative, options_.min_rate);
    number("eps", not_negative, options_.least_change);
  }

  RunReading& reading_;
  Fields fields_;
  ScheduleOptions& options_;
};

void read_warmup(RunReading& reading) {
  Fields& fields = reading.fields;
  OptimizerConfig& optimizer = reading.run.optimizer;
  optimizer.warmup_ratio =
      reading.keep("warmup_ratio", fields.number("warmup_ratio", {.most = 1}), 0.0);
  // transformers 5 reads a number between 0 and 1 here as a share of all steps.
  const double warmup = reading.keep(
      "warmup_steps", fields.number("warmup_steps", {.most = double(most_steps)}), 0.0);
  if (warmup > 0 && warmup < 1) {
    optimizer.warmup_ratio = warmup;
  } else if (std::trunc(warmup) != warmup) {
    fields.problem("warmup_steps", fmt::format("{} is neither whole nor a share below 1", warmup));
  } else {
    optimizer.warmup_steps = static_cast<std::int64_t>(warmup);
    if (warmup > 0 && optimizer.warmup_ratio > 0) {
      reading.run.notes.push_back("warmup_steps is given, so warmup_ratio has no effect");
      optimizer.warmup_ratio = 0;
    }
  }
}

/// What a schedule cannot do without.
void check_options(RunReading& reading, std::string_view name, const Value* given) {
  const OptimizerConfig& optimizer = reading.run.optimizer;
  const bool has_least = given != nullptr && (given->find("min_lr") != nullptr ||
                                              given->find("min_lr_rate") != nullptr);
  if ((optimizer.schedule == Schedule::cosine_with_min_lr ||
       optimizer.schedule == Schedule::cosine_warmup_with_min_lr) &&
      !has_least)
    reading.fields.problem("lr_scheduler_type", fmt::format("{} wants the least rate", name),
                           "write lr_scheduler_kwargs: {min_lr_rate: 0.1}, or min_lr");
  if (optimizer.schedule == Schedule::polynomial &&
      !(optimizer.learning_rate > optimizer.schedule_options.end_rate))
    reading.fields.problem(
        "lr_scheduler_type",
        fmt::format("polynomial wants learning_rate {} above lr_end {}", optimizer.learning_rate,
                    optimizer.schedule_options.end_rate),
        "write a smaller lr_end in lr_scheduler_kwargs");
}

}  // namespace

void read_schedule(RunReading& reading) {
  Fields& fields = reading.fields;
  OptimizerConfig& optimizer = reading.run.optimizer;
  read_warmup(reading);
  const std::string wanted =
      reading.keep<std::string>("lr_scheduler_type", fields.text("lr_scheduler_type"), "linear");
  const auto found = std::find_if(schedules.begin(), schedules.end(),
                                  [&](const NamedSchedule& known) { return known.name == wanted; });
  const Value* given = fields.take("lr_scheduler_kwargs");
  if (found == schedules.end()) {
    std::vector<std::string> names;
    for (const NamedSchedule& known : schedules) names.emplace_back(known.name);
    const std::string nearest = nearest_word(wanted, names);
    fields.problem("lr_scheduler_type", fmt::format("schedule `{}` is not supported", wanted),
                   nearest.empty() ? fmt::format("supported are {}", fmt::join(names, ", "))
                                   : fmt::format("the nearest is `{}`", nearest),
                   ErrorCode::unsupported);
    return;
  }
  optimizer.schedule = found->schedule;
  if (optimizer.schedule == Schedule::cosine_with_restarts) optimizer.schedule_options.cycles = 1;
  if (given != nullptr && given->kind == ValueKind::mapping) {
    OptionReader(reading, *given).read(optimizer.schedule);
    std::vector<std::string> shown_options;
    for (const Entry& entry : given->entries)
      shown_options.push_back(fmt::format("{}: {}", entry.key, shown(entry.value)));
    if (!shown_options.empty())
      reading.note_source("lr_scheduler_kwargs",
                          fmt::format("{{{}}}", fmt::join(shown_options, ", ")), true);
  } else if (given != nullptr && !is_neutral(*given, "null")) {
    fields.problem("lr_scheduler_kwargs",
                   fmt::format("a mapping is wanted, {} was found", shown(*given)));
  }
  check_options(reading, wanted, given);
  if (optimizer.schedule == Schedule::constant &&
      (optimizer.warmup_steps > 0 || optimizer.warmup_ratio > 0))
    reading.run.notes.push_back(
        "lr_scheduler_type: constant has no warm-up, in transformers neither; "
        "constant_with_warmup has one");
}

std::int64_t warmup_steps_of(const OptimizerConfig& config, std::int64_t total_steps) {
  if (config.warmup_steps > 0) return config.warmup_steps;
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(total_steps) * config.warmup_ratio));
}

Result<void> check_total_steps(const RunConfig& run, std::int64_t total_steps) {
  const OptimizerConfig& optimizer = run.optimizer;
  if (const auto& schedule = optimizer.deepspeed_schedule) {
    const auto differs = [](std::string_view key, std::int64_t json, std::string_view what,
                            std::int64_t ours) -> Result<void> {
      return fail(ErrorCode::bad_config,
                  fmt::format("scheduler.params.{} is {} in the DeepSpeed config, while the run "
                              "has {} {}",
                              key, json, what, ours),
                  fmt::format("deepspeed.scheduler.params.{}", key),
                  "write \"auto\", or the same value in both");
    };
    if (schedule->total_steps && *schedule->total_steps != total_steps)
      UK_TRY_VOID(differs("total_num_steps", *schedule->total_steps, "total steps", total_steps));
    const std::int64_t warmup = warmup_steps_of(optimizer, total_steps);
    if (schedule->warmup_steps && *schedule->warmup_steps != warmup)
      UK_TRY_VOID(differs("warmup_num_steps", *schedule->warmup_steps, "warm-up steps", warmup));
    return {};
  }
  if (optimizer.schedule == Schedule::polynomial &&
      warmup_steps_of(optimizer, total_steps) == total_steps)
    return fail(ErrorCode::bad_config,
                fmt::format("polynomial has nothing to decay over: {} steps, all of them warm-up",
                            total_steps),
                "warmup_steps", "make the warm-up shorter");
  return {};
}

}  // namespace underkeel::spec
