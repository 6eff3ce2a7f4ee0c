#include "data/tokenised.h"

#include <algorithm>

namespace underkeel::data {

void CutFigures::add(const CutFigures& other) {
  tokens += other.tokens;
  trained += other.trained;
  longest_uncut = std::max(longest_uncut, other.longest_uncut);
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
