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
  bool is_value = false;  // "false": of the word that stands just before it
};

/// A part of a sentence that says one thing.
struct Clause {
  Stretch at;
  std::vector<Cue>
      cues;  // none in a condition: who says "if you don't offload" says nothing against offload
};

/// In order; they cover the sentence.
std::vector<Clause> clauses_of(std::string_view normalised_sentence);

/// Whether the cues of `clause` say the contrary of its words; `words` are those that were recognised, and a cue in them is
/// a part of the advice itself. Two cues cancel out.
bool is_denied(const Clause& clause, const std::vector<Stretch>& words, bool counts_switches);

}  // namespace underkeel::doctor
