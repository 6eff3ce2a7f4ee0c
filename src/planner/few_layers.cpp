#include "planner/few_layers.h"

#include <algorithm>

#include "planner/steps_alone.h"

namespace underkeel::planner {

namespace {

// Enough for a gather two layers ahead on both sides of a layer that has all its neighbours.
constexpr std::int64_t fewer_layers = 5;
constexpr std::int64_t more_layers = 7;

}  // namespace

spec::ModelSpec with_layers(const spec::ModelSpec& model, std::int64_t layers) {
  spec::ModelSpec fewer = model;
  fewer.layers = layers;
  fewer.windows.clear();
  for (std::int64_t i = 0; i < layers; ++i)
    fewer.windows.push_back(model.windows[static_cast<std::size_t>(i * model.layers / layers)]);
  return fewer;
}

FewLayers::FewLayers(const spec::ModelSpec& model)
    : layers_(model.layers),
      few_(with_layers(model, std::min(fewer_layers, model.layers))),
      some_(with_layers(model, std::min(more_layers, model.layers))) {}

FewLayers::Figures FewLayers::of(Request request, const PredictTimes& predict) const {
  const auto figures_with = [&](const spec::ModelSpec& model) {
    request.model = model;
    if (!predict) return Figures{.size_bytes = sizes_of_steps(request), .times = {}};
    const plan::Plan plan = make_plan_of_steps(request);
    return Figures{.size_bytes = plan.layout.size_bytes, .times = predict(plan)};
  };
  Figures made = figures_with(some_);
  if (layers_ <= more_layers) return made;
  const Figures few = figures_with(few_);
  constexpr std::int64_t between = more_layers - fewer_layers;
  const std::int64_t beyond = layers_ - more_layers;
  for (std::size_t s = 0; s < plan::memory_space_count; ++s)
    made.size_bytes[s] += (made.size_bytes[s] - few.size_bytes[s]) * beyond / between;
  made.times.step_s += (made.times.step_s - few.times.step_s) * static_cast<double>(beyond) /
                       static_cast<double>(between);
  return made;
}

std::int64_t least_device_bytes(const Request& request, std::int64_t parameter_count) {
  const int stage = request.world_size == 1 ? 0 : request.stage;
  const auto part = [&](std::int64_t elements, DType type, int sharded_from) {
    const std::int64_t size = bytes_of(type, elements);
    return stage >= sharded_from ? size / request.world_size : size;
  };
  return part(parameter_count, request.weight_type, 3) +
         part(2 * parameter_count, moment_type(request), 1) +
         part(has_masters(request) ? parameter_count : 0, DType::f32, 1) +
         part(parameter_count, request.accumulate_type, 2) +
         bytes_of(request.weight_type,
                  request.model.layers * request.max_rows * request.model.width);
}

plan::Plan least_without_evaluation(const plan::Plan& plan) {
  plan::Plan least;
  least.overhead_bytes = plan.overhead_bytes;
  auto& size_bytes = least.layout.size_bytes;
  for (const plan::Peak& peak : plan.peaks)
    if (peak.segment != plan::SegmentKind::evaluate)
      size_bytes[index(peak.space)] = std::max(size_bytes[index(peak.space)], peak.size_bytes);
  // What lives throughout counts in every peak, and may be as large as it is for evaluations.
  for (const plan::Buffer& buffer : plan.schedule.buffers)
    if (buffer.persistent &&
        (buffer.kind == plan::BufferKind::workspace || buffer.kind == plan::BufferKind::staging))
      size_bytes[index(buffer.space)] -= buffer.size_bytes;
  return least;
}

std::optional<Shortage> certain_shortage(const plan::Plan& sizes, const Room& room) {
  auto shortage = shortage_of(sizes, room);
  if (shortage && static_cast<double>(shortage->needed_bytes) * (1 - memory_tolerance) <=
                      static_cast<double>(shortage->allowed_bytes))
    return std::nullopt;
  return shortage;
}

}  // namespace underkeel::planner
