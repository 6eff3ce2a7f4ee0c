#pragma once
// One sample of stage sft: the turns of a conversation cut to a length, with labels.

#include <cstdint>
#include <span>

#include "data/chat_encoder.h"
#include "data/tokenised.h"

namespace underkeel::data {

struct SupervisedOptions {
  std::int64_t cutoff_tokens = 2048;
  bool train_on_prompt = false;
  bool mask_history = false;  // only the last turn is trained, and it is cut last
  bool efficient_eos = false;
  std::int32_t end_token = 0;  // of efficient_eos
};

struct TurnLengths {
  std::int64_t source = 0;
  std::int64_t target = 0;
};

/// How much of a prompt and its answer stays when `budget` tokens are left.
/// Source:  LLaMA-Factory's infer_seqlen, in double arithmetic as there.
TurnLengths cut_turn(TurnLengths turn, std::int64_t budget);

/// Turns are cut on the right, one after the other (with mask_history from the last one back), until
/// nothing is left of the cut-off; prompts and answers that are not trained have ignored labels.
TokenisedRecord make_supervised(std::span<const Turn> turns, const SupervisedOptions& options);

}  // namespace underkeel::data
