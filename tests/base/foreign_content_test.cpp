#include "base/foreign_content.h"

#include <gtest/gtest.h>

namespace underkeel {
namespace {

using namespace std::string_view_literals;

std::string what_of(std::string_view start) {
  const auto found = foreign_content_of(start);
  return found ? found->what : "nothing";
}
std::string fix_of(std::string_view start) {
  const auto found = foreign_content_of(start);
  return found ? found->fix : "nothing";
}

TEST(ForeignContent, IsKnownByItsFirstBytes) {
  EXPECT_EQ(what_of("\xFF\xFE[\0"sv), "UTF-16 text");
  EXPECT_EQ(what_of("\xFE\xFF\0["sv), "UTF-16 text");
  EXPECT_EQ(what_of("\xFF\xFE\0\0[\0\0\0"sv), "UTF-32 text");
  EXPECT_EQ(what_of("\0\0\xFE\xFF\0\0\0["sv), "UTF-32 text");
  EXPECT_EQ(what_of("{\0\"\0"sv), "UTF-16 text without a byte-order mark");
  EXPECT_EQ(fix_of("{\0\"\0"sv), "iconv -f UTF-16LE -t UTF-8 makes it UTF-8");
  EXPECT_EQ(fix_of("\0{\0\""sv), "iconv -f UTF-16BE -t UTF-8 makes it UTF-8");
  EXPECT_EQ(fix_of("{\0\0\0"sv), "iconv -f UTF-32LE -t UTF-8 makes it UTF-8");
  EXPECT_EQ(fix_of("\0\0\0{"sv), "iconv -f UTF-32BE -t UTF-8 makes it UTF-8");
  EXPECT_EQ(fix_of("\xFF\xFE{\0"sv), "iconv -f UTF-16 -t UTF-8 makes it UTF-8");
  EXPECT_EQ(what_of("\xEF\xBB\xBF\n <!DOCTYPE HTML>\n"), "a web page (HTML)");
  EXPECT_EQ(what_of("<html lang=\"en\">"), "a web page (HTML)");
}

TEST(ForeignContent, OfAPointerNamesTheSizeOfTheFile) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4976698672\n";

  EXPECT_EQ(what_of(pointer),
            "a Git LFS pointer, not the file itself, which has 4,976,698,672 bytes");
  EXPECT_EQ(what_of("version https://git-lfs.github.com/spec/v1\nsize 99999999999999999999\n"),
            "a Git LFS pointer, not the file itself");
  EXPECT_TRUE(stand_in_of(pointer));
}

TEST(ForeignContent, IsNotSeenInOrdinaryFiles) {
  for (const std::string_view start :
       {""sv, "{"sv, "{}"sv, "{\"a\": 1}"sv, "[1]"sv, "version https://example.org"sv, "<s>"sv,
        "<|im_start|>"sv, "\xE4\xBD\xA0\xE5\xA5\xBD"sv, "PAR1"sv, "\0"sv, "\0\0\0\0\0"sv})
    EXPECT_EQ(what_of(start), "nothing") << start;
  // The length of a safetensors header looks like wide text: only stand-ins are asked for there.
  EXPECT_FALSE(stand_in_of("H\0\0\0\0\0\0\0{\"a\""sv));
}

}  // namespace
}  // namespace underkeel
