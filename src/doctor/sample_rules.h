#pragma once
// What the samples of a run are once its data have been read: lengths, what the cut-off takes, how an epoch is cut.
// Not here: packs (packing_rules.h), files of data by themselves (data_rules.h).

#include <optional>
#include <string>

#include "doctor/doctor.h"
#include "doctor/inputs.h"

namespace underkeel::doctor {

/// Findings of Question::data, or why there are none. Samples of training and of evaluation each have their own.
void look_at_samples(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);

/// Samples that are described (data-shape.json) instead of given.
struct DescribedSamples {
  std::int64_t count = 0;
  std::int64_t longest = 0;  // tokens, after the cut-off
};
/// Those of the run's `dataset` that are described; nothing unless all of them are.
std::optional<DescribedSamples> described_training(const Inputs& inputs);
/// Those of `eval_dataset`, and where none of the described sets is named by the run: all of them.
std::optional<DescribedSamples> described_evaluation(const Inputs& inputs);
/// Whether a description stands for the data set of that name, so that its files are not read.
bool is_described(const Inputs& inputs, const std::string& name);

}  // namespace underkeel::doctor
