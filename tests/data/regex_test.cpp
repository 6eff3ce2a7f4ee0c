#include "data/tokenizer/regex.h"

#include <gmock/gmock.h>

namespace underkeel::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern);
  EXPECT_TRUE(regex) << to_text(regex.error());
  std::vector<std::string> found;
  const auto done = regex->for_each_match(text, [&](Match match) {
    found.emplace_back(text.substr(match.begin, match.end - match.begin));
  });
  EXPECT_TRUE(done);
  return found;
}

TEST(Regex, CountsAsWhiteSpaceWhatUnicodeDoes) {
  EXPECT_THAT(matches(R"(\s+)", "a\u0085\u00a0\u3000b\u180ec\u200bd\x1c"),
              ElementsAre("\u0085\u00a0\u3000"));
  EXPECT_THAT(matches(R"([^\S\n]+)", "a \t\nb\u180e"), ElementsAre(" \t"));
}

TEST(Regex, KnowsLettersAndDigitsOfUnicode16) {
  EXPECT_THAT(matches(R"(\p{L}+)", "\U00010D4A\U00010D50 \U0001E5D0"),
              ElementsAre("\U00010D4A\U00010D50", "\U0001E5D0"));
  EXPECT_THAT(matches(R"([^\p{L}]+)", "a\U00010D4A!"), ElementsAre("!"));
  EXPECT_THAT(matches(R"(\p{N})", "\U0001CCF0\u00bd"), ElementsAre("\U0001CCF0", "\u00bd"));
}

TEST(Regex, FoldsCaseLikeUnicode) {
  EXPECT_THAT(matches("(?i:'s)", "'s 'S '\u017f \u2019s"), ElementsAre("'s", "'S", "'\u017f"));
}

TEST(Regex, KeepsAHyphenAfterAPropertyLiteral) {
  EXPECT_THAT(matches(R"([\p{L}-x]+)", "a-b.w"), ElementsAre("a-b", "w"));
}

TEST(Regex, SkipsAnEmptyMatchRightAfterAnother) {
  EXPECT_THAT(matches("x*", "xxa"), ElementsAre("xx", ""));
}

TEST(Regex, RefusesWhatTheTwoLanguagesReadDifferently) {
  for (const char* pattern :
       {R"(\h)", R"(\bx)", R"([a[bc]])", R"([\w&&\d])", R"(a{2}+)", R"(a{,3})", R"((?m:.))",
        R"(x(?i)y)", R"((a)\1)", R"([[:alpha:]])", R"(\p{Greek})", R"([\P{L}a])", R"((?<n>a))",
        R"([]a])", R"([a)", "\\", R"(\p{)", R"(\x{})", R"(\xE9)"}) {
    const auto regex = Regex::compile(pattern);

    ASSERT_FALSE(regex) << pattern;
    EXPECT_EQ(regex.error().code, ErrorCode::unsupported) << pattern;
    EXPECT_THAT(regex.error().where, HasSubstr("byte ")) << pattern;
  }
}

TEST(Regex, GivesUpOnCatastrophicBacktracking) {
  const auto regex = Regex::compile("(?:a+)+[bc]");
  const std::string text(64, 'a');

  const auto done = regex->for_each_match(text, [](Match) {});

  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().where, HasSubstr("(?:a+)+[bc]"));
}

}  // namespace
}  // namespace underkeel::data
