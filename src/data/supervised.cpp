#include "data/supervised.h"

#include <algorithm>
#include <utility>

namespace underkeel::data {
namespace {

void append(std::span<const std::int32_t> ids, std::int64_t count, TokenWord label,
            std::vector<TokenWord>& words) {
  for (const std::int32_t id : ids.first(static_cast<std::size_t>(count)))
    words.push_back(static_cast<TokenWord>(id) | label);
}

}  // namespace

TurnLengths cut_turn(TurnLengths turn, std::int64_t budget) {
  std::int64_t most_target = 0;
  if (turn.target * 2 < budget)
    most_target = budget;
  else if (turn.source * 2 < budget)
    most_target = budget - turn.source;
  else
    most_target = static_cast<std::int64_t>(
        static_cast<double>(budget) *
        (static_cast<double>(turn.target) / static_cast<double>(turn.source + turn.target)));
  const std::int64_t target = std::min(most_target, turn.target);
  return {.source = std::min(std::max<std::int64_t>(budget - target, 0), turn.source),
          .target = target};
}

TokenisedRecord make_supervised(std::span<const Turn> turns, const SupervisedOptions& options) {
  TokenisedRecord record;
  CutFigures& figures = record.figures;
  std::vector<std::vector<TokenWord>> kept(turns.size());
  std::vector<AnswerLengths> answers(turns.size());
  std::int64_t used = options.efficient_eos ? 1 : 0;
  figures.longest_uncut = used;
  figures.answers = static_cast<std::int64_t>(turns.size());
  std::int64_t trainable = options.efficient_eos ? 1 : 0;  // tokens before the cut-off
  for (std::size_t visit = 0; visit < turns.size(); ++visit) {
    const std::size_t place = options.mask_history ? turns.size() - 1 - visit : visit;
    const Turn& turn = turns[place];
    const TurnLengths all{.source = static_cast<std::int64_t>(turn.source.size()),
                          .target = static_cast<std::int64_t>(turn.target.size())};
    figures.longest_uncut += all.source + all.target;
    figures.longest_prompt += all.source;
    figures.longest_answer += all.target;
    answers[place].uncut = all.target;
    if (options.train_on_prompt) trainable += all.source;
    if (!options.mask_history || visit == 0) trainable += all.target;
    if (used >= options.cutoff_tokens) {
      ++figures.prompts_lost;
      if (all.target > 0) ++figures.answers_lost;
      continue;
    }
    const TurnLengths length = cut_turn(all, options.cutoff_tokens - used);
    used += length.source + length.target;
    figures.longest_prompt_kept += length.source;
    figures.longest_answer_kept += length.target;
    answers[place].kept = length.target;
    if (length.source < all.source) ++figures.prompts_cut;
    if (length.target < all.target)
      ++(length.target > 0 ? figures.answers_cut : figures.answers_lost);
    std::vector<TokenWord>& words = kept[place];
    append(turn.source, length.source, options.train_on_prompt ? label_is_token : 0, words);
    if (options.efficient_eos && visit != 0 && !words.empty()) words.front() |= label_is_end;
    append(turn.target, length.target, options.mask_history && visit != 0 ? 0 : label_is_token,
           words);
  }
  for (const auto& words : kept)
    record.words.insert(record.words.end(), words.begin(), words.end());
  if (options.efficient_eos)
    record.words.push_back(static_cast<TokenWord>(options.end_token) | label_is_token);
  figures.tokens = static_cast<std::int64_t>(record.words.size());
  // The first token is predicted from nothing.
  for (std::size_t i = 1; i < record.words.size(); ++i)
    if ((record.words[i] & ~token_mask) != 0) ++figures.trained;
  figures.whole = figures.tokens == figures.longest_uncut ? 1 : 0;
  if (figures.whole == 0) record.answers = std::move(answers);
  figures.untrained = figures.trained == 0 ? 1 : 0;
  figures.unanswered = figures.untrained == 1 && (trainable == 0 || figures.whole == 1) ? 1 : 0;
  return record;
}

}  // namespace underkeel::data
