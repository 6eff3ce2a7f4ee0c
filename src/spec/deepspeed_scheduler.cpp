// `scheduler` of a DeepSpeed config: it takes the place of lr_scheduler_type, as in the Trainer.

#include "spec/deepspeed_part.h"

namespace underkeel::spec {
namespace {

using Kind = DeepspeedScheduleKind;

struct NamedKind {
  std::string_view name;
  Kind kind;
};
constexpr std::array kinds = {
    NamedKind{"WarmupLR", Kind::warmup}, NamedKind{"WarmupDecayLR", Kind::warmup_decay},
    NamedKind{"WarmupCosineLR", Kind::warmup_cosine}, NamedKind{"OneCycle", Kind::one_cycle},
    NamedKind{"LRRangeTest", Kind::range_test}};

constexpr NumberRange rate_range = {.least = 0};

class SchedulerReader : DeepspeedPart {
 public:
  using DeepspeedPart::DeepspeedPart;

  void read(Fields& top) {
    const Value* mapping = section(top, "scheduler");
    if (mapping == nullptr) return;
    Fields fields = fields_of(*mapping, "scheduler.");
    const auto type = fields.text("type");
    const Value* given = section(fields, "params");
    refuse_unknown(fields, "scheduler");
    finish(fields);
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const NamedKind& known) {
      return type && known.name == *type;
    });
    if (found == kinds.end()) {
      fields.problem("type",
                     type ? fmt::format("schedule `{}` is not supported", *type)
                          : std::string("the key is missing"),
                     "supported are WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle and "
                     "LRRangeTest",
                     type ? ErrorCode::unsupported : ErrorCode::bad_config);
      return;
    }
    if (given == nullptr) {
      fields.problem("params", "the key is missing", "DeepSpeed refuses a schedule without params");
      return;
    }
    DeepspeedSchedule schedule{.kind = found->kind};
    Fields params = fields_of(*given, "scheduler.params.");
    switch (schedule.kind) {
      case Kind::warmup:
      case Kind::warmup_decay:
      case Kind::warmup_cosine:
        read_warmup(params, schedule);
        break;
      case Kind::one_cycle:
        read_cycle(params, schedule);
        break;
      case Kind::range_test:
        read_range_test(params, schedule);
        break;
    }
    if (params.has("last_batch_iteration")) params.take("last_batch_iteration");
    refuse_unknown(params, "scheduler.params");
    finish(params);
    remember(mapping->find("type"), "scheduler.type", std::string(found->name));
    run_.optimizer.deepspeed_schedule = schedule;
    run_.notes.push_back(
        fmt::format("{}: scheduler {} holds in place of lr_scheduler_type {}, as in the Trainer",
                    source_.name, found->name, text_of("lr_scheduler_type")));
  }

 private:
  /// A value in force, as the table of sources shows it.
  std::string text_of(std::string_view key) const {
    for (const Provenance& entry : run_.provenance)
      if (entry.key == key) return fmt::format("{} ({})", entry.value, entry.source);
    return "?";
  }

  void number(Fields& params, std::string_view key, NumberRange range, double& into) {
    if (is_auto(params.take(key))) {
      params.problem(key, "\"auto\" is no value that the Trainer fills here", "write a number");
      return;
    }
    if (const auto value = params.number(key, range)) into = *value;
  }
  void count(Fields& params, std::string_view key, IntegerRange range, std::int64_t& into) {
    if (const auto value = params.integer(key, range)) into = *value;
  }

  void read_warmup(Fields& params, DeepspeedSchedule& schedule) {
    const bool is_cosine = schedule.kind == Kind::warmup_cosine;
    if (is_cosine) {
      number(params, "warmup_min_ratio", {.least = 0, .most = 1}, schedule.warmup_min_ratio);
      number(params, "cos_min_ratio", {.least = 0, .most = 1}, schedule.cos_min_ratio);
    } else {
      if (!is_auto(params.take("warmup_min_lr")))
        number(params, "warmup_min_lr", rate_range, schedule.min_rate);
      read_max_rate(params, schedule);
    }
    const Value* steps = params.take("warmup_num_steps");
    if (is_auto(steps)) {
      if (run_.optimizer.warmup_steps == 0 && run_.optimizer.warmup_ratio == 0)
        run_.notes.push_back(
            fmt::format("{}: warmup_num_steps \"auto\" becomes 0 with warmup_steps 0: DeepSpeed "
                        "refuses that since 0.19.3 and took 2 before, as is done here",
                        source_.name));
    } else {
      schedule.warmup_steps = params.integer("warmup_num_steps", {1, most_steps}).value_or(1000);
      match_warmup(params, steps, *schedule.warmup_steps);
    }
    if (const auto type = params.text("warmup_type")) {
      schedule.warmup_is_logarithmic = *type != "linear";
      if (*type != "linear" && *type != "log")
        params.problem("warmup_type", fmt::format("`{}` is no kind of warm-up", *type),
                       "write log or linear (DeepSpeed takes log for anything else)");
    }
    if (schedule.kind == Kind::warmup) return;
    const Value* total = params.take("total_num_steps");
    if (total == nullptr || total->kind == ValueKind::null)
      params.problem("total_num_steps", "the key is missing", "write \"auto\"");
    else if (!is_auto(total))
      schedule.total_steps = params.integer("total_num_steps", {1, most_steps});
  }

  void read_max_rate(Fields& params, DeepspeedSchedule& schedule) {
    const Value* value = params.take("warmup_max_lr");
    if (is_auto(value)) return;
    const auto rate = params.number("warmup_max_lr", rate_range);
    // WarmupLR takes the optimizer's rate where none is given, WarmupDecayLR has its own default.
    if (!rate && schedule.kind == Kind::warmup_decay) schedule.max_rate = 1e-3;
    if (!rate) return;
    schedule.max_rate = rate;
    if (*rate != run_.optimizer.learning_rate)
      params.problem("warmup_max_lr",
                     fmt::format("{} in {}, while learning_rate is {} ({})", *rate, source_.name,
                                 run_.optimizer.learning_rate, source_of(run_, "learning_rate")),
                     "write \"auto\", or the same value in both");
  }

  /// The warm-up of the run file, where it does not depend on the number of steps; the rest is for
  /// check_total_steps().
  void match_warmup(Fields& params, const Value* given, std::int64_t steps) {
    const OptimizerConfig& optimizer = run_.optimizer;
    if (optimizer.warmup_ratio != 0 || steps == optimizer.warmup_steps) return;
    const bool is_given = given != nullptr && given->kind != ValueKind::null;
    if (!is_given) return;
    params.problem("warmup_num_steps",
                   fmt::format("{} in {}, while warmup_steps is {} ({})", steps, source_.name,
                               optimizer.warmup_steps, source_of(run_, "warmup_steps")),
                   "write \"auto\", or the same value in both");
  }

  void read_cycle(Fields& params, DeepspeedSchedule& schedule) {
    for (const char* key : {"cycle_min_lr", "cycle_max_lr"})
      if (!params.has(key)) params.problem(key, "the key is missing");
    number(params, "cycle_min_lr", rate_range, schedule.min_rate);
    double most = 0;
    number(params, "cycle_max_lr", rate_range, most);
    schedule.max_rate = most;
    number(params, "decay_lr_rate", rate_range, schedule.decay_rate);
    count(params, "cycle_first_step_size", {1, most_steps}, schedule.first_steps);
    schedule.second_steps = schedule.first_steps;
    count(params, "cycle_second_step_size", {1, most_steps}, schedule.second_steps);
    count(params, "cycle_first_stair_count", {0, most_steps}, schedule.first_stairs);
    schedule.second_stairs = schedule.first_stairs;
    count(params, "cycle_second_stair_count", {0, most_steps}, schedule.second_stairs);
    count(params, "decay_step_size", {0, most_steps}, schedule.decay_steps);
    if (params.boolean("cycle_momentum").value_or(true))
      params.problem("cycle_momentum",
                     "a momentum that moves with the rate is not supported, and it is on unless "
                     "switched off",
                     "write false; beta1 and beta2 then stay as the optimizer has them",
                     ErrorCode::unsupported);
    for (const char* key : {"cycle_min_mom", "cycle_max_mom", "decay_mom_rate"}) params.take(key);
  }

  void read_range_test(Fields& params, DeepspeedSchedule& schedule) {
    schedule.min_rate = 1e-3;
    number(params, "lr_range_test_min_lr", rate_range, schedule.min_rate);
    number(params, "lr_range_test_step_size", {.least = 0, .least_is_allowed = false},
           schedule.test_steps);
    number(params, "lr_range_test_step_rate", rate_range, schedule.test_rate);
    schedule.test_is_staircase = params.boolean("lr_range_test_staircase").value_or(false);
  }
};

}  // namespace

void read_scheduler(Fields& top, const DeepspeedSource& source, Problems& problems, RunConfig& run,
                    std::vector<std::string>& silent) {
  SchedulerReader(source, problems, run, silent).read(top);
}

}  // namespace underkeel::spec
