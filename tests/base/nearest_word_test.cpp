#include "base/nearest_word.h"

#include <gtest/gtest.h>

namespace underkeel {
namespace {

const std::vector<std::string> known = {"file_name", "formatting", "ranking", "columns"};

TEST(NearestWord, FindsTheSpellingWithFewestEdits) {
  EXPECT_EQ(nearest_word("filename", known), "file_name");
  EXPECT_EQ(nearest_word("colunms", known), "columns");
}

TEST(NearestWord, FindsTheSpellingThatAWordBegins) {
  EXPECT_EQ(nearest_word("format", known), "formatting");
  EXPECT_EQ(nearest_word("columns_map", known), "columns");
}

TEST(NearestWord, IsEmptyWhenNoneIsNear) {
  EXPECT_EQ(nearest_word("tokenizer", known), "");
  EXPECT_EQ(nearest_word("", known), "");
  EXPECT_EQ(nearest_word(std::string(100, 'a'), known), "");
}

}  // namespace
}  // namespace underkeel
