#pragma once
// Compares a tokenizer with what the `tokenizers` library made of the same texts
// (scripts/make_tokenizer_goldens).

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/tokenizer.h"

namespace underkeel::data {

/// Runs every line of FOLDER/cases.jsonl and returns how many there were. Reports at most five
/// differences.
inline int compare_cases(const std::filesystem::path& folder) {
  const auto tokenizer = Tokenizer::load(folder);
  if (!tokenizer) {
    ADD_FAILURE() << to_text(tokenizer.error());
    return 0;
  }
  std::ifstream lines(folder / "cases.jsonl");
  int count = 0;
  int differences = 0;
  for (std::string line; std::getline(lines, line) && differences < 5; ++count) {
    const auto expected = nlohmann::json::parse(line);
    const auto ids = expected["ids"].get<std::vector<std::int32_t>>();
    bool equal = tokenizer->decode(ids) == expected["decoded"].get<std::string>();
    if (expected.contains("text")) {
      const auto encoded = tokenizer->encode(expected["text"].get<std::string>());
      equal = equal && encoded && *encoded == ids;
      if (expected.contains("framed")) {
        const auto framed =
            tokenizer->encode(expected["text"].get<std::string>(), {.add_special_tokens = true});
        equal = equal && framed && *framed == expected["framed"].get<std::vector<std::int32_t>>();
      }
      if (!equal) {
        EXPECT_EQ(encoded.value_or(std::vector<std::int32_t>{-1}), ids) << line;
      }
    } else {
      equal = equal && tokenizer->decode(ids, true) == expected["skipped"].get<std::string>();
    }
    if (!equal) {
      EXPECT_EQ(tokenizer->decode(ids), expected["decoded"].get<std::string>()) << line;
      ++differences;
    }
  }
  EXPECT_EQ(differences, 0) << folder;
  return count;
}

inline std::vector<std::string> styles_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  return names;
}

}  // namespace underkeel::data
