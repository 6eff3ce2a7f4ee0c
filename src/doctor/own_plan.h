#pragma once
// What a plan of our own engine says in findings: sizes as words, and its phases as a forecast.

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/forecast.h"
#include "planner/fit.h"
#include "render/render.h"

namespace underkeel::doctor {

/// Of the staging through which checkpoints are written and read, bytes of a rank.
std::int64_t staging_bytes(const plan::Plan& plan);
/// "device memory of a rank 16.1 GB of 84.8 GB, which fits; " of a plan that fits; "" on CPU ranks.
std::string device_text(const plan::Plan& plan, const planner::Room& room);
/// What lies between buffers at the arena's fullest moment; "" where the figures do not tell it apart.
std::string gaps_text(const plan::Plan& plan);

/// Logits never exist whole: how much of them does, of a micro-batch or of an evaluation's; none without evaluations.
std::vector<Slot> logits_slots(const plan::Plan& plan, const spec::ModelSpec& model,
                               const spec::RunConfig& run, bool evaluates);
/// What a rank reads of a checkpoint, and through how much.
std::vector<Slot> resume_slots(const plan::Plan& plan);
/// The bytes that `plan` tells; gaps of an arena are told with the verdict.
void take_phases(const plan::Plan& plan, const planner::Room& room, render::Saves saves,
                 Forecast& forecast);

}  // namespace underkeel::doctor
