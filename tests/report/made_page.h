#pragma once
// Plans as the report gets them, from small models by the real planner.

#include <string>

#include "report/plan_record.h"
#include "report/shown_run.h"
#include "spec/hardware_spec.h"
#include "support/planned.h"

namespace underkeel::test {

struct Reported {
  plan::Plan plan;
  render::Outlook outlook{};
  report::ShownRun shown;
};

/// At least `operations` operations are drawn, when a count is given.
inline Reported reported(std::size_t operations = 0) {
  planner::Request request = two_layer_request(3);
  if (operations > 0) {
    request.model.layers = 24;
    request.model.windows.assign(24, 0);
    request.accumulation_steps = 3;
    const plan::Plan small = planner::make_plan(request);
    const std::size_t spans = report::shown_run(small, {}).timeline.spans.size();
    request.accumulation_steps = static_cast<std::int64_t>(3 * operations / spans + 4);
  }
  Reported made{.plan = planner::make_plan(request)};
  made.outlook.budgets[0] =
      plan::Budget{.size_bytes = made.plan.layout.size_bytes[0] * 5 / 4, .reason = "--memory"};
  made.shown = report::shown_run(made.plan, {}, 4 * operations + 150'000);
  return made;
}

inline std::string plan_json_of(const Reported& made) {
  return report::to_json(
      report::PlanRecord{.plan = made.plan,
                         .outlook = made.outlook,
                         .shown = made.shown,
                         .model = "LlamaForCausalLM",
                         .facts = {{"ZeRO stage 3", "2 ranks"}},
                         .values = {{"cutoff_len", "64", "</script><script>alert(1)</script>"}},
                         .notes = {"a note"}});
}

}  // namespace underkeel::test
