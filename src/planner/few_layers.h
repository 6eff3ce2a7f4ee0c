#pragma once
// What a plan of many layers needs, and how long its step takes, drawn out from two plans of few layers
// (docs/decisions/0024). Memory is a bound from below but for roundings: estimates are within `memory_tolerance` of it.

#include <array>
#include <cstdint>
#include <optional>

#include "planner/best_fit.h"
#include "planner/planner.h"
#include "spec/model_spec.h"

namespace underkeel::planner {

/// Estimates are this close (`BestFit.TheFirstIsTheFastestOfTheWholeGrid`, `Fit.FindsWhatThePlansOfAllSettingsFind`):
/// what they call too large or too slow by more is.
constexpr double memory_tolerance = 0.01;
constexpr double time_tolerance = 0.02;

/// The same model with fewer layers, of its kinds in proportion.
spec::ModelSpec with_layers(const spec::ModelSpec& model, std::int64_t layers);

class FewLayers {
 public:
  explicit FewLayers(const spec::ModelSpec& model);

  struct Figures {
    std::array<std::int64_t, plan::memory_space_count> size_bytes{};
    StepTimes times;  // of a step and an evaluation; none without `predict`
  };
  /// Of make_plan(request), whose model is the one of this object. A model of few layers is planned as it is.
  Figures of(Request request, const PredictTimes& predict = {}) const;

 private:
  std::int64_t layers_ = 0;
  spec::ModelSpec few_, some_;
};

/// A bound from below for what any plan takes of a rank's device: weights, optimizer, gradients, and what enters each
/// layer. Asked before an estimate, which takes a hundred times as long; counting parameters takes longer too.
std::int64_t least_device_bytes(const Request& request, std::int64_t parameter_count);

/// A bound from below for what a plan's run would need without its evaluations: sizes of arenas and the overhead alone.
plan::Plan least_without_evaluation(const plan::Plan& plan);

/// Whether sizes that were estimated are beyond a budget by more than estimates may be wrong.
std::optional<Shortage> certain_shortage(const plan::Plan& sizes, const Room& room);

}  // namespace underkeel::planner
