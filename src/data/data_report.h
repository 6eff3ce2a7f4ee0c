#pragma once
// What a run's data are, for people: before training, so that a wrong cut-off or a broken file shows.

#include <cstdint>
#include <string>

#include "data/dataset.h"
#include "data/sampler.h"

namespace underkeel::data {

struct DataReportQuestion {
  const Datasets& datasets;
  const DatasetOptions& options;
  SamplerConfig order;  // of any rank
};

/// Of each data set: records, what was dropped and why, tokens, the longest sample, what the cut-off
/// took of answers and prompts, samples without a trained token. Then what is trained and evaluated
/// on, packs, and how an epoch is cut into micro-batches and updates.
std::string data_report(const DataReportQuestion& question);

/// Accumulation windows of the first epoch that have no trained token on any rank.
std::int64_t untrained_windows(const Datasets& datasets, const SamplerConfig& order);

}  // namespace underkeel::data
