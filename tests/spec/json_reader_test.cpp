#include "spec/json_reader.h"

#include <string>

#include <gtest/gtest.h>

#include "spec/yaml_reader.h"

namespace underkeel::spec {
namespace {

std::string error_of(std::string_view text, JsonDialect dialect = JsonDialect::strict) {
  const auto document = read_json(text, "f.json", dialect);
  return document ? "accepted" : document.error().what + " @ " + document.error().where;
}

TEST(JsonReader, KeepsKindsTextAndPlaces) {
  const auto document =
      read_json("{\"a\": [1, -2.5e3, \"x\\u00e9\\n\"],\n  \"b\": {\"c\": true, \"d\": null}}",
                "f.json", JsonDialect::strict);

  ASSERT_TRUE(document.has_value());
  const Value& root = document->root;
  const Value* a = root.find("a");
  EXPECT_EQ(a->items[1].text, "-2.5e3");
  EXPECT_EQ(to_double(a->items[1]), -2500.0);
  EXPECT_EQ(a->items[2].text, "x\xC3\xA9\n");
  EXPECT_TRUE(root.find("b")->find("c")->boolean);
  EXPECT_EQ(root.entries[1].key_place.line, 2);
  EXPECT_EQ(root.entries[1].key_place.column, 3);
  EXPECT_EQ(root.find("b")->place.begin, 39u);
}

TEST(JsonReader, JoinsSurrogatePairs) {
  const auto document = read_json(R"("\ud83d\ude00")", "f.json", JsonDialect::strict);

  EXPECT_EQ(document->root.text, "\xF0\x9F\x98\x80");
}

TEST(JsonReader, SkipsAByteOrderMark) {
  EXPECT_EQ(error_of("\xEF\xBB\xBF{}"), "accepted");

  // Python's json, which the Trainer reads with, takes it for an error.
  const auto loose = read_json("\xEF\xBB\xBF{}", "f.json", JsonDialect::relaxed);
  ASSERT_TRUE(loose.has_value());
  ASSERT_EQ(loose->departures.size(), 1u);
  EXPECT_EQ(loose->departures[0], "line 1, column 1: a byte-order mark");
}

TEST(JsonReader, NamesTheLineAndColumnOfWhatIsWrong) {
  EXPECT_EQ(error_of("{\"a\": 1,\n \"a\": 2}"),
            "not valid JSON: key `a` is given twice @ f.json, line 2, column 2");
  EXPECT_EQ(error_of("{\"a\": NaN}"),
            "not valid JSON: NaN and Infinity are no JSON numbers @ f.json, line 1, column 7");
  EXPECT_EQ(error_of("{\"a\": -Infinity}"),
            "not valid JSON: NaN and Infinity are no JSON numbers @ f.json, line 1, column 8");
  EXPECT_EQ(error_of("{\"a\": 1"),
            "not valid JSON: the text ends before `}` @ f.json, line 1, column 8");
  EXPECT_EQ(error_of("{\"a\": 1}x"),
            "not valid JSON: `x` after the end of the document @ f.json, line 1, column 9");
  EXPECT_EQ(error_of("[1,]"), "not valid JSON: `,` before `]` @ f.json, line 1, column 3");
  EXPECT_EQ(error_of("{// hi\n}"),
            "not valid JSON: comments are not allowed @ f.json, line 1, column 2");
}

TEST(JsonReader, RefusesWhatJsonDoesNotHave) {
  for (const char* text : {"",
                           " ",
                           "01",
                           "-",
                           "1.",
                           "1e",
                           "+1",
                           ".5",
                           "tru",
                           "nulls",
                           "'a'",
                           "\"a",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800\\u0041\"",
                           "\"\t\"",
                           "[1 2]",
                           "{\"a\" 1}",
                           "{1: 2}",
                           "{,}",
                           "[,]",
                           "\"\xC0\xAF\"",
                           "\"\xED\xA0\x80\"",
                           "\"\xF5\"",
                           "\"\xE2\x82\"",
                           "{\"a\": 1,, \"b\": 2}",
                           "[",
                           "{"})
    EXPECT_NE(error_of(text), "accepted") << text;
}

TEST(JsonReader, BoundsNestingSoThatAHostileFileCannotExhaustTheStack) {
  EXPECT_EQ(error_of(std::string(64, '[') + std::string(64, ']')), "accepted");
  EXPECT_NE(error_of(std::string(1000000, '[')).find("nested deeper than 64 levels"),
            std::string::npos);
}

TEST(JsonReader, BoundsTheNumberOfValues) {
  std::string text = "[";
  for (int i = 0; i < 99'999; ++i) text += i == 0 ? "0" : ",0";

  EXPECT_TRUE(read_json(text + "]", "a.json", JsonDialect::strict));
  const auto more = read_json(text + ",0]", "a.json", JsonDialect::strict);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::unsupported);
  EXPECT_EQ(more.error().what,
            "the JSON text has more than 100,000 values, which no configuration has");
}

TEST(YamlReader, BoundsTheNumberOfKeysAndValues) {
  std::string text;
  for (int i = 0; i < 5'000; ++i) text += "k" + std::to_string(i) + ": 1\n";

  const auto all = read_yaml(text, "a.yaml");

  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().what,
            "not valid YAML: more than 10,000 keys and values, which no configuration has");
}

TEST(YamlReader, NamesTheFirstByteThatIsNoUtf8) {
  const auto read = read_yaml("a: ü\nb: x\xff\n", "a.yaml");

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().what, "not valid YAML: a byte that is not UTF-8");
  EXPECT_EQ(read.error().where, "a.yaml, line 2, column 5");
}

TEST(YamlReader, HidesWhatSteersATerminalInKeysThatItNames) {
  const auto read = read_yaml("\"a\\e[31m\": 1\n\"a\\e[31m\": 2\n", "a.yaml");

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().what, "not valid YAML: key `a\\x1b[31m` is given twice");
}

TEST(JsonReader, ToleratesCommentsTrailingCommasAndBareKeysWhenRelaxed) {
  const auto document = read_json("# top\n{a: 1, // one\n \"b\": [2,], /* two\n */ \"c\": 3,}",
                                  "ds.json", JsonDialect::relaxed);

  ASSERT_TRUE(document.has_value()) << document.error().what;
  EXPECT_EQ(document->root.entries.size(), 3u);
  EXPECT_EQ(document->departures,
            (std::vector<std::string>{
                "line 1, column 1: a comment", "line 2, column 2: a key without quotes",
                "line 2, column 8: a comment", "line 3, column 9: a comma before `]`",
                "line 3, column 13: a comment", "line 4, column 11: a comma before `}`"}));
}

TEST(JsonReader, RefusesEvenWhenRelaxedWhatHasNoMeaning) {
  EXPECT_EQ(error_of("{/* x", JsonDialect::relaxed),
            "not valid JSON: the comment is not closed @ f.json, line 1, column 2");
  EXPECT_EQ(error_of("{a: 1, a: 2}", JsonDialect::relaxed),
            "not valid JSON: key `a` is given twice @ f.json, line 1, column 8");
  EXPECT_EQ(error_of("{a: b}", JsonDialect::relaxed),
            "not valid JSON: `b` where a value is due @ f.json, line 1, column 5");
}

TEST(Numbers, AreWholeWhenTheyHaveNoFractionHoweverWritten) {
  EXPECT_EQ(parse_integer("5e8"), 500'000'000);
  EXPECT_EQ(parse_integer("4096.0"), 4096);
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_integer("-3"), -3);
  for (const char* text : {"1.5", "9223372036854775808", "1e300", "nan", "inf", "", "8x", "+-1"})
    EXPECT_FALSE(parse_integer(text).has_value()) << text;
}

TEST(Numbers, ThatAreTooSmallAreZeroAndThatAreTooLargeAreNone) {
  EXPECT_EQ(parse_double("1e-400"), 0.0);
  EXPECT_FALSE(parse_double("1e400").has_value());
  EXPECT_EQ(parse_double("1e-4"), 1e-4);
}

TEST(JsonReader, LetsTheLastOfARepeatedKeyHoldWhereItIsAsked) {
  const auto read =
      read_json("{\"a\": 1,\n\"b\": 2, \"a\": 3,}", "f.json", JsonDialect::last_holds);

  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->root.entries.size(), 2u);
  EXPECT_EQ(read->root.find("a")->text, "3");
  ASSERT_EQ(read->repeated.size(), 1u);
  EXPECT_EQ(read->repeated[0].key, "a");
  EXPECT_EQ(read->repeated[0].place.line, 2);
  EXPECT_EQ(read->departures.size(), 1u);  // the comma
}

}  // namespace
}  // namespace underkeel::spec
