// Random texts against the `tokenizers` library, made outside:
//   scripts/make_tokenizer_goldens --random 50000 FOLDER
//   UNDERKEEL_TOKENIZER_CASES=FOLDER build/cpu-release/tests/test_data_slow

#include <cstdlib>
#include <iostream>

#include "data/tokenizer_cases.h"

namespace underkeel::data {
namespace {

TEST(TokenizerRandom, GivesTheIdsAndTextsOfTheLibrary) {
  const char* folder = std::getenv("UNDERKEEL_TOKENIZER_CASES");
  if (folder == nullptr) GTEST_SKIP() << "UNDERKEEL_TOKENIZER_CASES names no folder";

  int count = 0;
  for (const std::string& style : styles_in(folder))
    count += compare_cases(std::filesystem::path(folder) / style);

  std::cout << count << " cases compared\n";
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace underkeel::data
