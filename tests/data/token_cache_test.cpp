// Tokens in files that later runs find again.

#include "data/token_cache.h"

#include <thread>

#include <gmock/gmock.h>

#include "data/sft_folder.h"
#include "io/faults.h"

namespace underkeel::data {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class TokenCache : public SftFolder {
 protected:
  void SetUp() override {
    SftFolder::SetUp();
    write("data.jsonl",
          "{\"instruction\":\"a\",\"output\":\"bc\"}\n{\"instruction\":\"d\",\"output\":\"\"}\n"
          "{\"instruction\":\"e\",\"output\":4}\n");
  }

  std::vector<std::filesystem::path> cached() const {
    std::vector<std::filesystem::path> found;
    if (std::filesystem::exists(folder / "cache"))
      for (const auto& entry : std::filesystem::directory_iterator(folder / "cache"))
        if (entry.path().filename() != ".lock") found.push_back(entry.path());
    return found;
  }
};

TEST_F(TokenCache, GivesTheSameSamplesAndReportTheSecondTime) {
  const auto first = load();
  const auto second = load();

  ASSERT_TRUE(first && second);
  EXPECT_FALSE(first->sets[0].was_cached);
  EXPECT_TRUE(second->sets[0].was_cached);
  EXPECT_EQ(data::describe(first->sets[0].records), data::describe(second->sets[0].records));
  EXPECT_EQ(second->sets[0].cut.trained, 2);
  EXPECT_EQ(first->sets[0].untrained, second->sets[0].untrained);
  for (std::int64_t index = 0; index < 2; ++index) {
    EXPECT_EQ(sample(*first->training, index).tokens, sample(*second->training, index).tokens);
    EXPECT_EQ(sample(*first->training, index).labels, sample(*second->training, index).labels);
  }
}

TEST_F(TokenCache, IsMadeAnewForWhateverChangesTokens) {
  ASSERT_TRUE(load());
  const auto expect_anew = [&](const char* what) {
    const auto data = load();
    ASSERT_TRUE(data) << what << ": " << to_text(data.error());
    EXPECT_FALSE(data->sets[0].was_cached) << what;
  };

  options.cutoff_tokens = 255;
  expect_anew("cut-off");
  options.train_on_prompt = true;
  expect_anew("prompts");
  options.train_on_prompt = false;
  options.mask_history = true;
  expect_anew("history");
  use_template("default");
  expect_anew("template");
  options.style.system = "Be brief.";
  expect_anew("system text");
  options.tokenizer_key = "another";
  expect_anew("tokenizer");
  options.max_samples = 2;
  expect_anew("max_samples");
  describe(
      R"({"data":{"file_name":"data.jsonl","columns":{"prompt":"instruction","response":"output"}}})");
  expect_anew("columns");
  write("data.jsonl", "{\"instruction\":\"a\",\"output\":\"bd\"}\n");
  expect_anew("content");
  options.make_anew = true;
  expect_anew("overwrite_cache");
}

TEST_F(TokenCache, IsMadeAnewWhenItsFileIsDamaged) {
  ASSERT_TRUE(load());
  ASSERT_THAT(cached(), SizeIs(1));
  const std::filesystem::path file = cached()[0];
  const auto size = std::filesystem::file_size(file);
  for (std::uintmax_t offset :
       {std::uintmax_t{0}, std::uintmax_t{9}, std::uintmax_t{40}, size - 1}) {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(offset));
    bytes.put('\x7f');
    bytes.close();

    const auto data = load();

    ASSERT_TRUE(data) << offset << ": " << to_text(data.error());
    EXPECT_FALSE(data->sets[0].was_cached) << offset;
  }
  std::filesystem::resize_file(file, size - 4);
  EXPECT_FALSE(load()->sets[0].was_cached);
  std::filesystem::resize_file(file, 10);
  EXPECT_FALSE(load()->sets[0].was_cached);
}

TEST_F(TokenCache, RefusesATokenThatWasNeverWritten) {
  ASSERT_TRUE(load());
  {
    std::fstream bytes(cached()[0], std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(65);  // the second byte of the first token
    bytes.put('\x10');
  }
  const auto data = load();
  ASSERT_TRUE(data);
  Sample read;

  const auto result = data->training->read(0, read);

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::bad_file);
  EXPECT_THAT(result.error().what, testing::HasSubstr("the tokens are damaged"));
}

TEST_F(TokenCache, LeavesNothingOfDataThatAreRefused) {
  write("data.jsonl", "{\"instruction\":\"a\",\"output\":\"b\"}\n{\n");

  EXPECT_FALSE(load());

  EXPECT_THAT(cached(), IsEmpty());
}

TEST_F(TokenCache, ClearsAwayWhatAKilledRunLeft) {
  ASSERT_TRUE(load());
  const std::string name = cached()[0].string();
  write_file(name + ".host-1-0.tmp", "half");
  options.make_anew = true;

  ASSERT_TRUE(load());

  EXPECT_THAT(cached(), SizeIs(1));
}

TEST_F(TokenCache, IsMadeOnceByThreadsThatAskTogether) {
  std::vector<std::thread> threads;
  std::atomic<int> made{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      io::FileSystem own;
      const auto data = load_datasets(own, *tokenizer, options);
      if (data && !data->sets[0].was_cached) ++made;
    });
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(made, 1);
  EXPECT_THAT(cached(), SizeIs(1));
}

TEST_F(TokenCache, DoesNotDependOnHowManyThreadsTokenise) {
  std::string lines;
  for (int i = 0; i < 5000; ++i)
    lines += R"({"instruction":")" + std::to_string(i) + R"(","output":")" +
             std::string(static_cast<std::size_t>(i % 50), 'x') + "\"}\n";
  write("data.jsonl", lines);

  const auto one = load();
  options.thread_count = 5;
  options.cache_folder = folder / "other";
  const auto five = load();

  ASSERT_TRUE(one && five);
  ASSERT_EQ(one->training->count(), five->training->count());
  for (std::int64_t index = 0; index < one->training->count(); ++index)
    ASSERT_EQ(sample(*one->training, index).tokens, sample(*five->training, index).tokens);
}

}  // namespace
}  // namespace underkeel::data
