#pragma once
// Data files and descriptions of them that are given by themselves: whether a run could read them.
// Not here: the data of a run, which whoever asks tokenises (Question::data).

#include "doctor/doctor.h"

namespace underkeel::doctor {

/// Up to this size a data file is read whole; of a larger one, its first records and its end. About 0.1 s.
constexpr std::int64_t most_record_bytes = std::int64_t{8} << 20;

/// Every data file, dataset_info.json and folder that holds one among the inputs.
void look_at_data_files(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);

}  // namespace underkeel::doctor
