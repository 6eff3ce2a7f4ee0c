#pragma once
// A record made into tokens, as it is stored: the label stands in the same word as the token.

#include <cstdint>
#include <vector>

#include "data/sample.h"

namespace underkeel::data {

/// The low bits are the token; the high ones say what the label is.
using TokenWord = std::uint32_t;
constexpr TokenWord label_is_token = TokenWord{1} << 31;
constexpr TokenWord label_is_end = TokenWord{1} << 30;  // the tokenizer's end token, another one
constexpr TokenWord token_mask = label_is_end - 1;

inline std::int32_t token_of(TokenWord word) {
  return static_cast<std::int32_t>(word & token_mask);
}
inline std::int32_t label_of(TokenWord word, std::int32_t end_token) {
  if ((word & label_is_token) != 0) return token_of(word);
  return (word & label_is_end) != 0 ? end_token : ignored_label;
}

/// What the cut-off did to one record, or to many.
struct CutFigures {
  std::int64_t tokens = 0;         // kept
  std::int64_t trained = 0;        // labels that are targets
  std::int64_t longest_uncut = 0;  // tokens of the longest sample before the cut-off
  // Of that sample, over its turns: tokens of prompts and answers before the cut-off and after it.
  std::int64_t longest_prompt = 0, longest_prompt_kept = 0;
  std::int64_t longest_answer = 0, longest_answer_kept = 0;
  std::int64_t whole = 0;       // samples that lost nothing
  std::int64_t untrained = 0;   // samples without a trained token
  std::int64_t unanswered = 0;  // of them those that no cut-off is to blame for
  std::int64_t answers = 0;
  std::int64_t answers_cut = 0;   // lost their end
  std::int64_t answers_lost = 0;  // nothing is left
  std::int64_t prompts_cut = 0;   // lost their end, which announces the answer
  std::int64_t prompts_lost = 0;  // with their turn

  void add(const CutFigures& other);
};

/// Tokens of an answer after the cut-off, and before it.
struct AnswerLengths {
  std::int64_t kept = 0;
  std::int64_t uncut = 0;
};

struct TokenisedRecord {
  std::vector<TokenWord> words;
  CutFigures figures;
  std::vector<AnswerLengths> answers;  // by turn, of a record that is not whole
};

}  // namespace underkeel::data
