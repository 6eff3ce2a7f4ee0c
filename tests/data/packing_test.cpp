#include "data/packing.h"

#include <gmock/gmock.h>

#include "data/sft_folder.h"

namespace underkeel::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Pack, TakesTheLargestThatFitsAndOfOneLengthTheLastFirst) {
  const std::vector<std::int64_t> lengths = {5, 3, 5, 2, 9, 3};

  EXPECT_THAT(pack(lengths, 10),
              ElementsAre(ElementsAre(4), ElementsAre(2, 0), ElementsAre(5, 1, 3)));
  EXPECT_TRUE(pack({}, 10).empty());
}

TEST(Pack, HoldsEverySampleOnceAndNeverMoreThanFits) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 500; ++i) lengths.push_back(i * i % 61);
  std::vector<int> seen(lengths.size(), 0);

  for (const auto& places : pack(lengths, 63)) {
    std::int64_t sum = 0;
    for (const std::uint32_t place : places) {
      ++seen[place];
      sum += lengths[place];
    }
    EXPECT_LE(sum, 63);
  }

  EXPECT_THAT(seen, testing::Each(1));
}

TEST(PackingBatches, EndAtTheBordersOfShardsOfNearlyEqualSize) {
  EXPECT_THAT(batch_ends(7, {.batch_records = 3}), ElementsAre(3, 6, 7));
  EXPECT_THAT(batch_ends(7, {.batch_records = 3, .shards = 2}), ElementsAre(3, 4, 7));
  EXPECT_THAT(batch_ends(2, {.batch_records = 3, .shards = 5}), ElementsAre(1, 2));
  EXPECT_TRUE(batch_ends(0, {.batch_records = 3}).empty());
}

class Packs : public SftFolder {
 protected:
  void SetUp() override {
    SftFolder::SetUp();
    std::string lines;
    for (int i = 0; i < 12; ++i) {
      std::string answer;
      for (int word = 0; word <= i % 5; ++word) answer += "a ";
      lines += R"({"instruction":"Q)" + std::to_string(i) + R"(","input":"","output":")" + answer +
               "\"}\n";
    }
    write("data.jsonl", lines);
    options.packing = true;
    options.cutoff_tokens = 63;  // cutoff_len: 64
  }
};

TEST_F(Packs, AreReportedWithTheirFillAndAttention) {
  const auto data = load();

  ASSERT_TRUE(data) << to_text(data.error());
  EXPECT_EQ(data->training->count(), 2);
  const std::string text = report(*data);
  EXPECT_THAT(text, HasSubstr("2 packs of 64 positions (6 samples with 60 tokens, 6 with 32)"));
  EXPECT_THAT(text, HasSubstr("fill rate 71.9%"));
  EXPECT_THAT(text, HasSubstr("attention: separate per sample; positions restart"));
  EXPECT_THAT(
      data->notes,
      testing::Contains(HasSubstr("LLaMA-Factory's plain packing would let them see each other")));
}

TEST_F(Packs, KeepSamplesApartUnlessAttentionIsShared) {
  const auto apart = load();
  options.attention = PackingAttention::shared;
  const auto shared = load();

  const Sample one = sample(*apart->training, 0);
  const Sample other = sample(*shared->training, 0);
  EXPECT_EQ(one.tokens, other.tokens);
  EXPECT_EQ(one.labels, other.labels);
  EXPECT_EQ(one.positions, other.positions);
  EXPECT_EQ(one.sequence_lengths.size(), 6u);
  EXPECT_THAT(other.sequence_lengths, ElementsAre(60));
  std::int32_t begin = 0;
  for (const std::int32_t length : one.sequence_lengths) {
    EXPECT_EQ(one.positions[static_cast<std::size_t>(begin)], 0);
    EXPECT_EQ(one.labels[static_cast<std::size_t>(begin)], ignored_label);
    begin += length;
  }
}

TEST_F(Packs, SayNothingOfLlamaFactoryWhereItKeepsThemApartToo) {
  options.neat_packing = true;

  const auto data = load();

  EXPECT_THAT(data->notes, testing::Not(testing::Contains(HasSubstr("LLaMA-Factory"))));
}

}  // namespace
}  // namespace underkeel::data
