// The optimizer and the schedule of its learning rate.

#include <algorithm>
#include <array>
#include <cmath>

#include "spec/run_keys.h"
#include "spec/run_sections.h"

namespace underkeel::spec {

void read_optimizer(RunReading& reading) {
  Fields& fields = reading.fields;
  OptimizerConfig& optimizer = reading.run.optimizer;
  constexpr NumberRange positive = {.least = 0, .most = 1e6, .least_is_allowed = false};
  constexpr NumberRange not_negative = {.least = 0, .most = 1e6};
  optimizer.learning_rate =
      reading.keep("learning_rate", fields.number("learning_rate", not_negative), 5e-5);
  constexpr NumberRange beta = {.least = 0, .most = 0.9999999};
  optimizer.beta1 = reading.keep("adam_beta1", fields.number("adam_beta1", beta), 0.9);
  optimizer.beta2 = reading.keep("adam_beta2", fields.number("adam_beta2", beta), 0.999);
  optimizer.epsilon = reading.keep("adam_epsilon", fields.number("adam_epsilon", positive), 1e-8);
  optimizer.weight_decay =
      reading.keep("weight_decay", fields.number("weight_decay", not_negative), 0.0);
  const auto clip = fields.number("max_grad_norm", {.least = -1e300});
  optimizer.max_grad_norm = fields.is_null("max_grad_norm")
                                ? 0.0
                                : std::max(0.0, reading.keep("max_grad_norm", clip, 1.0));
  if (fields.is_null("max_grad_norm")) reading.note_source("max_grad_norm", "off", true);

  const auto name = fields.text("optim");
  constexpr std::array<std::string_view, 3> adamw = {"adamw_torch", "adamw_torch_fused",
                                                     "adamw_hf"};
  if (name && std::find(adamw.begin(), adamw.end(), *name) == adamw.end())
    fields.problem("optim", fmt::format("optimizer `{}` is not supported", *name),
                   "supported is adamw_torch", ErrorCode::unsupported);

  struct Schedule {
    std::string_view name;
    LearningRateSchedule schedule;
  };
  constexpr std::array schedules = {
      Schedule{"linear", LearningRateSchedule::linear},
      Schedule{"cosine", LearningRateSchedule::cosine},
      Schedule{"constant", LearningRateSchedule::constant},
      Schedule{"constant_with_warmup", LearningRateSchedule::constant_with_warmup}};
  const std::string wanted =
      reading.keep<std::string>("lr_scheduler_type", fields.text("lr_scheduler_type"), "linear");
  const auto found = std::find_if(schedules.begin(), schedules.end(),
                                  [&](const Schedule& known) { return known.name == wanted; });
  if (found != schedules.end())
    optimizer.schedule = found->schedule;
  else
    fields.problem("lr_scheduler_type", fmt::format("schedule `{}` is not supported yet", wanted),
                   "supported are linear, cosine, constant and constant_with_warmup",
                   ErrorCode::unsupported);
  const Value* options = fields.take("lr_scheduler_kwargs");
  if (options != nullptr && !is_neutral(*options, "null"))
    fields.problem("lr_scheduler_kwargs", "options of the schedule are not supported yet", {},
                   ErrorCode::unsupported);

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

}  // namespace underkeel::spec
