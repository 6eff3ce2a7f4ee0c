#pragma once
// English that is left in what doctor says in Chinese.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "doctor/doctor.h"
#include "doctor/key_tables.h"
#include "doctor/reader_words.h"

namespace underkeel::doctor {

/// Words of small letters that stand by themselves: what is in backticks or quotes is code, and what touches a digit, a
/// capital or a sign of names (`_`, `.`, `/`, ...) is a part of a key, a path, a unit.
inline std::vector<std::string> plain_words(std::string_view text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto joins = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./=-:@<>|^\\*[]{}'").find(c) != std::string_view::npos;
  };
  std::vector<std::string> words;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '`' || c == '"') {
      const std::size_t end = text.find(c, i + 1);
      i = end == std::string_view::npos ? i + 1 : end + 1;
      continue;
    }
    std::size_t end = i;
    bool is_plain = true;
    while (end < text.size() && (is_letter(text[end]) || joins(text[end])))
      is_plain = is_letter(text[end++]) && is_plain;
    if (end == i) ++end;
    if (is_plain && end - i >= 2 && is_letter(text[i])) words.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return words;
}

/// What the tables of Chinese sentences have themselves: stage, rank, token and the like.
inline const std::set<std::string>& words_of_the_trade() {
  static const std::set<std::string> words = [] {
    std::set<std::string> all = {"gzip", "zstd"};  // formats, filled in by name
    const auto add = [&](std::string_view text) {
      for (std::string& word : plain_words(text)) all.insert(std::move(word));
    };
    for (const SectionTable& table : section_tables())  // keys: timers, wandb
      for (const KeyRule& rule : table.keys) all.emplace(rule.key);
    for (const auto& table : all_wordings())
      for (const Wording& wording : table) {
        add(wording.message.chinese);
        add(wording.fix.chinese);
      }
    for (const auto table : all_phrases())
      for (const Phrase& each : table) add(each.text.chinese);
    for (const auto& table : reader_sentences())
      for (const Text& sentence : table) add(sentence.chinese);
    return all;
  }();
  return words;
}

/// English words in the Chinese message and fix of a finding. A value of the files, one word long, is none, nor are names.
inline std::vector<std::string> english_in(const Finding& finding) {
  std::set<std::string> values = {finding.file, finding.key};
  for (const Slot& slot : finding.slots)
    if (slot.text.find(' ') == std::string::npos) values.insert(slot.text);
  std::vector<std::string> found;
  for (const std::string& text :
       {message_of(finding, Language::chinese), fix_of(finding, Language::chinese)})
    for (const std::string& word : plain_words(text))
      if (words_of_the_trade().count(word) == 0 && values.count(word) == 0) found.push_back(word);
  return found;
}

inline void expect_chinese(const Diagnosis& diagnosis) {
  for (const Finding& finding : diagnosis.findings) {
    const auto words = english_in(finding);
    EXPECT_TRUE(words.empty()) << finding.id << " has `" << words.front()
                               << "` in Chinese: " << message_of(finding, Language::chinese)
                               << " | " << fix_of(finding, Language::chinese);
  }
}

}  // namespace underkeel::doctor
