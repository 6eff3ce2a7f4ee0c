#include "planner/knobs.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"

namespace underkeel::planner {

std::string knob_text(std::string_view knob, const Settings& settings) {
  if (knob == "recompute") return std::string(name_of(settings.recompute));
  if (knob == "micro-batch")
    return fmt::format("{} x {}", settings.micro_batch, settings.accumulation);
  if (knob == "ZeRO stage") return fmt::format("{}", settings.stage);
  if (settings.prefetch_elements == 0) return "nothing";
  return settings.prefetch_elements ? format_count(*settings.prefetch_elements) + " elements"
                                    : std::string("one unit");
}

bool differ_in(std::string_view knob, Settings a, const Settings& b) {
  if (a == b) return false;
  if (knob == "recompute") a.recompute = b.recompute;
  if (knob == "micro-batch") {
    a.micro_batch = b.micro_batch;
    a.accumulation = b.accumulation;
  }
  if (knob == "ZeRO stage") {
    if (a.stage == b.stage) return false;
    // Gathers ahead are stage 3's alone; of stage 3 only the run's own choice is told.
    if (a.stage == 3) a.prefetch_elements = b.prefetch_elements;
    a.stage = b.stage;
  }
  if (knob == "gather ahead") a.prefetch_elements = b.prefetch_elements;
  a.evaluation_batch = b.evaluation_batch;
  return a == b;
}

bool differ_in_one(const Settings& a, const Settings& b) {
  return std::any_of(knobs.begin(), knobs.end(),
                     [&](std::string_view knob) { return differ_in(knob, a, b); });
}

}  // namespace underkeel::planner
