#include "verify/verify.h"

#include <optional>

#include <fmt/format.h>

#include "verify/content.h"
#include "verify/layout.h"
#include "verify/order.h"
#include "verify/report.h"
#include "verify/structure.h"

namespace underkeel::verify {

std::vector<Violation> check(const plan::Schedule& schedule) {
  Report report(schedule);
  check_identities(schedule, report);
  if (!report.empty()) return report.take();
  check_sizes(schedule, std::nullopt, report);
  check_order(schedule, nullptr, report);
  check_content(schedule, std::nullopt, report);
  return report.take();
}

std::vector<Violation> check_list(const plan::Schedule& schedule, const plan::Segment& segment,
                                  std::span<const plan::BufferId> given) {
  Report report(schedule);
  check_identities(schedule, segment, report);
  if (!report.empty()) return report.take();
  check_sizes(schedule, segment, report);
  check_content(schedule, segment, given, report);
  return report.take();
}

std::vector<Violation> check(const plan::Plan& plan) {
  Report report(plan.schedule);
  check_identities(plan.schedule, report);
  if (!report.empty()) return report.take();
  check_sizes(plan.schedule, plan.world_size, report);
  const bool has_offsets = check_offset_count(plan.schedule, plan.layout, report);
  const Seen seen = check_order(plan.schedule, has_offsets ? &plan.layout : nullptr, report);
  if (has_offsets) check_offsets(plan.schedule, plan.layout, seen.acquired, report);
  check_content(plan.schedule, plan.world_size, report);
  check_peaks(plan, seen.peaks, report);
  return report.take();
}

std::string to_text(const plan::Schedule& schedule, const Violation& violation) {
  const plan::Segment* segment = schedule.find(violation.segment);
  const auto name = [&](plan::OpIndex op) {
    const bool known = segment != nullptr && index(op) < segment->ops.size();
    return fmt::format("op {} `{}`", index(op), known ? segment->ops[index(op)].label : "?");
  };
  std::string text(name_of(violation.segment));
  if (violation.op != no_op) text += ", " + name(violation.op);
  text += ": " + violation.what;
  if (violation.other != no_op) text += " (" + name(violation.other) + ")";
  return text;
}

}  // namespace underkeel::verify
