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
  request.model = some_;
  const plan::Plan some = make_plan_of_steps(request);
  Figures made{.size_bytes = some.layout.size_bytes};
  if (predict) made.times = predict(some);
  if (layers_ <= more_layers) return made;
  request.model = few_;
  const plan::Plan few = make_plan_of_steps(request);
  constexpr std::int64_t between = more_layers - fewer_layers;
  const std::int64_t beyond = layers_ - more_layers;
  for (std::size_t s = 0; s < plan::memory_space_count; ++s)
    made.size_bytes[s] += (some.layout.size_bytes[s] - few.layout.size_bytes[s]) * beyond / between;
  if (predict)
    made.times.step_s += (made.times.step_s - predict(few).step_s) * static_cast<double>(beyond) /
                         static_cast<double>(between);
  return made;
}

std::optional<Shortage> certain_shortage(const plan::Plan& sizes, const Room& room) {
  auto shortage = shortage_of(sizes, room);
  if (shortage && static_cast<double>(shortage->needed_bytes) * (1 - memory_tolerance) <=
                      static_cast<double>(shortage->allowed_bytes))
    return std::nullopt;
  return shortage;
}

}  // namespace underkeel::planner
