// What the report says about data that go wrong in practice.

#include "data/data_report.h"

#include <gmock/gmock.h>

#include "data/sft_folder.h"

namespace underkeel::data {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class DataReport : public SftFolder {
 protected:
  struct Lengths {
    std::size_t source = 0;
    std::size_t target = 0;
  };
  /// Conversations whose turns have so many tokens under `chatml`: 19 of them around a prompt, 2
  /// behind an answer.
  void write_chats(const std::vector<std::vector<Lengths>>& chats) {
    describe(R"({"data":{"file_name":"data.jsonl","formatting":"sharegpt",
                 "columns":{"messages":"messages"},"tags":{"role_tag":"role",
                 "content_tag":"content","user_tag":"user","assistant_tag":"assistant"}}})");
    use_template("chatml");
    std::string lines;
    for (const auto& chat : chats) {
      std::string messages;
      for (const Lengths& turn : chat)
        messages += std::string(messages.empty() ? "" : ",") + R"({"role":"user","content":")" +
                    std::string(turn.source - 19, 'q') + R"("},{"role":"assistant","content":")" +
                    std::string(turn.target - 2, 'a') + "\"}";
      lines += R"({"messages":[)" + messages + "]}\n";
    }
    write("data.jsonl", lines);
  }
};

TEST_F(DataReport, CountsWhatTheCutoffTakesOfAnswersAndPrompts) {
  write_chats({{{39, 12}},
               {{2030, 7}},
               {{8219, 64}},
               {{79, 30}, {49, 22}},
               {{119, 102}, {49, 22}},
               {{29, 8}, {29, 8}},
               {{17019, 64}}});
  options.cutoff_tokens = 128;

  const auto data = load();

  ASSERT_TRUE(data) << to_text(data.error());
  EXPECT_EQ(data->training->count(), 7);
  const std::string text = report(*data);
  EXPECT_THAT(text, HasSubstr("129 trained"));
  EXPECT_THAT(text, HasSubstr("longest sample 17,083 before the cut; cutoff_len: 17083 keeps all"));
  EXPECT_THAT(text, HasSubstr("2 of 7 samples are whole; of 10 answers 5 are whole, 2 lose their "
                              "end, 3 are lost; of 10 prompts 5 are cut and lose what announces "
                              "the answer, 1 is lost"));
  EXPECT_THAT(
      text, HasSubstr("2 samples keep no trained token; they stay in place and add nothing: " +
                      (folder / "data.jsonl").string() + ":3, " + (folder / "data.jsonl").string() +
                      ":7"));
}

TEST_F(DataReport, IsNotReachedWhenNoSampleKeepsATrainedToken) {
  write_chats({{{8219, 64}}, {{17019, 64}}});
  options.cutoff_tokens = 128;

  const auto data = load();

  ASSERT_FALSE(data);
  EXPECT_THAT(data.error().what,
              HasSubstr("none of 2 samples keeps a trained token at cutoff_len 128"));
  EXPECT_THAT(data.error().fix, HasSubstr("cutoff_len: 17083"));
}

TEST_F(DataReport, NamesTheLengthOfTheLongestSample) {
  std::string lines;
  for (int i = 0; i < 63; ++i)
    lines += R"({"instruction":"Say )" + std::to_string(i) + R"(.","input":"","output":")" +
             std::to_string(i) + "\"}\n";
  lines +=
      R"({"instruction":"Say it again.","input":"","output":")" + std::string(3009, 'x') + "\"}\n";
  write("data.jsonl", lines);
  options.cutoff_tokens = 2048;

  const auto data = load();

  ASSERT_TRUE(data) << to_text(data.error());
  EXPECT_EQ(data->training->largest_tokens(), 2048);
  const Sample longest = sample(*data->training, 63);
  EXPECT_EQ(std::count(longest.labels.begin(), longest.labels.end(), ignored_label), 13);
  EXPECT_THAT(report(*data), HasSubstr("longest sample 3,022 before the cut"));
  EXPECT_THAT(report(*data), HasSubstr("training: 64 samples"));
  EXPECT_THAT(report(*data), HasSubstr("longest 2,048"));
}

TEST_F(DataReport, CountsUpdatesWithoutATrainedTokenAndTheShortLastOne) {
  std::string lines;
  for (int i = 0; i < 10; ++i) {
    const std::string digit = std::to_string(i);
    lines += R"({"instruction":"Say )" + digit + R"(.","input":"","output":")" +
             (i >= 3 && i <= 7 ? "" : digit + digit + digit) + "\"}\n";
  }
  write("data.jsonl", lines);

  const auto data = load();

  ASSERT_TRUE(data) << to_text(data.error());
  EXPECT_THAT(report(*data, {.accumulation_steps = 4, .shuffle = false}),
              HasSubstr("10 micro-batches of 1 on each of 1 rank, 3 updates, the last from 2 "
                        "micro-batches; 1 update without a trained token"));
  EXPECT_THAT(data->sets[0].records.empty, 5);
}

TEST_F(DataReport, SaysHowUnevenSamplesAreSharedOut) {
  std::string lines;
  for (int i = 0; i < 21; ++i)
    lines += R"({"instruction":"S","input":"","output":"x"})"
             "\n";
  write("data.jsonl", lines);

  const auto data = load();

  const SamplerConfig order{.sequences_per_micro_batch = 2, .world_size = 4};
  EXPECT_THAT(report(*data, order), HasSubstr("3 micro-batches of 2 on each of 4 ranks"));
  EXPECT_THAT(report(*data, order), HasSubstr("24 places, so 3 samples come twice"));
  SamplerConfig dropping = order;
  dropping.drop_last = true;
  EXPECT_THAT(report(*data, dropping), HasSubstr("2 micro-batches of 2"));
  EXPECT_THAT(report(*data, dropping), HasSubstr("16 samples are used and 5 left out"));
}

TEST_F(DataReport, ListsDroppedRecordsAndWhy) {
  write("data.jsonl",
        "{\"instruction\":\"a\",\"input\":\"\",\"output\":\"b\"}\n"
        "{\"instruction\":\"a\",\"input\":\"\",\"output\":7}\n"
        "{\"instruction\":\"a\",\"input\":\"\"}\n"
        "{\"instruction\":\"a\",\"input\":\"\",\"output\":\"\"}\n");

  const auto data = load();

  ASSERT_TRUE(data) << to_text(data.error());
  EXPECT_EQ(data->training->count(), 2);
  EXPECT_THAT(report(*data), HasSubstr("4 records, 2 usable (1 empty), 2 dropped, 0 broken"));
  EXPECT_THAT(report(*data), HasSubstr("data.jsonl:2: dropped, `output` is a number"));
  EXPECT_THAT(report(*data), HasSubstr("data.jsonl:3: dropped, `output` is missing"));
}

TEST_F(DataReport, RefusesBrokenRecordsUnlessAskedToSkipThem) {
  write("data.jsonl",
        "{\"instruction\":\"a\",\"output\":\"b\"}\n{\"instruction\":\"a\",\"output\":\"b\"\n");

  const auto refused = load();
  options.skip_broken = true;
  const auto taken = load();

  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("data.jsonl:2, column 32: broken"));
  EXPECT_THAT(refused.error().fix, HasSubstr("underkeel.skip_broken_records: true"));
  ASSERT_TRUE(taken) << to_text(taken.error());
  EXPECT_EQ(taken->training->count(), 1);
}

}  // namespace
}  // namespace underkeel::data
