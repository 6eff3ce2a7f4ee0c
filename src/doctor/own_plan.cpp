#include "doctor/own_plan.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "planner/planner.h"
#include "tensor/shard.h"

namespace underkeel::doctor {
namespace {

Space space_of(plan::MemorySpace space) {
  switch (space) {
    case plan::MemorySpace::device:
      return Space::device;
    case plan::MemorySpace::pinned_host:
      return Space::pinned_host;
    case plan::MemorySpace::host:
      return Space::host;
    default:
      return Space::nvme;
  }
}

}  // namespace

std::int64_t staging_bytes(const plan::Plan& plan) {
  std::int64_t ring = 0;
  for (const plan::Buffer& buffer : plan.schedule.buffers)
    if (buffer.name.starts_with("state.staging.")) ring += buffer.size_bytes;
  return ring;
}

std::string device_text(const plan::Plan& plan, const planner::Room& room) {
  const std::int64_t size = plan.layout.size_bytes[index(plan::MemorySpace::device)];
  if (size == 0) return "";
  const auto budget = planner::budget_of(plan, room, plan::MemorySpace::device);
  return fmt::format("@[rest.device] {}{}", size_text(size),
                     budget ? fmt::format("@[rest.of] {}@[rest.fits]", capacity(budget->size_bytes))
                            : std::string("@[rest.then]"));
}

std::string gaps_text(const plan::Plan& plan) {
  constexpr auto device = plan::MemorySpace::device;
  const auto peak = render::peak_of(plan, device);
  const std::int64_t gaps =
      peak ? peak->peak_bytes - render::largest_peak(plan, device)->size_bytes : 0;
  const std::int64_t all = plan.layout.size_bytes[index(device)];
  if (size_text(all) == size_text(all - gaps)) return "";
  return fmt::format(" (@[gaps.buffers] {}, @[term.gaps] {})", size_text(all - gaps),
                     size_text(gaps));
}

std::vector<Slot> logits_slots(const plan::Plan& plan, const spec::ModelSpec& model,
                               const spec::RunConfig& run, bool evaluates) {
  const planner::Request request = planner::request_of(model, run, plan.world_size);
  const std::int64_t rows = evaluates ? request.max_evaluation_rows : request.max_rows;
  if (rows <= 0) return {};
  const std::string_view prefix = evaluates ? "evaluation.head.logits" : "head.logits";
  std::int64_t piece = 0;
  for (const plan::Buffer& buffer : plan.schedule.buffers)
    if (buffer.name.starts_with(prefix)) piece = std::max(piece, buffer.size_bytes);
  return {{"piece", size_text(piece)},
          {"whole", size_text(bytes_of(DType::f32, rows * model.vocabulary))},
          {"rows", fmt::format("{}", rows)}};
}

std::vector<Slot> resume_slots(const plan::Plan& plan) {
  double read = 0;
  for (const plan::Op& op : plan.schedule.find(plan::SegmentKind::resume)->ops)
    read += op.cost.disk_bytes;
  // Master copy (or weights in f32) and both moments, of every parameter once.
  const double all = 12 * static_cast<double>(plan.parameter_count);
  const std::int64_t ring = staging_bytes(plan);
  const auto peak = [&](render::Phase phase) {
    return size_text(render::bytes_of_phase(plan, phase, plan::MemorySpace::device));
  };
  return {{"read", amount(read)},
          {"block", fmt::format("{}", shard_alignment_elements)},
          {"all", amount(all)},
          {"mean", amount(all / static_cast<double>(plan.world_size))},
          {"ranks", fmt::format("{}", plan.world_size)},
          {"ring", size_text(ring)},
          {"resume", peak(render::Phase::resume)},
          {"step", peak(render::Phase::first_step)}};
}

void take_phases(const plan::Plan& plan, const planner::Room& room, render::Saves saves,
                 Forecast& forecast) {
  for (std::size_t p = 0; p < phase_count; ++p)
    for (int s = 0; s < plan::memory_space_count; ++s) {
      const auto space = static_cast<plan::MemorySpace>(s);
      const std::int64_t size =
          render::bytes_of_phase(plan, static_cast<render::Phase>(p), space, saves);
      if (size == 0) continue;
      Holding holding;
      holding.add("plan", static_cast<double>(size));
      if (const auto budget = planner::budget_of(plan, room, space))
        holding.limit_bytes = static_cast<double>(budget->size_bytes);
      forecast.at(static_cast<Phase>(p), space_of(space)) = holding;
    }
}

}  // namespace underkeel::doctor
