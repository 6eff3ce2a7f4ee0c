#include "data/tokenised.h"

#include <algorithm>

namespace underkeel::data {

void CutFigures::add(const CutFigures& other) {
  tokens += other.tokens;
  trained += other.trained;
  if (other.longest_uncut > longest_uncut) {
    longest_uncut = other.longest_uncut;
    longest_prompt = other.longest_prompt;
    longest_prompt_kept = other.longest_prompt_kept;
    longest_answer = other.longest_answer;
    longest_answer_kept = other.longest_answer_kept;
  }
  whole += other.whole;
  untrained += other.untrained;
  unanswered += other.unanswered;
  answers += other.answers;
  answers_cut += other.answers_cut;
  answers_lost += other.answers_lost;
  prompts_cut += other.prompts_cut;
  prompts_lost += other.prompts_lost;
}

}  // namespace underkeel::data
