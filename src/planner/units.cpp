// Groups parameters into units and gives each unit its homes.
// Gives: schedule.units, places, the buffers that live for the whole run.
// The grouping depends on the model alone: embedding; one unit of matrices per layer; head; and one
// unit of all vectors (norms and biases), which are small, stay whole at stage 3 under the persistence
// threshold, and take no weight decay.

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "planner/builder.h"
#include "tensor/shard.h"

namespace underkeel::planner {

namespace {

using plan::BufferKind;
using plan::Unit;
using spec::ParameterRole;

bool is_vector(const spec::Parameter& parameter) {
  return parameter.role == ParameterRole::bias || parameter.role == ParameterRole::norm;
}

void append(Builder& builder, UnitId id, const spec::Parameter& parameter) {
  Unit& unit = builder.schedule.units[index(id)];
  unit.tensors.push_back({.name = parameter.name,
                          .shape = parameter.shape(),
                          .begin = unit.element_count,
                          .element_count = parameter.element_count()});
  builder.places[parameter.name] = {.unit = id,
                                    .begin = unit.element_count,
                                    .rows = parameter.rows,
                                    .columns = parameter.columns};
  unit.element_count += parameter.element_count();
}

UnitId add_unit(Builder& builder, std::string name) {
  builder.schedule.units.push_back({.name = std::move(name)});
  return UnitId{static_cast<std::uint32_t>(builder.schedule.units.size() - 1)};
}

// Where DeepSpeed keeps a parameter whole at stage 3, a unit stays whole when none of its tensors is larger.
constexpr std::int64_t default_persistence_elements = 100'000;

bool stays_whole(const Request& request, const Unit& unit) {
  const std::int64_t threshold =
      request.bounds.param_persistence_elements.value_or(default_persistence_elements);
  const std::int64_t most = request.bounds.model_persistence_elements.value_or(unit.element_count);
  if (unit.element_count > most) return false;
  return std::all_of(unit.tensors.begin(), unit.tensors.end(), [&](const plan::UnitTensor& tensor) {
    return tensor.element_count < threshold;
  });
}

void give_homes(Builder& builder, UnitId id) {
  const Request& request = builder.request;
  Unit& unit = builder.schedule.units[index(id)];
  unit.shard_elements = shard_elements(unit.element_count, request.world_size);
  // One rank has nobody to share with: its shard is the whole.
  const int stage = request.world_size == 1 ? 0 : request.stage;
  unit.optimizer_sharded = stage >= 1;
  unit.gradient_sharded = stage >= 2;
  unit.weights_sharded = stage >= 3 && !stays_whole(request, unit);
  const auto home = [&](std::string_view what, BufferKind kind, DType type, bool sharded) {
    return builder.add_buffer(
        {.name = fmt::format("{}.{}", unit.name, what),
         .kind = kind,
         .persistent = true,
         .type = type,
         .size_bytes = bytes_of(type, sharded ? unit.shard_elements : unit.element_count)});
  };
  unit.weights = home("weights", BufferKind::weights, builder.type(), unit.weights_sharded);
  UnitBuffers& buffers = builder.unit_buffers[index(id)];
  buffers.full = unit.weights;
  if (unit.weights_sharded) {
    buffers.full = builder.add_buffer({.name = unit.name + ".full",
                                       .kind = BufferKind::gathered,
                                       .type = builder.type(),
                                       .size_bytes = bytes_of(builder.type(), unit.element_count)});
  }
  if (!request.train) return;
  if (has_masters(request))
    unit.master = home("master", BufferKind::optimizer, DType::f32, unit.optimizer_sharded);
  const DType moments = moment_type(request);
  unit.moment1 = home("exp_avg", BufferKind::optimizer, moments, unit.optimizer_sharded);
  unit.moment2 = home("exp_avg_sq", BufferKind::optimizer, moments, unit.optimizer_sharded);
  // What is written in f32 and has no copy beside its home (accumulate.cpp) stays f32.
  const bool is_wide = accumulates_in_place(request) && unit.micro_gradient_type == DType::f32;
  unit.gradient = home("gradient", BufferKind::gradients,
                       is_wide ? DType::f32 : request.accumulate_type, unit.gradient_sharded);
  buffers.micro_gradient =
      builder.add_buffer({.name = unit.name + ".micro_gradient",
                          .kind = BufferKind::gradients,
                          .type = unit.micro_gradient_type,
                          .size_bytes = bytes_of(unit.micro_gradient_type, unit.element_count)});
}

}  // namespace

void lay_out_units(Builder& builder) {
  const spec::ModelSpec& model = builder.request.model;
  const std::vector<spec::Parameter> parameters = spec::parameters_of(model);
  std::vector<UnitId> layer_units;
  const UnitId embedding = add_unit(builder, "embedding");
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    layer_units.push_back(add_unit(builder, fmt::format("layers.{}", layer)));
  std::vector<const spec::Parameter*> vectors;
  for (const spec::Parameter& parameter : parameters) {
    if (is_vector(parameter)) {
      vectors.push_back(&parameter);
    } else if (parameter.role == ParameterRole::embedding) {
      append(builder, embedding, parameter);
    } else if (parameter.role == ParameterRole::head) {
      append(builder, add_unit(builder, "head"), parameter);
    } else {
      append(builder, layer_units[static_cast<std::size_t>(parameter.layer)], parameter);
    }
  }
  // Biases of fused products (q, k, v; gate, up) must lie side by side: biases first, then norms.
  const UnitId vector_unit = add_unit(builder, "norms_and_biases");
  for (const ParameterRole role : {ParameterRole::bias, ParameterRole::norm})
    for (const spec::Parameter* parameter : vectors)
      if (parameter->role == role) append(builder, vector_unit, *parameter);

  builder.unit_buffers.resize(builder.schedule.units.size());
  for (std::size_t i = 0; i < builder.schedule.units.size(); ++i) {
    Unit& unit = builder.schedule.units[i];
    // Embedding and head gradients are sums over many rows and chunks, vectors are tiny: all in f32.
    const bool is_matrices = unit.name.starts_with("layers.");
    unit.micro_gradient_type = is_matrices ? builder.type() : DType::f32;
    unit.weight_decay = unit.name != "norms_and_biases";
    give_homes(builder, UnitId{static_cast<std::uint32_t>(i)});
  }
}

}  // namespace underkeel::planner
