#include "data/tokenizer.h"

#include <cstring>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>

#include "data/tokenizer_cases.h"
#include "support/places.h"

namespace underkeel::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::filesystem::path tokenizer_goldens = test::in_source("tests/data/goldens/tokenizer");

Tokenizer golden(const char* style) {
  auto tokenizer = Tokenizer::load(tokenizer_goldens / style);
  EXPECT_TRUE(tokenizer) << to_text(tokenizer.error());
  return *tokenizer;
}

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// A tokenizer over a, b, c, ab, bc, abc with the given merges and further JSON.
std::string toy(std::string_view merges, std::string_view model = "", std::string_view rest = "") {
  return R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"bc":4,"abc":5},"merges":)" +
         std::string(merges) + std::string(model) + "}" + std::string(rest) + "}";
}

Error error_of(std::string_view json, std::string_view config = "") {
  const auto tokenizer = Tokenizer::from_json(json, config);
  EXPECT_FALSE(tokenizer);
  return tokenizer ? Error{} : tokenizer.error();
}

class TokenizerGolden : public testing::TestWithParam<std::string> {};

TEST_P(TokenizerGolden, GivesTheIdsAndTextsOfTheLibrary) {
  EXPECT_GT(compare_cases(tokenizer_goldens / GetParam()), 60);
}

INSTANTIATE_TEST_SUITE_P(Styles, TokenizerGolden, testing::ValuesIn(styles_in(tokenizer_goldens)),
                         [](const auto& style) { return style.param; });

TEST(Tokenizer, MergesTheEarliestPairFirst) {
  const auto tokenizer = Tokenizer::from_json(toy(R"([["a","b"],["b","c"]])"), "");

  EXPECT_THAT(*tokenizer->encode("abc"), ElementsAre(3, 2));
}

TEST(Tokenizer, TakesAWholeTokenWhenMergesAreIgnored) {
  const auto tokenizer =
      Tokenizer::from_json(toy(R"([["a","b"],["b","c"]])", R"(,"ignore_merges":true)"), "");

  EXPECT_THAT(*tokenizer->encode("abc"), ElementsAre(5));
}

TEST(Tokenizer, FollowsAMergeThatNeedsAnother) {
  const auto tokenizer = Tokenizer::from_json(toy(R"(["b c","a b","a bc"])"), "");

  EXPECT_THAT(*tokenizer->encode("abc"), ElementsAre(5));
}

TEST(Tokenizer, GivesAPairListedTwiceItsLaterRank) {
  const auto tokenizer = Tokenizer::from_json(toy(R"(["a b","b c","a b"])"), "");

  EXPECT_THAT(*tokenizer->encode("abc"), ElementsAre(0, 4));
}

TEST(Tokenizer, PutsTheTemplateAroundATextOnlyWhenAsked) {
  const Tokenizer tokenizer = golden("llama3");
  const auto begin = tokenizer.id_of("<|begin|>");
  const auto end = tokenizer.id_of("<|end|>");

  const auto plain = *tokenizer.encode("a");
  const auto framed = *tokenizer.encode("a", {.add_special_tokens = true});

  EXPECT_EQ(plain.size(), 1u);
  EXPECT_THAT(framed, ElementsAre(*begin, plain[0], *end));
}

TEST(Tokenizer, ReadsSpecialTokensAsTextWhenAsked) {
  const Tokenizer tokenizer = golden("gpt2");

  const auto found = *tokenizer.encode("<|end|>");
  const auto split = *tokenizer.encode("<|end|>", {.split_special_tokens = true});

  EXPECT_THAT(found, ElementsAre(*tokenizer.id_of("<|end|>")));
  EXPECT_GT(split.size(), 1u);
  EXPECT_EQ(tokenizer.decode(split), "<|end|>");
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8WithItsOffset) {
  const Tokenizer tokenizer = golden("bytes");

  for (const auto& [text, offset] :
       std::vector<std::pair<std::string, std::string>>{{"ab\xFF", "byte 2 of"},
                                                        {"\xED\xA0\x80", "byte 0 of"},
                                                        {"a\xC3", "byte 1 of"},
                                                        {"a\xC0\x80", "byte 1 of"},
                                                        {"\xF4\x90\x80\x80", "byte 0 of"}}) {
    const auto ids = tokenizer.encode(text);

    ASSERT_FALSE(ids);
    EXPECT_THAT(ids.error().where, HasSubstr(offset));
  }
}

TEST(Tokenizer, WithoutMergesGivesEachByteItsId) {
  const Tokenizer tokenizer = golden("bytes");

  EXPECT_THAT(*tokenizer.encode("A \n\xC3\xA9"), ElementsAre(65, 32, 10, 0xC3, 0xA9));
  EXPECT_EQ(tokenizer.vocabulary_size(), 256);
}

TEST(Tokenizer, EncodesOneVeryLongPieceWithoutQuadraticWork) {
  const Tokenizer tokenizer = golden("gpt2");
  const std::string text(400'000, 'a');

  const auto ids = tokenizer.encode(text);

  ASSERT_TRUE(ids);
  EXPECT_EQ(tokenizer.decode(*ids), text);
}

TEST(Tokenizer, TakesSpecialTokensFromTheConfig) {
  const auto tokenizer = Tokenizer::from_json(
      read(tokenizer_goldens / "gpt2/tokenizer.json"),
      R"({"bos_token":null,"eos_token":{"content":"<|end|>"},"pad_token":"<|pad|>","add_bos_token":true})");

  ASSERT_TRUE(tokenizer);
  const SpecialTokens& special = tokenizer->special_tokens();
  EXPECT_FALSE(special.begin);
  EXPECT_EQ(special.end->id, *tokenizer->id_of("<|end|>"));
  EXPECT_TRUE(special.add_begin);
  // The pad token is in no file yet: it becomes the next id, and a note says so.
  EXPECT_EQ(special.padding->id, tokenizer->vocabulary_size() - 1);
  EXPECT_THAT(tokenizer->notes(), ElementsAre(HasSubstr("pad_token `<|pad|>`")));
  EXPECT_THAT(*tokenizer->encode("<|pad|>"), ElementsAre(special.padding->id));
}

TEST(Tokenizer, AddsTokensToACopyOfItself) {
  const Tokenizer plain = golden("gpt2");
  const std::int32_t size = plain.vocabulary_size();

  const auto changed = plain.with({.tokens = {"keelson"},
                                   .special_tokens = {"<|stop|>", "<|end|>"},
                                   .end = "<|eot|>",
                                   .padding = "<|eot|>"});

  ASSERT_TRUE(changed);
  EXPECT_EQ(plain.vocabulary_size(), size);
  EXPECT_EQ(changed->vocabulary_size(), size + 3);
  EXPECT_THAT(*changed->encode("keelson<|eot|><|stop|><|end|>"),
              ElementsAre(size, size + 1, size + 2, *plain.id_of("<|end|>")));
  EXPECT_EQ(changed->special_tokens().end->id, size + 1);
  EXPECT_EQ(changed->special_tokens().padding->text, "<|eot|>");
  EXPECT_TRUE(changed->is_special(size + 1));
  EXPECT_FALSE(changed->is_special(size));
  const std::vector<std::int32_t> ids = {size, size + 1};
  EXPECT_EQ(changed->decode(ids, true), "keelson");
  EXPECT_EQ(plain.with({.tokens = {""}}).error().code, ErrorCode::bad_config);
}

TEST(StreamDecoder, GivesOutCharactersWhenTheirLastByteCame) {
  StreamDecoder stream(golden("bytes"));

  EXPECT_EQ(stream.push('a'), "a");
  EXPECT_EQ(stream.push(0xE6), "");
  EXPECT_EQ(stream.push(0xB0), "");
  EXPECT_EQ(stream.push(0xB4), "\xE6\xB0\xB4");
  EXPECT_EQ(stream.push(0xC3), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.push('b'), "b");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDecoder, DoesNotWaitForeverForBytesThatAreNoCharacter) {
  StreamDecoder stream(golden("bytes"));

  std::string text;
  for (int count = 0; count < 8; ++count) text += stream.push(0xFF);

  EXPECT_FALSE(text.empty());
  text += stream.finish();
  EXPECT_EQ(text.size(), 8 * std::string_view("\xEF\xBF\xBD").size());
}

TEST(Tokenizer, TellsOfAnAddedTokenWithAnotherIdThanItsPlace) {
  const auto tokenizer = Tokenizer::from_json(
      toy("[]", "", R"(,"added_tokens":[{"id":9,"content":"<s>","special":true}])"), "");

  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->id_of("<s>"), 6);
  EXPECT_THAT(tokenizer->notes(),
              testing::Contains(HasSubstr("the id 9, but its place makes it 6")));
}

TEST(Tokenizer, NamesTheComponentThatIsNotSupported) {
  const std::vector<std::pair<std::string, std::string>> unsupported = {
      {R"({"model":{"type":"Unigram","vocab":[["a",-1.0]]}})", "model `Unigram`"},
      {toy("[]", R"(,"dropout":0.1)"), "dropout"},
      {toy("[]", R"(,"end_of_word_suffix":"</w>")"), "end_of_word_suffix"},
      {toy("[]", R"(,"new_option":1)"), "`new_option`"},
      {toy("[]", "", R"(,"normalizer":{"type":"NFKD"})"), "normalizer `NFKD`"},
      {toy("[]", "", R"(,"pre_tokenizer":{"type":"Punctuation"})"), "pre-tokenizer `Punctuation`"},
      {toy("[]", "", R"(,"decoder":{"type":"WordPiece"})"), "decoder `WordPiece`"},
      {toy("[]", "", R"(,"post_processor":{"type":"BertProcessing"})"), "`BertProcessing`"},
  };
  for (const auto& [json, name] : unsupported) {
    const Error error = error_of(json);

    EXPECT_EQ(error.code, ErrorCode::unsupported) << json;
    EXPECT_THAT(error.what, HasSubstr(name));
  }
}

TEST(Tokenizer, NamesWhatIsBroken) {
  const std::vector<std::pair<std::string, std::string>> broken = {
      {"{", "not valid JSON"},
      {"[]", "not a JSON object"},
      {"{}", "no model"},
      {toy(R"([["a","x"]])"), "`x` is not in the vocabulary"},
      {toy(R"(["a b c"])"), "not two texts"},
      {toy(R"([["a"]])"), "not a pair"},
      {toy("[1]"), "neither a pair"},
      {R"({"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}})", "the same id 0"},
      {R"({"model":{"type":"BPE","vocab":{"a":0,"a":1},"merges":[]}})", "there twice"},
      {R"({"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})", "`a` is not a number"},
      {R"({"model":{"type":"BPE","vocab":{"a":99999999},"merges":[]}})", "99999999"},
      {R"({"model":{"type":"BPE","vocab":{"a":{"b":1}},"merges":[]}})", "`a` is not a number"},
      {R"({"model":{"type":"BPE","vocab":[["a",1]],"merges":[]}})", "not a map"},
      {toy("[]", "", R"(,"added_tokens":[{"id":-4,"content":"x"}])"), "`id` is not"},
  };
  for (const auto& [json, what] : broken) {
    const Error error = error_of(json);

    EXPECT_EQ(error.code, ErrorCode::bad_file) << json;
    EXPECT_THAT(error.what, HasSubstr(what)) << json;
  }
}

TEST(Tokenizer, SaysWhatAFolderOffersInsteadOfTokenizerJson) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "underkeel_older_form";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "vocab.json") << "{}";
  std::ofstream(folder / "merges.txt") << "x";

  const auto tokenizer = Tokenizer::load(folder);

  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, ErrorCode::not_found);
  EXPECT_THAT(tokenizer.error().what, HasSubstr("vocab.json and merges.txt"));
  std::filesystem::remove_all(folder);
}

TEST(Tokenizer, TellsWhereAPipelineOfTheFileDiffersFromThatOfItsClass) {
  const auto tokenizer = Tokenizer::from_json(read(tokenizer_goldens / "llama2/tokenizer.json"),
                                              R"({"tokenizer_class":"LlamaTokenizerFast"})");

  EXPECT_THAT(tokenizer->notes(), testing::Contains(HasSubstr("LlamaTokenizerFast")));
}

TEST(Tokenizer, KeepsAnAddedTokenPlainThatOnlyTheMapOfSpecialTokensLists) {
  const Tokenizer tokenizer = golden("older_files");

  EXPECT_FALSE(tokenizer.is_special(*tokenizer.id_of("<x>")));
  EXPECT_FALSE(tokenizer.is_special(*tokenizer.id_of("hello")));
  EXPECT_TRUE(tokenizer.is_special(*tokenizer.id_of("<xy>")));
}

TEST(Tokenizer, GivesALegacyFileAMarkAfterEverySpecialToken) {
  const Tokenizer legacy = golden("llama2");
  const Tokenizer first = golden("llama2_first");
  const std::int32_t marked = *legacy.id_of(
      "\xE2\x96\x81"
      "a");
  const std::int32_t plain = *first.id_of("a");

  EXPECT_THAT(*legacy.encode("<s>a"), ElementsAre(1, marked));
  EXPECT_THAT(*first.encode("<s>a"), ElementsAre(1, plain));
  EXPECT_THAT(*first.encode("a"), ElementsAre(marked));
}

TEST(Tokenizer, StripsBothEndsOfDecodedTokens) {
  const auto tokenizer = Tokenizer::from_json(
      toy("[]", "", R"(,"decoder":{"type":"Strip","content":"a","start":1,"stop":2})"), "");
  const std::vector<std::int32_t> ids = {5, 0, 3};

  EXPECT_EQ(tokenizer->decode(ids), "bcb");
}

TEST(Tokenizer, PutsALaterTemplateAroundAnEarlierOne) {
  const auto one = [](const char* token, int id) {
    return R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":")" +
           std::string(token) + R"("}},{"Sequence":{"id":"A"}}],"special_tokens":{")" + token +
           R"(":{"ids":[)" + std::to_string(id) + "]}}}";
  };
  const auto tokenizer =
      Tokenizer::from_json(toy("[]", "",
                               R"(,"post_processor":{"type":"Sequence","processors":[)" +
                                   one("a", 0) + "," + one("b", 1) + "]}"),
                           "");

  EXPECT_THAT(*tokenizer->encode("c", {.add_special_tokens = true}), ElementsAre(1, 0, 2));
}

TEST(Tokenizer, GivesTheSameIdsWithoutItsWordCacheAndWithThePatternSpeltOtherwise) {
  const std::string json = read(tokenizer_goldens / "qwen2/tokenizer.json");
  // The same pattern in a group is none of those that have a matcher of their own.
  std::string other = json;
  for (const char* spelling : {R"("Regex":"(?i:)", R"("Regex": "(?i:)"}) {
    const std::size_t at = other.find(spelling);
    if (at == std::string::npos) continue;
    const std::size_t pattern = at + std::string_view(spelling).size() - 4;
    other.insert(other.find('"', pattern), ")");
    other.insert(pattern, "(?:");
    break;
  }
  ASSERT_NE(other, json);
  const auto by_matcher = Tokenizer::from_json(json, "");
  const auto by_regex = Tokenizer::from_json(other, "");
  ASSERT_TRUE(by_regex) << to_text(by_regex.error());

  int count = 0;
  std::ifstream lines(tokenizer_goldens / "qwen2/cases.jsonl");
  for (std::string line; std::getline(lines, line); ++count) {
    // The line itself is text as good as any.
    const auto expected = by_regex->encode(line);
    EXPECT_EQ(*by_matcher->encode(line), *expected);
    EXPECT_EQ(*by_matcher->encode(line, {.use_word_cache = false}), *expected);
  }
  EXPECT_GT(count, 130);
}

class SentencePieceFile : public testing::Test {
 protected:
  std::string bytes = read(tokenizer_goldens / "model_always/tokenizer.model");
  Error error() const {
    const auto tokenizer = Tokenizer::from_texts({.sentencepiece = bytes});
    EXPECT_FALSE(tokenizer);
    return tokenizer ? Error{} : tokenizer.error();
  }
};

TEST_F(SentencePieceFile, CutOffAnywhereIsReadOrRefusedWithItsByte) {
  int refused = 0;
  for (std::size_t size = 1; size < bytes.size(); size += 7) {
    const auto tokenizer =
        Tokenizer::from_texts({.sentencepiece = std::string_view(bytes).substr(0, size)});
    if (tokenizer) continue;
    ++refused;
    EXPECT_THAT(tokenizer.error().where, HasSubstr("tokenizer.model")) << size;
  }
  EXPECT_GT(refused, 100);
}

// A model of BPE with these pieces and scores, and no mark put in front.
std::string model_of(const std::vector<std::pair<std::string, float>>& pieces) {
  const auto message = [](char number, const std::string& content) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} +
           content;
  };
  std::string bytes;
  for (const auto& [text, score] : pieces) {
    std::string number(4, '\0');
    std::memcpy(number.data(), &score, 4);
    bytes += message(1, message(1, text) + "\x15" + number);
  }
  return bytes + message(2, "\x18\x02") + message(3, std::string("\x18\x00", 2));
}

TEST_F(SentencePieceFile, MergesByScoreAndNotByTheOrderOfPieces) {
  bytes = model_of({{"ab", -9}, {"bc", -1}, {"a", -2}, {"b", -3}, {"c", -4}});

  const auto tokenizer = Tokenizer::from_texts({.sentencepiece = bytes});

  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->encode("abc").value(), (std::vector<std::int32_t>{2, 1}));
}

TEST_F(SentencePieceFile, WithAScoreThatIsNoNumberIsRefused) {
  bytes = model_of({{"a", -1}, {"b", std::numeric_limits<float>::quiet_NaN()}});

  EXPECT_EQ(error().code, ErrorCode::bad_file);
  EXPECT_THAT(error().what, HasSubstr("score of piece `b`"));
}

TEST_F(SentencePieceFile, WithoutBpeIsRefusedByName) {
  // A piece "a", and a trainer of the type Unigram.
  bytes = std::string(
      "\x0A\x03\x0A\x01"
      "a\x12\x02\x18\x01",
      9);

  EXPECT_EQ(error().code, ErrorCode::unsupported);
  EXPECT_THAT(error().what, HasSubstr("Unigram"));
}

TEST_F(SentencePieceFile, ThatNormalizesIsRefused) {
  bytes = std::string(
      "\x0A\x03\x0A\x01"
      "a\x12\x02\x18\x02\x1A\x04\x12\x02xy",
      15);

  EXPECT_EQ(error().code, ErrorCode::unsupported);
  EXPECT_THAT(error().what, HasSubstr("normalizes"));
}

TEST_F(SentencePieceFile, WithALengthBeyondItsEndIsRefused) {
  bytes = std::string("\x0A\xFF\xFF\xFF\xFF\x0F\x0A", 7);

  EXPECT_EQ(error().code, ErrorCode::bad_file);
  EXPECT_THAT(error().what, HasSubstr("4294967295 bytes announced, 1 left"));
}

}  // namespace
}  // namespace underkeel::data
