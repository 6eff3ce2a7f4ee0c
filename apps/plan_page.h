#pragma once
// The page of a plan: what `plan --html` and `report --plan` write.

#include <string>

#include "planned.h"
#include "report/shown_run.h"

namespace underkeel::apps {

/// A line about the maker of a page.
std::string maker();

/// The plan's part of a page.
std::string plan_part(const Planned& made, const report::ShownRun& shown);

/// A page of the plan alone.
std::string plan_page(const Planned& made, const PlanWords& words);

}  // namespace underkeel::apps
