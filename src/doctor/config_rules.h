#pragma once
// Rules about keys that meet: the batch equation, values that a run file gives as well, keys that exclude
// each other, keys that need another one. What DeepSpeed, the HF Trainer and accelerate do with them.

#include <cstdint>
#include <string_view>
#include <vector>

#include "doctor/finding.h"
#include "doctor/inputs.h"

namespace underkeel::doctor {

/// Of a DeepSpeed config alone and beside its run file. Empty without a config.
std::vector<Finding> check_config(const Inputs& inputs);

// The parts.
void check_batch(const Inputs& inputs, std::vector<Finding>& findings);
void check_against_run_file(const Inputs& inputs, std::vector<Finding>& findings);
void check_combinations(const Inputs& inputs, std::vector<Finding>& findings);
/// Bit widths that LLaMA-Factory refuses, by themselves and at stage 3; a config is not needed.
void check_quantisation(const Inputs& inputs, std::vector<Finding>& findings);
/// Settings that LLaMA-Factory or the Trainer refuse together, or without another; a config is not needed.
void check_run_by_itself(const Inputs& inputs, std::vector<Finding>& findings);
void check_optimizer(const Inputs& inputs, std::vector<Finding>& findings);
/// Whether DeepSpeed has this scheduler itself; another one is looked up in torch.optim.lr_scheduler. Cases matter.
bool is_own_scheduler(std::string_view type);

/// Sizes of the batch of a config without a run file: one sequence and one step where nothing says.
struct ConfigBatch {
  std::int64_t micro_batch = 1;
  std::int64_t accumulation_steps = 1;
};
/// As DeepSpeed fills in what is left out.
ConfigBatch batch_of_config(const spec::Value& config, std::int64_t ranks);

/// Whether accelerate adds gradient_accumulation_steps, as 1, whatever the run file says.
bool steps_are_left_out(const spec::Value& config);

/// The stage in force: 0-3; "auto" is accelerate's 2; true is 1.
int stage_in(const spec::Value& config);

}  // namespace underkeel::doctor
