#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/units.h"
#include "data/dataset.h"
#include "data/write_file.h"
#include "support/places.h"
#include "support/temporary_folder.h"

namespace underkeel::data {
namespace {

// The most memory that this process has had resident.
std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> word) return std::stoll(word) * kibibyte;
  return 0;
}

TEST(TextDatasets, NeedNoMoreMemoryForALargerFile) {
  const test::TemporaryFolder folder;
  write_file(folder / "dataset_info.json",
             R"({"a":{"file_name":"a.txt","columns":{"prompt":"text"}}})");
  {
    std::ofstream file(folder / "a.txt");
    constexpr const char* words[] = {"The ",  "keel ",  "of ",     "a ",
                                     "ship ", "water ", "depth, ", "12 "};
    for (std::uint64_t word = 0; word < 8'000'000; ++word)
      file << words[random_word(1, 0, word) % 8] << (word % 200 == 199 ? "\n" : "");
  }
  std::ifstream json(test::in_source("tests/data/goldens/tokenizer/gpt2/tokenizer.json"));
  const auto tokenizer = Tokenizer::from_json(std::string(std::istreambuf_iterator<char>(json), {}),
                                              R"({"eos_token":"<|end|>"})");
  ASSERT_TRUE(tokenizer) << to_text(tokenizer.error());
  io::FileSystem files;
  DatasetOptions options;
  options.folder = folder.path();
  options.names = {"a"};
  options.cache_folder = folder / "output";
  options.max_samples = 400;
  ASSERT_TRUE(load_datasets(files, *tokenizer, options));
  const std::int64_t before = peak_resident_bytes();

  options.max_samples.reset();
  const auto data = load_datasets(files, *tokenizer, options);

  ASSERT_TRUE(data) << to_text(data.error());
  const std::int64_t after = peak_resident_bytes();
  RecordProperty("file_bytes", static_cast<int>(std::filesystem::file_size(folder / "a.txt")));
  RecordProperty("growth_bytes", static_cast<int>(after - before));
  // 40,000 documents of 4 bytes each for length, place and order, and the 1 MiB that waits for the disk.
  EXPECT_GT(data->sets[0].cut.tokens * 4, 32 * mebibyte);
  EXPECT_LT(after - before, 6 * mebibyte);
}

}  // namespace
}  // namespace underkeel::data
