#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace underkeel {
namespace {

TEST(Printable, HidesWhatSteersATerminal) {
  EXPECT_EQ(printable("a\x1b[31m\n\t\x7f"), "a\\x1b[31m\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31m"),
            "a\\u009b31m");  // an escape in one character
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            "a\\u202eb");  // writes backwards
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, KeepsCharactersOfAnyLanguage) {
  EXPECT_EQ(printable("键 ü 😀"), "键 ü 😀");
}

TEST(Printable, HidesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(printable("a\xe4\xbd"), "a\\xe4\\xbd");         // cut
}

TEST(Printable, CutsLongWordsBetweenCharacters) {
  EXPECT_EQ(printable(std::string(300, 'x')), std::string(200, 'x') + "... (300 bytes)");
  EXPECT_EQ(printable(std::string(199, 'x') + "ü" + std::string(100, 'x')),
            std::string(199, 'x') + "... (301 bytes)");
}

TEST(Printable, KeepsTheLinesOfAMessageWhole) {
  EXPECT_EQ(printable_lines("2 problems\n  a\r\x1b[2J" + std::string(300, 'x')),
            "2 problems\n  a\\x0d\\x1b[2J" + std::string(300, 'x'));
}

TEST(Printable, HoldsForEveryPartOfAnError) {
  const Error error{.what = "key \x1b[31m", .where = "\xff.json", .fix = "rename \r"};

  EXPECT_EQ(to_text(error), "error: key \\x1b[31m\nwhere: \\xff.json\ntry:   rename \\x0d");
}

}  // namespace
}  // namespace underkeel
