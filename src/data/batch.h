#pragma once
// Samples made into micro-batches and accumulation windows.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/sample.h"
#include "data/sampler.h"

namespace underkeel::data {

/// Sequences end to end, without padding. R rows.
struct MicroBatch {
  std::vector<std::int32_t> tokens;     // (R)
  std::vector<std::int32_t> targets;    // (R): the next token of the sequence, or ignored_label
  std::vector<std::int32_t> positions;  // (R): from 0 in each sequence, or the sample's own
  std::vector<std::int32_t> sequence_starts;  // first rows of the sequences, ascending, then R
  std::int64_t target_count = 0;              // targets that are not ignored_label
  std::vector<std::int64_t> sample_ids;

  std::int64_t row_count() const { return static_cast<std::int64_t>(tokens.size()); }
};

/// Appends `sample` to `batch`. A new MicroBatch needs sequence_starts = {0}; see make_micro_batch().
void append_sample(const Sample& sample, std::int64_t sample_id, MicroBatch& batch);

/// Reads the samples `ids`; none gives a batch of no rows.
Result<MicroBatch> make_micro_batch(const SampleSource& source, std::span<const std::int64_t> ids);

/// What one rank does between two updates.
struct Window {
  std::vector<MicroBatch> micro_batches;  // as many on every rank
  std::int64_t target_count = 0;          // over the micro-batches of this rank
  DataPosition begin;
  DataPosition end;  // where the next window begins; what a checkpoint keeps
};

/// Reads the window at `position` for the rank of `sampler`.
Result<Window> read_window(const SampleSource& source, const Sampler& sampler,
                           const DataPosition& position);

}  // namespace underkeel::data
