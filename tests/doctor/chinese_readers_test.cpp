// Every sentence with which the readers below doctor refuse something, as it stands in their sources: each has Chinese.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doctor/reader_words.h"
#include "support/places.h"
#include "support/text_files.h"

namespace underkeel::doctor {
namespace {

struct Sentence {
  std::string file, text;
};

/// The literals at the front of `code`, joined as the compiler does.
std::string joined_literals(const std::string& code) {
  std::string text;
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (code[at] != '"') continue;
    for (++at; code[at] != '"'; ++at) {
      if (code[at] == '\\') ++at;
      text += code[at];
    }
  }
  return text;
}

/// What stands first in calls that make an error, and in its fields: whole sentences.
std::vector<Sentence> sentences_of(const std::string& folder) {
  static const std::regex call(
      R"re((?:\bfail\(\s*ErrorCode::\w+,|\.what =|\.fix =|\b(?:problem|refuse|wrong|broken)\((?:[^"();]*,)?)\s*)re"
      R"re((?:fmt::format\(\s*)?((?:"(?:[^"\\\n]|\\.)*"\s*)+))re");
  std::vector<Sentence> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::in_source(folder))) {
    if (entry.path().extension() != ".cpp") continue;
    std::string code = test::read_text(entry.path());
    code = std::regex_replace(code, std::regex("(^|\n)\\s*//[^\n]*"), "\n");
    for (std::sregex_iterator it(code.begin(), code.end(), call), end; it != end; ++it)
      found.push_back({entry.path().filename().string(), joined_literals((*it)[1].str())});
  }
  return found;
}

/// A sentence as a user reads it: its holes filled, with words that are none of ours.
std::string filled_in(const std::string& pattern) {
  std::string text = std::regex_replace(pattern, std::regex(R"(\{[^{}]*\})"), "X7");
  text = std::regex_replace(text, std::regex(R"(\{\{)"), "{");
  return std::regex_replace(text, std::regex(R"(\}\})"), "}");
}

// Made of parts, which have Chinese as wholes, or never told by doctor: fault rules of tests, the writing of saves.
const std::set<std::string> parts = {
    "{} {} {}, while {} is {} ({})",
    "{} is out of range: {}",
    "{:.6g} {} a second are fewer than any machine has",
    "not valid JSON: ",
    "not a SentencePiece model: ",
    "u needs four hexadecimal digits",
    "`,` before `{}`",
    "{} does not read this key: its projections {} a bias",
    "unknown word `{}`",
    "`{}` is not a count",
    "a quota needs path=FOLDER and bytes=SIZE",
    "{}: {} bytes needed, {}",
    "this file system cannot swap two names in one step",
    "the file lacks what the index names in it: ",
    "the index does not name all that the files hold: ",
    "the list lacks one of rank, parts",
    "header entry ",
    "{} of {} bytes before the tensor at byte {} of the data",
    "the file {}: {} bytes of tensors expected, {} found",
    "the header does not start with `{`",
    "binary data in JSON",
    "nothing to {} on: {} records with {} tokens make no block of {}",
    "nothing to {} on: none of {} texts has a token to predict",
    "nothing to {} on: none of {} records is usable{}",
    "nothing to {} on: none of {} samples keeps a trained token at cutoff_len {}",
    "data set `{}`: {}",
    "more than 2^32 - 1 records",
    "the file could not be read",
    "{} is not supported yet",
    "{} text{}"};

TEST(ChineseReaders, HaveEverySentenceOfAnErrorInChinese) {
  std::size_t count = 0;
  for (const char* folder : {"src/spec", "src/io", "src/data", "src/base"})
    for (const Sentence& sentence : sentences_of(folder)) {
      if (sentence.text.find(' ') == std::string::npos || parts.count(sentence.text) > 0) continue;
      const std::string english = filled_in(sentence.text);
      EXPECT_NE(in_chinese(english), english) << sentence.file;
      ++count;
    }
  EXPECT_GT(count, 200u);
}

TEST(ChineseReaders, KeepTheNumbersOfSentencesMadeOfParts) {
  for (const auto& [english, chinese] :
       {std::pair{"nothing to train on: none of 3 records is usable",
                  "没有可训练的内容：3 条记录都不可用"},
        std::pair{"nothing to evaluate on: none of 5 texts has a token to predict",
                  "没有可评估的内容：5 段文本都没有可预测的 token"},
        std::pair{"there is no template `lama3`", "没有模板 `lama3`"},
        std::pair{"the nearest that is there: a/b.yaml", "最接近的是：a/b.yaml"},
        std::pair{"look at the path: of its folders out is there",
                  "请检查路径：其中存在的文件夹是 out"},
        std::pair{"x.json: this is not a file", "x.json：这不是文件"},
        std::pair{"nested deeper than 64 levels, which no configuration is",
                  "嵌套超过 64 层，任何配置都不会如此"}})
    EXPECT_EQ(in_chinese(english), chinese);
}

}  // namespace
}  // namespace underkeel::doctor
