#include "exec/error_place.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plan/uses.h"

namespace underkeel::exec {

namespace {

std::string placed(const plan::Plan& plan, const plan::Segment& segment, std::string_view what) {
  return fmt::format("segment {}{}; plan {:016x}", plan::name_of(segment.kind), what, plan.hash);
}

}  // namespace

std::string place_of(const plan::Plan& plan, const plan::Segment& segment, std::size_t position) {
  const plan::Op& op = segment.ops[position];
  std::vector<std::string> names;
  plan::for_each_use(plan.schedule, op, [&](plan::BufferId id, plan::Access) {
    const std::string& name = plan.schedule.buffer(id).name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  });
  return placed(plan, segment,
                fmt::format(", op {} {}{}{}", position, op.label, names.empty() ? "" : " on ",
                            fmt::join(names, ", ")));
}

std::string place_of(const plan::Plan& plan, const plan::Segment& segment, std::size_t first,
                     std::size_t last) {
  return placed(plan, segment,
                fmt::format(", ops {} {} to {} {}, launched as one", first,
                            segment.ops[first].label, last, segment.ops[last].label));
}

std::string place_of(const plan::Plan& plan, const plan::Segment& segment) {
  return placed(plan, segment, "");
}

}  // namespace underkeel::exec
