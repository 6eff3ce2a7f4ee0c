#pragma once
// Files for doctor in a folder of their own, and a look at what it says of them.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/chinese.h"
#include "doctor/doctor.h"
#include "support/temporary_folder.h"
#include "support/text_files.h"

namespace underkeel::doctor {

class Files {
 public:
  std::filesystem::path write(std::string_view name, std::string_view text) {
    test::write_text(folder_ / name, text);
    question.paths.push_back(folder_ / name);
    return folder_ / name;
  }
  std::filesystem::path at(std::string_view name) const { return folder_ / name; }
  /// Whatever a test asks, the answer is to be Chinese in Chinese.
  Diagnosis diagnose() const {
    Diagnosis diagnosis = doctor::diagnose(question);
    expect_chinese(diagnosis);
    // Whatever the verdict, the summary knows a finding that decides it.
    EXPECT_EQ(to_text(diagnosis, Language::english).find("nothing that was given decides it"),
              std::string::npos)
        << to_text(diagnosis, Language::english);
    return diagnosis;
  }

  Question question;

 private:
  test::TemporaryFolder folder_;
};

/// The findings with this id, and with this key when one is given.
inline std::vector<Finding> found(const Diagnosis& diagnosis, std::string_view id,
                                  std::string_view key = {}) {
  std::vector<Finding> all;
  for (const Finding& finding : diagnosis.findings)
    if (finding.id == id && (key.empty() || finding.key == key)) all.push_back(finding);
  return all;
}

/// "id key | id key": of one engine, for messages of failed tests.
inline std::string ids_of(const Diagnosis& diagnosis, Engine engine) {
  std::string text;
  for (const Finding& finding : diagnosis.findings)
    if (finding.engine == engine)
      text += (text.empty() ? "" : " | ") + finding.id + " " + finding.key + ": " +
              message_of(finding, Language::english);
  return text;
}

/// The English messages of all findings, one a line, fixes behind them.
inline std::string messages(const Diagnosis& diagnosis) {
  std::string text;
  for (const Finding& finding : diagnosis.findings)
    text +=
        message_of(finding, Language::english) + " / " + fix_of(finding, Language::english) + "\n";
  return text;
}

/// The English message and fix of the first finding of this id; all messages if there is none.
inline std::string says(const Diagnosis& diagnosis, std::string_view id) {
  const auto all = found(diagnosis, id);
  if (all.empty()) return "no " + std::string(id) + ": " + messages(diagnosis);
  return message_of(all[0], Language::english) + " / " + fix_of(all[0], Language::english);
}

/// What a blank divides: the words of an alternative, as changes.
inline std::vector<std::string> words_in(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

}  // namespace underkeel::doctor
