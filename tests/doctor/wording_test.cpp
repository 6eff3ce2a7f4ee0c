#include "doctor/wording.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/reader_words.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

std::vector<std::string> slots_in(std::string_view text) {
  std::vector<std::string> slots;
  for (std::size_t open = text.find('{'); open != std::string_view::npos;
       open = text.find('{', open + 1)) {
    const std::size_t close = text.find('}', open);
    EXPECT_NE(close, std::string_view::npos) << text;
    slots.emplace_back(text.substr(open + 1, close - open - 1));
  }
  return slots;
}

/// Slots as a set: a language may name one twice where the other says "it".
std::set<std::string> slot_set(std::string_view text) {
  const auto slots = slots_in(text);
  return {slots.begin(), slots.end()};
}

/// Runs of digits outside slots, sorted: word order differs between languages.
std::vector<std::string> numbers_in(std::string_view text) {
  std::vector<std::string> numbers;
  std::string run;
  bool in_slot = false;
  for (const char c : text) {
    if (c == '{') in_slot = true;
    if (c == '}') in_slot = false;
    const bool is_digit = c >= '0' && c <= '9';
    if (is_digit && !in_slot) run += c;
    if ((!is_digit || in_slot) && !run.empty()) {
      numbers.push_back(run);
      run.clear();
    }
  }
  if (!run.empty()) numbers.push_back(run);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

bool has_chinese(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0xE3;  // the first byte of CJK and its marks
  });
}

void expect_twins(std::string_view id, const Text& text) {
  EXPECT_EQ(slot_set(text.english), slot_set(text.chinese)) << id;
  EXPECT_EQ(numbers_in(text.english), numbers_in(text.chinese)) << id << ": " << text.english;
  EXPECT_EQ(text.english.empty(), text.chinese.empty()) << id;
}

/// The most words of plain small letters, with one blank between, that stand side by side: an English sentence has many,
/// names of files, keys and settings few.
int words_in_a_row(std::string_view text) {
  int most = 0, count = 0;
  std::string word;
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : '.';
    if (is_letter(c)) {
      word += c;
      continue;
    }
    count = word.empty() ? 0 : count + 1;
    most = std::max(most, count);
    if (c != ' ') count = 0;
    word.clear();
  }
  return most;
}

TEST(Wording, HasBothLanguagesWithTheSameSlotsAndNumbers) {
  int count = 0;
  for (const auto& table : all_wordings())
    for (const Wording& wording : table) {
      expect_twins(wording.id, wording.message);
      expect_twins(wording.id, wording.fix);
      EXPECT_FALSE(wording.message.english.empty()) << wording.id;
      const bool has_words = wording.message.english.find(' ') != std::string_view::npos;
      EXPECT_EQ(has_chinese(wording.message.chinese), has_words) << wording.id;
      EXPECT_LE(words_in_a_row(wording.message.chinese), 3) << wording.message.chinese;
      EXPECT_LE(words_in_a_row(wording.fix.chinese), 3) << wording.fix.chinese;
      ++count;
    }
  EXPECT_GT(count, 60);
}

TEST(Wording, HasSentencesOfTheReadersWithTheSameHolesAndNumbers) {
  std::set<std::string_view> seen;
  for (const auto& table : reader_sentences())
    for (const Text& sentence : table) {
      expect_twins(sentence.english, sentence);
      EXPECT_EQ(slots_in(sentence.english).size(), slots_in(sentence.chinese).size())
          << sentence.english;
      EXPECT_TRUE(has_chinese(sentence.chinese)) << sentence.english;
      EXPECT_TRUE(seen.insert(sentence.english).second) << sentence.english;
    }
}

TEST(Wording, PutsSentencesOfTheReadersIntoChinese) {
  EXPECT_EQ(in_chinese("unknown key"), "未知键");
  EXPECT_EQ(in_chinese("1 in ds.json, while learning_rate is 2 (run.yaml)"),
            "1 见于 ds.json，而 learning_rate 为 2（run.yaml）");
  EXPECT_EQ(in_chinese("the nearest is `gradient_clipping`; DeepSpeed passes over unknown keys "
                       "here without a word"),
            "最接近的是 `gradient_clipping`；DeepSpeed 会静默忽略这里的未知键");
  EXPECT_EQ(in_chinese("8 is not honoured: quantised base models are not supported yet"),
            "8 不被支持：量化的基础模型尚不支持");
  EXPECT_EQ(in_chinese("something nobody has put down"), "something nobody has put down");
  // A sentence that is not known makes no half of another one Chinese.
  EXPECT_EQ(in_chinese("write something nobody has put down"),
            "write something nobody has put down");
  EXPECT_EQ(
      in_chinese("write one that describes the data: {\"a\": {\"file_name\": \"b.json\"}}, or "
                 "let dataset_dir name the folder that holds it"),
      "请写一个来描述数据：{\"a\": {\"file_name\": \"b.json\"}}，或让 dataset_dir "
      "指向含有它的文件夹");
  EXPECT_EQ(in_chinese("ds.json: zero_optimization: \"auto\" is read as left out for stage; the "
                       "Trainer fills in nothing there, and accelerate refuses it"),
            "ds.json：zero_optimization：stage 的 \"auto\" 视为没有写；Trainer "
            "不填写此处，accelerate 会拒绝");
  EXPECT_EQ(in_chinese("ds.json: accepted without effect: a, b.c"),
            "ds.json：接受但不起作用：`a`、`b.c`");
  EXPECT_EQ(in_chinese("a file of the checkpoint is missing"), "检查点缺少一个文件");
  EXPECT_EQ(in_chinese("write min or max"), "应写 `min` 或 `max`");
  EXPECT_EQ(in_chinese("supported are no, steps and epoch"), "支持 `no`、`steps` 和 `epoch`");
  EXPECT_EQ(in_chinese("data set `d`: 2 records, 1 usable (0 empty), 0 dropped, 1 broken\n  "
                       "d.json:2: broken, a comma is missing at byte 9, after 1 whole records"),
            "数据集 `d`：2 条记录，1 条可用（0 条为空），0 条丢弃，1 条损坏\n  "
            "d.json:2：损坏，第 9 字节处缺少逗号，此前有 1 条完整记录");
  EXPECT_EQ(in_chinese(""), "");
}

TEST(Wording, LeavesNoSentenceOfAReaderEnglishThatOrdinaryRunsMeet) {
  Files files;
  files.write("model.json", model_json({256, 64, 2, 128, 4, 2, 0, false, true}));
  files.write("ds_config.json", R"({"train_batch_size": 8, "zero_optimization": {"stage": 3,
      "offload_optimizer": {"device": "cpu"}, "stage3_gather_16bit_weights_on_model_save": false},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}},
    "gradient_accumulation_steps": 4, "steps_per_prin": 1, "sparse_gradients": true,
    "optimizer": {"type": "Lamb", "params": {}}})");
  files.write("train.yaml",
              "model_name_or_path: m\nfp16: true\nadd_tokens: <a>,<b>\nuse_galore: true\n"
              "stage: rm\nfinetuning_type: freeze\npacking: maybe\nsave_steps: 0.3\n"
              "lr_scheduler_type: slow\ncutoff_lem: 3\neval_strategy: steps\n"
              "per_device_train_batch_size: 1\nlearning_rate: high\n");
  for (const char* lone : {"ds_config.json", "train.yaml", ""}) {
    Files some;
    some.question.paths = *lone == '\0' ? files.question.paths : std::vector{files.at(lone)};
    const Diagnosis diagnosis = some.diagnose();
    ASSERT_FALSE(diagnosis.findings.empty());
    for (const Finding& finding : diagnosis.findings) {
      const std::string text =
          message_of(finding, Language::chinese) + " | " + fix_of(finding, Language::chinese);
      EXPECT_LE(words_in_a_row(text), 3) << finding.id << ": " << text;
    }
  }
}

TEST(Wording, FindsEnglishThatIsLeftInChinese) {
  const auto left = [](std::string what) {
    return english_in({.id = "underkeel-note", .slots = {{"what", std::move(what)}}});
  };
  EXPECT_EQ(left("unknown key `{nasty words}`").size(), 0u);
  EXPECT_EQ(left("something nobody has put down").size(), 5u);
  EXPECT_EQ(left("out/checkpoint-400 something 12 GB /some/path.json").size(), 1u);
}

TEST(Wording, HasEachIdOnce) {
  std::set<std::string_view> ids;
  for (const auto& table : all_wordings())
    for (const Wording& wording : table) EXPECT_TRUE(ids.insert(wording.id).second) << wording.id;
  std::set<std::string_view> names;
  for (const auto& table : all_phrases())
    for (const Phrase& each : table) {
      EXPECT_TRUE(names.insert(each.id).second) << each.id;
      EXPECT_FALSE(each.text.english.empty()) << each.id;
      EXPECT_FALSE(each.text.chinese.empty()) << each.id;
    }
}

TEST(Wording, FillsSlotsAndPhrasesAndLeavesBracesOfValuesAlone) {
  const Finding finding{
      .id = "key-unknown",
      .slots = {{"key", "{nasty}"}, {"section", "@top-level"}, {"does", "@does.ignores"}}};

  EXPECT_EQ(message_of(finding, Language::english),
            "unknown key `{nasty}` in the top level: DeepSpeed passes over it without a word");
  EXPECT_EQ(message_of(finding, Language::chinese),
            "顶层 中的未知键 `{nasty}`：DeepSpeed 会静默忽略它");
  EXPECT_EQ(fix_of(finding, Language::english), "remove it");
}

/// Words in -s behind a figure that are no nouns of what is counted.
bool is_no_plural(std::string_view word) {
  constexpr std::string_view words[] = {"is",     "was",   "has",    "as",    "needs",
                                        "holds",  "takes", "unless", "gives", "bounds",
                                        "points", "ends",  "keeps",  "names", "stops"};
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

TEST(Wording, CountsOneInTheSingular) {
  for (const auto& table : all_wordings())
    for (const Wording& wording : table) {
      Finding finding{.id = std::string(wording.id)};
      for (const std::string_view text : {wording.message.english, wording.fix.english})
        for (const std::string& slot : slots_in(text)) finding.slots.push_back({slot, "1"});
      for (const std::string& text :
           {message_of(finding, Language::english), fix_of(finding, Language::english)})
        for (std::size_t at = text.find("1 "); at != std::string::npos;
             at = text.find("1 ", at + 1)) {
          const std::string rest = text.substr(at + 2);
          const std::string word =
              rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
          if (at > 0 && std::isdigit(static_cast<unsigned char>(text[at - 1]))) continue;
          EXPECT_FALSE(word.ends_with('s') && !is_no_plural(word))
              << wording.id << " says `1 " << word << "`: " << text;
        }
    }
}

}  // namespace
}  // namespace underkeel::doctor
