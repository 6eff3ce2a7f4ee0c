#pragma once
// A text of people cut into sentences, and those made plain. Not here: clauses and what denies them (advice_clauses.h).

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace underkeel::doctor {

/// Of a name or number: lower-case letters, digits and `_`.
inline bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

struct Sentence {
  std::string text;          // as it was written, on one line
  int line = 1;              // where it begins, from 1
  bool is_question = false;  // "Do you need ZeRO-3?": claims nothing; "Why not use LoRA?" does
};

/// Sentences, list items and lines of a text. A line of prose that was broken for its length goes on in the next one.
std::vector<Sentence> sentences_of(std::string_view text);

/// Whether a sentence has something to judge: not a number of a list, a rule, a lone sign.
bool has_content(std::string_view sentence);

/// Lower case, one kind of blank and of sign, without emphasis and control characters; "z0" to "z3" for every spelling of
/// the stages.
std::string normalised(std::string_view text);

/// A part of a normalised sentence, as positions in it.
struct Stretch {
  std::size_t begin = 0, end = 0;
  bool holds(std::size_t at) const { return begin <= at && at < end; }
};

}  // namespace underkeel::doctor
