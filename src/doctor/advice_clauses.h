#pragma once
// What in a clause of a sentence says the contrary of its words: "do not", "without", "disable", "不需要".
// Not here: which advice a sentence holds (advice_words.h, advice_rules.cpp).

#include <cstddef>
#include <string_view>
#include <vector>

#include "doctor/advice_text.h"

namespace underkeel::doctor {

/// Words that turn what a clause says.
struct Cue {
  Stretch at;
  bool switches_off =
      false;  // "disable", "remove", "关闭": against a setting, but no denial of a statement
  bool is_value = false;      // "false": of the word that stands just before it
  bool is_of_effect = false;  // "does nothing": the contrary of what a setting is recommended for
  bool is_of_fit = false;     // "放不下": only of what is said to fit
};

/// A part of a sentence that says one thing.
struct Clause {
  Stretch at;
  std::vector<Cue>
      cues;  // none in a condition: who says "if you don't offload" says nothing against offload
};

/// In order; they cover the sentence.
std::vector<Clause> clauses_of(std::string_view normalised_sentence);

/// Which cues count for a piece of advice.
struct Heard {
  bool switches = false;  // it recommends a setting
  bool fit = false;       // it says that something fits
};

/// Whether the cues of `clause` say the contrary of its words; `words` are those that were recognised, and a cue in them is
/// a part of the advice itself. Two cues cancel out.
bool is_denied(const Clause& clause, const std::vector<Stretch>& words, const Heard& heard);

/// Whether `clause` says of the one before it that it is wrong: "这是错的", "that is a myth".
bool rejects(std::string_view normalised_sentence, const Clause& clause);

}  // namespace underkeel::doctor
