#pragma once
// Plans of small models by the real planner, for tests of those who read plans.

#include "planner/planner.h"
#include "spec/model_spec.h"

namespace underkeel::test {

/// Two layers of width 64, grouped-query attention, a head of its own.
inline spec::ModelSpec two_layer_model() {
  spec::ModelSpec model;
  model.architecture = "LlamaForCausalLM";
  model.model_type = "llama";
  model.vocabulary = 256;
  model.width = 64;
  model.feed_forward = 160;
  model.layers = 2;
  model.query_heads = 4;
  model.key_heads = 2;
  model.head_width = 16;
  model.windows = {0, 0};
  return model;
}

/// Training with everything that a plan can hold: accumulation, evaluation, saves.
inline planner::Request two_layer_request(int stage, std::int64_t world_size = 2) {
  planner::Request request{.model = two_layer_model()};
  request.world_size = world_size;
  request.stage = stage;
  request.recompute = spec::Recompute::none;
  request.max_rows = 64;
  request.max_evaluation_rows = 64;
  request.max_generation_rows = 64;
  request.accumulation_steps = 3;
  // Layers are small enough to stay whole at stage 3 otherwise.
  request.bounds.param_persistence_elements = 1000;
  return request;
}

}  // namespace underkeel::test
