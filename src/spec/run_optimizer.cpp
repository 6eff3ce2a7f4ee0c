// The optimizer; run_schedule.cpp has the schedule of its learning rate.

#include <algorithm>
#include <array>

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

  if (const Value* arguments = fields.take("optim_args");
      arguments != nullptr && !is_neutral(*arguments, "null"))
    fields.problem(
        "optim_args",
        fmt::format("{} is not honoured: AdamW has no options of its own here", shown(*arguments)),
        {}, ErrorCode::unsupported);
  read_schedule(reading);
}

}  // namespace underkeel::spec
