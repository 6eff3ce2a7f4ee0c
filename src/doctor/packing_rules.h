#pragma once
// Packs and padding: how long the sequences of LLaMA-Factory's micro-batches are, and which samples see one another.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/doctor.h"
#include "doctor/inputs.h"
#include "doctor/run_facts.h"

namespace underkeel::doctor {

/// Whether samples of the run are put together, up to cutoff_len.
bool is_packed(const spec::Value& run);

/// Positions of each sequence in a micro-batch of LLaMA-Factory's, padding included: a pack of stage sft is padded to
/// cutoff_len, whatever it holds; without packing the collator rounds the longest sample up to a multiple of 8; neither
/// pads at stage pt. `longest`: tokens of the run's longest sample or pack; nothing: any length up to cutoff_len.
std::int64_t padded_positions(const spec::Value& run, std::optional<std::int64_t> longest);

/// What is packed, once the data have been read: packs and their fill, or blocks of text.
void tell_packs(const DataFigures& data, const Inputs& inputs, Diagnosis& diagnosis);

/// Whether samples of a pack see one another, in LLaMA-Factory; of a run file alone. Nothing without packs of samples.
std::vector<Finding> check_packing(const Inputs& inputs);

}  // namespace underkeel::doctor
