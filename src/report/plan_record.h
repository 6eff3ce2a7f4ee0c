#pragma once
// What the report shows of a plan, as one JSON object for its page: peaks, the bytes of every space over the
// drawn operations, lanes, decisions, values in force. All figures are worked out here; the page draws them.

#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "render/render.h"
#include "report/shown_run.h"
#include "spec/run_config.h"

namespace underkeel::report {

struct PlanRecord {
  const plan::Plan& plan;
  const render::Outlook& outlook;
  const ShownRun& shown;
  std::string model;  // its architecture
  /// What stands beside the figures: {"model", "LlamaForCausalLM"}, ...
  std::vector<std::pair<std::string, std::string>> facts{};
  std::vector<spec::Provenance> values{};
  std::vector<std::string> notes{};
  std::string refusal{};  // why it does not fit, and what would; empty: it fits
};

std::string to_json(const PlanRecord& record);

}  // namespace underkeel::report
