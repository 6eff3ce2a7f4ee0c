// Says which segment may follow which.
// Needs: all segments. Gives: the steps among those that exist.

#include "planner/builder.h"

namespace underkeel::planner {

void build_program(plan::Schedule& schedule, bool reloads) {
  using enum plan::SegmentKind;
  const auto allow = [&](plan::SegmentKind from, std::initializer_list<plan::SegmentKind> next) {
    if (schedule.find(from) == nullptr) return;
    for (const plan::SegmentKind to : next)
      if (schedule.find(to) != nullptr) schedule.program.steps.push_back({from, to});
  };
  allow(load, {micro_first, micro_only, evaluate, generate, save});
  allow(resume, {micro_first, micro_only, evaluate, generate, save});
  allow(micro_first, {micro_middle, micro_last});
  allow(micro_middle, {micro_middle, micro_last});
  allow(micro_last, {update});
  allow(micro_only, {update});
  allow(update, {micro_first, micro_only, evaluate, generate, save});
  allow(evaluate, {evaluate, evaluate_end});
  allow(evaluate_end, {evaluate, micro_first, micro_only, generate, save});
  allow(save, {micro_first, micro_only, evaluate, generate});
  if (reloads)
    for (const plan::SegmentKind last : {update, evaluate_end, save}) allow(last, {load});
  allow(generate, {generate, generate_next, micro_first, micro_only, evaluate, save});
  allow(generate_next, {generate, generate_next});
}

}  // namespace underkeel::planner
