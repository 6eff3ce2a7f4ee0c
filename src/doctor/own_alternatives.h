#pragma once
// What would cure it, for our own engine: each row was read with its words and planned, so it is accepted when it is
// given back.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/forecast.h"
#include "planner/fit.h"
#include "spec/value.h"

namespace underkeel::doctor {

/// An offload of the config, which has to be switched off where it acts.
struct AskedOffload {
  std::string words;  // that switch it off
  bool acts_at_stage_3_only = false;
};
/// What a DeepSpeed config says that a row has to change besides.
struct ConfigWords {
  std::vector<AskedOffload> offloads;
  std::vector<std::string> free_batch;  // words that leave its sizes of the batch to the run file
  bool is_switch = false;               // "zero_optimization": true, below which there are no keys
};
ConfigWords config_words(const spec::Value& config);

/// The run read again, for so many ranks, with more words behind those of its command line; none where it is refused.
using ReadRun = std::function<std::optional<spec::RunConfig>(const std::vector<std::string>& words,
                                                             std::int64_t ranks)>;

/// Stages, recomputation and micro-batches at the same global batch, without offload; the smallest change first. At most
/// `most_plans` are planned; a row whose model state alone is beyond the budget fails without a plan.
std::vector<Alternative> own_alternatives(const planner::FitQuestion& question,
                                          const ConfigWords& config, const ReadRun& read);

/// The fewest ranks on machines of this kind, a power of two times those of now, that hold the run at stage 3 without
/// offload.
struct EnoughRanks {
  std::int64_t ranks = 0;
  std::int64_t nodes = 0;
  std::int64_t device_bytes = 0;   // of a rank, planned
  std::int64_t allowed_bytes = 0;  // of the space that is nearest to its budget; 0: nobody said
  std::int64_t global_batch = 0;   // grows where the ranks are more than its sequences
  std::vector<std::string> words;  // besides the number of ranks
};
/// None where even `most_ranks` are too few.
std::optional<EnoughRanks> enough_ranks(const planner::FitQuestion& question,
                                        const ConfigWords& config, const ReadRun& read);

/// More ranks than a machine has are refused unless its nodes are more too: what says so, in `file` or, where there is none,
/// in one that describes such nodes; in words that a finding may hold. "" where the nodes are there.
std::string place_of_nodes(const spec::HardwareSpec& machine, std::int64_t nodes,
                           const std::string& file);

/// Bytes of weights, gradients and optimizer on one rank: less than any plan takes.
double least_state_bytes(const planner::FitQuestion& question, int stage);
/// What a rank may take of the memory that holds model state: the GPU's, or its share of the node's. Infinity when nobody
/// said.
double state_limit(const planner::FitQuestion& question);

}  // namespace underkeel::doctor
