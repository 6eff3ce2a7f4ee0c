// The cut-off and labels of one conversation.

#include "data/supervised.h"

#include <gmock/gmock.h>

#include "data/batch.h"

namespace underkeel::data {
namespace {

using testing::ElementsAre;

std::vector<std::int32_t> labels_of(const TokenisedRecord& record, std::int32_t end = 0) {
  std::vector<std::int32_t> labels;
  for (const TokenWord word : record.words) labels.push_back(label_of(word, end));
  return labels;
}

std::vector<std::int32_t> tokens_of(const TokenisedRecord& record) {
  std::vector<std::int32_t> tokens;
  for (const TokenWord word : record.words) tokens.push_back(token_of(word));
  return tokens;
}

Turn turn_of(int source, int target, std::int32_t first = 10) {
  Turn turn;
  for (int i = 0; i < source; ++i) turn.source.push_back(first + i);
  for (int i = 0; i < target; ++i) turn.target.push_back(first + 50 + i);
  return turn;
}

struct Cut {
  std::int64_t source, target, budget, kept_source, kept_target;
};

TEST(CutTurn, KeepsWhatLlamaFactoryKeeps) {
  const Cut cuts[] = {{100, 10, 50, 40, 10},  {10, 100, 50, 10, 40},  {100, 100, 50, 25, 25},
                      {30, 25, 50, 28, 22},   {40, 24, 50, 26, 24},   {24, 100, 50, 24, 26},
                      {25, 100, 50, 10, 40},  {7, 5, 11, 6, 5},       {3, 1, 1, 1, 0},
                      {2030, 7, 128, 121, 7}, {8219, 64, 128, 128, 0}};
  for (const Cut& cut : cuts) {
    const TurnLengths kept = cut_turn({cut.source, cut.target}, cut.budget);
    EXPECT_EQ(kept.source, cut.kept_source) << cut.source << " " << cut.target;
    EXPECT_EQ(kept.target, cut.kept_target) << cut.source << " " << cut.target;
  }
}

TEST(CutTurn, NeverKeepsMoreThanThereIsOrThanFits) {
  for (std::int64_t source = 0; source < 40; ++source)
    for (std::int64_t target = 0; target < 40; ++target)
      for (std::int64_t budget = 1; budget < 90; ++budget) {
        const TurnLengths kept = cut_turn({source, target}, budget);
        ASSERT_LE(kept.source, source);
        ASSERT_LE(kept.target, target);
        ASSERT_LE(kept.source + kept.target, budget);
        if (source + target <= budget) {
          ASSERT_EQ(kept.source + kept.target, source + target);
        }
      }
}

TEST(Supervised, TrainsAnswersAlone) {
  const auto record = make_supervised(std::vector{turn_of(2, 2), turn_of(1, 1, 20)}, {});

  EXPECT_THAT(tokens_of(record), ElementsAre(10, 11, 60, 61, 20, 70));
  EXPECT_THAT(labels_of(record), ElementsAre(-100, -100, 60, 61, -100, 70));
  EXPECT_EQ(record.figures.trained, 3);
  EXPECT_EQ(record.figures.whole, 1);
}

TEST(Supervised, TrainsPromptsTooWhenAsked) {
  const auto record = make_supervised(std::vector{turn_of(2, 1)}, {.train_on_prompt = true});

  EXPECT_THAT(labels_of(record), ElementsAre(10, 11, 60));
  EXPECT_EQ(record.figures.trained, 2);  // nothing predicts the first token
}

TEST(Supervised, TrainsTheLastTurnAloneWhenHistoryIsMaskedAndCutsItLast) {
  const auto record = make_supervised(std::vector{turn_of(3, 3), turn_of(2, 2, 20)},
                                      {.cutoff_tokens = 6, .mask_history = true});

  EXPECT_THAT(tokens_of(record), ElementsAre(10, 60, 20, 21, 70, 71));
  EXPECT_THAT(labels_of(record), ElementsAre(-100, -100, -100, -100, 70, 71));
}

TEST(Supervised, LearnsTheEndTokenAfterEveryAnswerWithAnEfficientEnd) {
  const auto record = make_supervised(std::vector{turn_of(2, 1), turn_of(2, 1, 20)},
                                      {.efficient_eos = true, .end_token = 9});

  EXPECT_THAT(tokens_of(record), ElementsAre(10, 11, 60, 20, 21, 70, 9));
  EXPECT_THAT(labels_of(record, 9), ElementsAre(-100, -100, 60, 9, -100, 70, 9));
}

TEST(Supervised, StopsAtTheCutoffAndCountsWhatIsLost) {
  const auto record = make_supervised(std::vector{turn_of(119, 102, 1000), turn_of(49, 22, 2000)},
                                      {.cutoff_tokens = 128});

  EXPECT_EQ(record.figures.tokens, 128);
  EXPECT_EQ(record.figures.trained, 59);
  EXPECT_EQ(record.figures.answers_cut, 1);
  EXPECT_EQ(record.figures.answers_lost, 1);
  EXPECT_EQ(record.figures.prompts_cut, 1);
  EXPECT_EQ(record.figures.prompts_lost, 1);
  EXPECT_EQ(record.figures.longest_uncut, 292);
  // Of the longest sample alone, over its turns.
  EXPECT_EQ(record.figures.longest_prompt, 119 + 49);
  EXPECT_EQ(record.figures.longest_answer, 102 + 22);
  EXPECT_EQ(record.figures.longest_prompt_kept + record.figures.longest_answer_kept, 128);
  CutFigures all = record.figures;
  all.add(make_supervised(std::vector{turn_of(2, 1)}, {}).figures);
  EXPECT_EQ(all.longest_prompt, 119 + 49);
}

TEST(Supervised, TellsAnswersThatAreEmptyInTheDataFromThoseTheCutoffTakes) {
  const auto empty = make_supervised(std::vector{turn_of(8, 0)}, {.cutoff_tokens = 4});
  EXPECT_EQ(empty.figures.untrained, 1);
  EXPECT_EQ(empty.figures.unanswered, 1);
  EXPECT_EQ(empty.figures.answers_lost, 0);

  const auto lost = make_supervised(std::vector{turn_of(8219, 64)}, {.cutoff_tokens = 128});
  EXPECT_EQ(lost.figures.untrained, 1);
  EXPECT_EQ(lost.figures.unanswered, 0);
  EXPECT_EQ(lost.figures.answers_lost, 1);

  // Under mask_history only the last answer is trained.
  const auto masked = make_supervised(std::vector{turn_of(3, 3), turn_of(2, 0, 20)},
                                      {.cutoff_tokens = 64, .mask_history = true});
  EXPECT_EQ(masked.figures.unanswered, 1);
}

// What a collator that pads makes of two samples whose end token also pads: the real end stays a
// target, padding is none. Here nothing is padded, so the same targets must come out of the batch.
TEST(Supervised, TrainsTheEndTokenAlsoWhereItPads) {
  constexpr std::int32_t end_and_padding = 0;
  const std::vector<Turn> pairs = {{.source = {5, 6}, .target = {7, end_and_padding}},
                                   {.source = {8}, .target = {9, 10, 11, end_and_padding}}};
  constexpr std::size_t padded = 8;  // the longest, rounded up to a multiple of 8
  const std::int32_t expected[2][padded] = {{-100, -100, 7, 0, -100, -100, -100, -100},
                                            {-100, 9, 10, 11, 0, -100, -100, -100}};
  MicroBatch batch;
  batch.sequence_starts.push_back(0);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto record = make_supervised(std::span(pairs).subspan(i, 1), {});
    auto labels = labels_of(record);
    Sample sample{.tokens = tokens_of(record), .labels = labels};
    sample.sequence_lengths = {static_cast<std::int32_t>(labels.size())};
    append_sample(sample, static_cast<std::int64_t>(i), batch);
    labels.resize(padded, ignored_label);
    EXPECT_THAT(labels, testing::ElementsAreArray(expected[i]));
  }

  EXPECT_THAT(batch.tokens, ElementsAre(5, 6, 7, 0, 8, 9, 10, 11, 0));
  EXPECT_THAT(batch.targets, ElementsAre(-100, 7, 0, -100, 9, 10, 11, 0, -100));
  EXPECT_THAT(batch.sequence_starts, ElementsAre(0, 4, 9));
  EXPECT_EQ(batch.target_count, 6);
}

}  // namespace
}  // namespace underkeel::data
