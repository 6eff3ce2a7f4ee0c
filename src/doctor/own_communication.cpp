#include "doctor/own_communication.h"

#include <algorithm>
#include <vector>

#include "plan/lifetimes.h"
#include "render/render.h"

namespace underkeel::doctor {

std::int64_t most_bytes(const plan::Plan& plan, plan::BufferKind kind, plan::MemorySpace space) {
  const std::vector<plan::Buffer>& buffers = plan.schedule.buffers;
  std::int64_t always = 0, most = 0;
  for (const plan::Buffer& buffer : buffers)
    if (buffer.persistent && buffer.kind == kind && buffer.space == space)
      always += buffer.size_bytes;
  for (const plan::Segment& segment : plan.schedule.segments) {
    // What comes and goes at each operation.
    std::vector<std::int64_t> changes(segment.ops.size() + 1, 0);
    for (const plan::Lifetime& lifetime : plan::lifetimes_of(segment)) {
      const plan::Buffer& buffer = buffers[index(lifetime.buffer)];
      if (buffer.kind != kind || buffer.space != space) continue;
      changes[lifetime.begin] += buffer.size_bytes;
      changes[lifetime.end] -= buffer.size_bytes;
    }
    std::int64_t held = 0;
    for (const std::int64_t change : changes) most = std::max(most, held += change);
  }
  return always + most;
}

std::optional<Finding> tell_communication(const plan::Plan& plan, const std::string& file) {
  constexpr plan::MemorySpace device = plan::MemorySpace::device;
  const auto peak = render::peak_of(plan, device);
  if (plan.world_size <= 1 || !peak) return std::nullopt;
  const auto size = [](std::int64_t bytes) { return amount(static_cast<double>(bytes)); };
  const auto most = [&](plan::BufferKind kind) { return size(most_bytes(plan, kind, device)); };
  const auto then = [&](plan::BufferKind kind) { return size(peak->by_kind[index(kind)]); };
  return Finding{.id = "underkeel-communication",
                 .engine = Engine::underkeel,
                 .file = file,
                 .slots = {{"staging", most(plan::BufferKind::staging)},
                           {"gathered", most(plan::BufferKind::gathered)},
                           {"staging_then", then(plan::BufferKind::staging)},
                           {"gathered_then", then(plan::BufferKind::gathered)},
                           {"device", size(peak->peak_bytes)}}};
}

}  // namespace underkeel::doctor
