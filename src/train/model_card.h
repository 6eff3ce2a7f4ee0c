#pragma once
// README.md of a trained model's folder: what it was made from, with which settings.

#include <string>

#include "train/job.h"
#include "train/trainer_state.h"

namespace underkeel::train {

/// Front matter as model hubs read it, then the settings and what the run came to.
std::string model_card(const Job& job, const TrainerState& state);

}  // namespace underkeel::train
