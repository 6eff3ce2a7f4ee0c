#include "plan_page.h"

#include <fmt/format.h>

#include "base/units.h"
#include "planner/planner.h"
#include "report/page.h"
#include "report/plan_record.h"

namespace underkeel::apps {

std::string maker() {
  return fmt::format("underkeel {}", UNDERKEEL_VERSION);
}

std::string plan_part(const Planned& made, const report::ShownRun& shown) {
  const plan::Plan& plan = made.plan;
  const planner::Request request = planner::request_of(made.model, made.config, plan.world_size);
  report::PlanRecord record{.plan = plan,
                            .outlook = made.outlook,
                            .shown = shown,
                            .model = made.model.architecture,
                            .values = made.config.provenance,
                            .notes = made.config.notes};
  record.facts = {
      {fmt::format("parameters, {}", name_of(request.weight_type)),
       format_count(plan.parameter_count)},
      {fmt::format("ZeRO stage {}", plan.stage),
       fmt::format("{} rank{}", plan.world_size, plan.world_size == 1 ? "" : "s")},
      {fmt::format("at most in a micro-batch, {} of them a step", plan.accumulation_steps),
       format_count(request.max_rows) + " tokens"}};
  if (const auto fits = check_fits(made); !fits) record.refusal = to_text(fits.error());
  if (made.outlook.times)
    record.notes.push_back(fmt::format("times are forecast from {} rates",
                                       made.machine.rates_are_measured ? "measured" : "assumed"));
  return report::to_json(record);
}

std::string plan_page(const Planned& made, const PlanWords& words) {
  const report::ShownRun shown = report::shown_run(made.plan, made.machine);
  return report::html_of({.title = words.run->run_file.filename().string(),
                          .made = maker(),
                          .plan_json = plan_part(made, shown)});
}

}  // namespace underkeel::apps
