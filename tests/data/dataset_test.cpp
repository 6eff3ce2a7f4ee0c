#include "data/dataset.h"

#include <numeric>

#include <gmock/gmock.h>

#include "data/random_order.h"
#include "data/write_file.h"
#include "io/faults.h"
#include "support/places.h"
#include "support/temporary_folder.h"

namespace underkeel::data {
namespace {

using test::TemporaryFolder;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int32_t end_token = 256;
constexpr std::int32_t begin_token = 257;

// Bytes as ids, and two tokens behind them.
Tokenizer byte_tokenizer(bool add_begin = false) {
  std::ifstream file(test::in_source("tests/data/goldens/tokenizer/bytes/tokenizer.json"));
  const std::string json(std::istreambuf_iterator<char>(file), {});
  auto tokenizer = Tokenizer::from_json(
      json, std::string(R"({"eos_token":"<e>","bos_token":"<b>","add_bos_token":)") +
                (add_begin ? "true" : "false") +
                R"(,"added_tokens_decoder":{"256":{"content":"<e>"},"257":{"content":"<b>"}}})");
  EXPECT_TRUE(tokenizer) << to_text(tokenizer.error());
  return *tokenizer;
}

class TextDatasets : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder / "dataset_info.json",
               R"({"a":{"file_name":"a.txt","columns":{"prompt":"text"}},
                   "b":{"file_name":"b.jsonl","columns":{"prompt":"text"}},
                   "few":{"file_name":"a.txt","columns":{"prompt":"text"},"num_samples":2},
                   "pairs":{"file_name":"pairs.json"}})");
    write_file(folder / "a.txt", "ab\ncde\n\nf\n");
    write_file(folder / "b.jsonl", "{\"text\":\"xyz\"}\n");
    write_file(folder / "pairs.json", R"([{"instruction":"a","input":"b","output":"c"}])");
    options.folder = folder.path();
    options.names = {"a"};
    options.cache_folder = folder / "output";
  }

  Result<Datasets> load() { return load_datasets(files, tokenizer, options); }

  static Sample sample(const SampleSource& source, std::int64_t index) {
    Sample read;
    EXPECT_TRUE(source.read(index, read));
    EXPECT_EQ(read.labels, read.tokens);
    EXPECT_EQ(source.tokens_in(index), static_cast<std::int64_t>(read.tokens.size()));
    return read;
  }

  TemporaryFolder folder;
  io::FileSystem files;
  Tokenizer tokenizer = byte_tokenizer();
  DatasetOptions options;
};

TEST_F(TextDatasets, RefuseMoreChosenRecordsThanMemoryHolds) {
  options.memory_bytes = std::int64_t{1} << 20;
  const auto refusal_of = [&](const std::string& count) {
    write_file(
        folder / "dataset_info.json",
        R"({"a":{"file_name":"a.txt","columns":{"prompt":"text"},"num_samples":)" + count + "}}");
    const auto data = load();
    return data ? std::string("accepted") : to_text(data.error());
  };

  EXPECT_THAT(refusal_of("1000000"),
              HasSubstr("the lists of `num_samples` 1,000,000 records take 22.9 MiB, 24 bytes "
                        "each, and 1.0 MiB of host memory are left for them"));
  EXPECT_THAT(refusal_of("1000000"), HasSubstr("num_samples or max_samples of at most 43690"));
  EXPECT_THAT(refusal_of("1000000000000000"),
              HasSubstr("`num_samples` 1,000,000,000,000,000 is more than can be drawn"));
}

TEST_F(TextDatasets, HoldOfTheChosenRecordsOnlyThoseThatMaxSamplesLeaves) {
  write_file(folder / "dataset_info.json",
             R"({"a":{"file_name":"a.txt","columns":{"prompt":"text"},"num_samples":1000000},
                 "b":{"file_name":"a.txt","columns":{"prompt":"text"},"num_samples":3}})");
  options.packing = false;
  options.names = {"a", "b"};
  const auto all = load();
  options.max_samples = 9;
  options.memory_bytes = std::int64_t{1} << 20;

  const auto some = load();

  ASSERT_TRUE(all) << to_text(all.error());
  ASSERT_TRUE(some) << to_text(some.error());
  ASSERT_EQ(some->training->count(), 12);
  const std::int64_t last = all->training->count() - 3;
  ASSERT_EQ(last, 1000000);
  for (std::int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(sample(*some->training, i).tokens,
              sample(*all->training, i < 9 ? i : last + i - 9).tokens)
        << i;
}

TEST_F(TextDatasets, TellWhatTheListsOfChosenRecordsTake) {
  write_file(folder / "dataset_info.json",
             R"({"a":{"file_name":"a.txt","columns":{"prompt":"text"},"num_samples":100000}})");
  options.packing = false;

  const auto data = load();

  ASSERT_TRUE(data) << to_text(data.error());
  // 4 bytes a chosen record, and the lengths of the 4 that there are.
  EXPECT_GE(resident_bytes(*data), 400000);
  EXPECT_LE(resident_bytes(*data), 2 * 400000);
}

// The four documents are: a b E | c d e E | E | f E. Ten tokens.

TEST_F(TextDatasets, CutDocumentsLaidEndToEndIntoBlocks) {
  options.cutoff_tokens = 4;

  const auto data = load();

  ASSERT_TRUE(data) << to_text(data.error());
  EXPECT_EQ(data->training->count(), 2);
  EXPECT_THAT(sample(*data->training, 0).tokens, ElementsAre('a', 'b', end_token, 'c'));
  EXPECT_THAT(sample(*data->training, 0).sequence_lengths, ElementsAre(3, 1));
  EXPECT_THAT(sample(*data->training, 1).tokens, ElementsAre('d', 'e', end_token, end_token));
  EXPECT_THAT(sample(*data->training, 1).sequence_lengths, ElementsAre(3, 1));
  EXPECT_EQ(data->training_figures.tokens, 8);
  EXPECT_EQ(data->training_figures.dropped_tokens, 2);
  EXPECT_EQ(data->largest_token_id, end_token);
  EXPECT_THAT(data->notes, Contains(HasSubstr("2 of 10 tokens are in no sample")));
}

TEST_F(TextDatasets, LetDocumentsOfABlockSeeEachOtherWhenAsked) {
  options.cutoff_tokens = 5;
  options.attention = PackingAttention::shared;

  const auto data = load();

  EXPECT_THAT(sample(*data->training, 1).tokens,
              ElementsAre('e', end_token, end_token, 'f', end_token));
  EXPECT_THAT(sample(*data->training, 1).sequence_lengths, ElementsAre(5));
}

TEST_F(TextDatasets, DropTheRestOfEachBatchOfRecords) {
  options.cutoff_tokens = 3;
  options.batches.batch_records = 2;

  const auto data = load();

  // 7 tokens give two blocks, 3 give one.
  EXPECT_EQ(data->training->count(), 3);
  EXPECT_THAT(sample(*data->training, 2).tokens, ElementsAre(end_token, 'f', end_token));
}

TEST_F(TextDatasets, WithoutPackingHaveOneTruncatedSampleARecord) {
  options.cutoff_tokens = 3;
  options.packing = false;

  const auto data = load();

  EXPECT_EQ(data->training->count(), 4);
  EXPECT_EQ(data->training->largest_tokens(), 3);
  EXPECT_THAT(sample(*data->training, 1).tokens, ElementsAre('c', 'd', 'e'));
  EXPECT_THAT(sample(*data->training, 2).tokens, ElementsAre(end_token));
  EXPECT_EQ(data->training_figures.dropped_tokens, 1);
}

TEST_F(TextDatasets, BeginWithTheBeginTokenWhenTheTokenizerSaysSo) {
  tokenizer = byte_tokenizer(true);
  options.cutoff_tokens = 3;

  const auto packed = load();
  options.packing = false;
  const auto separate = load();

  // Packed: it overwrites the first token of a block.
  EXPECT_THAT(sample(*packed->training, 1).tokens, ElementsAre(begin_token, 'd', 'e'));
  EXPECT_THAT(sample(*separate->training, 0).tokens, ElementsAre(begin_token, 'a', 'b'));
}

TEST_F(TextDatasets, JoinPromptAndQueryAndSayThatResponsesAreUnused) {
  options.names = {"pairs"};
  options.cutoff_tokens = 4;

  const auto data = load();

  EXPECT_THAT(sample(*data->training, 0).tokens, ElementsAre('a', '\n', 'b', end_token));
  EXPECT_THAT(data->notes, Contains(HasSubstr("`output` is not used")));
}

TEST_F(TextDatasets, FollowOneAnotherAndKeepTheFirstSamplesOfEach) {
  options.names = {"a", "b"};
  options.packing = false;
  options.max_samples = 1;

  const auto data = load();

  EXPECT_EQ(data->training->count(), 2);
  EXPECT_THAT(sample(*data->training, 1).tokens, ElementsAre('x', 'y', 'z', end_token));
  EXPECT_EQ(data->sets[0].records.records, 1);
}

TEST_F(TextDatasets, ChooseRecordsByNumpysPermutation) {
  options.names = {"few"};
  options.packing = false;
  const auto order = LegacyNumpy(options.seed).permutation(4);
  const std::vector<std::size_t> lengths = {3, 4, 1, 2};

  const auto data = load();

  ASSERT_EQ(data->training->count(), 2);
  for (std::int64_t index = 0; index < 2; ++index)
    EXPECT_EQ(sample(*data->training, index).tokens.size(),
              lengths[order[static_cast<std::size_t>(index)]]);
}

TEST_F(TextDatasets, HoldOutTheFrontOfAPermutation) {
  options.packing = false;
  options.validation_size = 0.3;  // ceil(1.2) = 2
  const auto order = numpy_permutation(4, options.seed);
  const std::vector<std::size_t> lengths = {3, 4, 1, 2};

  const auto data = load();

  ASSERT_EQ(data->evaluation->count(), 2);
  ASSERT_EQ(data->training->count(), 2);
  for (std::size_t place = 0; place < 4; ++place) {
    const auto& source = place < 2 ? *data->evaluation : *data->training;
    EXPECT_EQ(sample(source, static_cast<std::int64_t>(place % 2)).tokens.size(),
              lengths[order[place]]);
  }
}

TEST_F(TextDatasets, TakeEvaluationFromASetOfItsOwn) {
  options.evaluation_names = {"b"};
  options.cutoff_tokens = 4;

  const auto data = load();

  ASSERT_NE(data->evaluation, nullptr);
  EXPECT_THAT(sample(*data->evaluation, 0).tokens, ElementsAre('x', 'y', 'z', end_token));
}

TEST_F(TextDatasets, ReadShuffledDocumentsAcrossTheWholeStore) {
  std::string lines;
  for (int line = 0; line < 3000; ++line)
    lines += std::string(1 + line % 97, static_cast<char>('a' + line % 26)) + "\n";
  write_file(folder / "a.txt", lines);
  options.cutoff_tokens = 128;
  options.validation_size = 500;

  const auto data = load();

  ASSERT_TRUE(data) << to_text(data.error());
  const auto order = numpy_permutation(3000, options.seed);
  std::vector<std::int32_t> first_batch;
  for (std::size_t place = 500; place < 1500; ++place) {
    const int line = static_cast<int>(order[place]);
    first_batch.insert(first_batch.end(), static_cast<std::size_t>(1 + line % 97), 'a' + line % 26);
    first_batch.push_back(end_token);
  }
  for (std::size_t block = 0; block < first_batch.size() / 128; ++block) {
    const Sample read = sample(*data->training, static_cast<std::int64_t>(block));
    const auto expected = first_batch.begin() + static_cast<std::ptrdiff_t>(block * 128);
    ASSERT_TRUE(std::equal(read.tokens.begin(), read.tokens.end(), expected)) << block;
    EXPECT_EQ(std::accumulate(read.sequence_lengths.begin(), read.sequence_lengths.end(), 0), 128);
  }
}

TEST_F(TextDatasets, LeaveNothingButTheCacheBehind) {
  options.cutoff_tokens = 4;
  ASSERT_TRUE(load());

  for (const auto& entry : std::filesystem::directory_iterator(folder / "output"))
    EXPECT_TRUE(entry.path().filename() == ".lock" || entry.path().extension() == ".tokens")
        << entry.path();
}

TEST_F(TextDatasets, RefuseWhatGivesNothingToTrainOn) {
  options.cutoff_tokens = 64;

  const auto data = load();

  ASSERT_FALSE(data);
  EXPECT_THAT(data.error().what, HasSubstr("4 records with 10 tokens make no block of 64"));
  EXPECT_THAT(data.error().fix, HasSubstr("cutoff_len: 10,"));
  options.cutoff_tokens = 10;
  EXPECT_TRUE(load());
}

TEST_F(TextDatasets, RefuseHeldOutSharesThatCannotBe) {
  for (const double size : {1.0, 4.0, 2.5, -0.1, 0.99}) {
    options.validation_size = size;
    const auto data = load();

    ASSERT_FALSE(data) << size;
    EXPECT_EQ(data.error().where, "val_size");
  }
  options.validation_size = 0.5;
  options.evaluation_names = {"b"};
  EXPECT_THAT(load().error().what, HasSubstr("both"));
}

TEST_F(TextDatasets, NameTheDiskThatIsFull) {
  auto rules = io::parse_fault_rules("fail:path=.tokens,error=ENOSPC");
  ASSERT_TRUE(rules);
  io::FileSystem faulty(std::make_shared<io::FaultyCalls>(io::posix_calls(), *rules));

  const auto data = load_datasets(faulty, tokenizer, options);

  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace underkeel::data
