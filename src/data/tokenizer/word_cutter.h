#pragma once
// The words of the three common patterns, found without a regular expression engine.

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <immintrin.h>

#include "base/result.h"
#include "data/tokenizer/utf8.h"

namespace underkeel::data {

enum class WordPattern : std::uint8_t { gpt2, llama3, qwen2 };

/// The pattern as tokenizer.json spells it.
std::string_view text_of(WordPattern pattern);
std::optional<WordPattern> word_pattern_of(std::string_view regex);

/// Cuts like the regular expression does. Every character of a text belongs to a word.
class WordCutter {
 public:
  /// Asks the regular expressions of `\p{L}`, `\p{N}` and `\s` for every code point, once a process.
  static Result<const WordCutter*> get();

  /// Calls `visit` with every word of well-formed `text`, from left to right.
  template <WordPattern pattern, class Visit>
  void cut(std::string_view text, const Visit& visit) const {
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = end_of_word<pattern>(text, begin);
      visit(text.substr(begin, end - begin));
      begin = end;
    }
  }

 private:
  enum Kind : std::uint8_t { other, letter, number, space, newline };  // newline: CR and LF

  struct Character {
    Kind kind = other;
    std::size_t end = 0;  // where the next one begins
  };

  Character at(std::string_view text, std::size_t position) const {
    const auto byte = static_cast<unsigned char>(text[position]);
    if (byte < 0x80) return {kinds_[byte], position + 1};
    return {kinds_[first_code_point(text.substr(position))],
            position + code_point_bytes(text[position])};
  }

  // Where the run of letters that may begin at `position` ends: sixteen at once where they are ASCII.
  std::size_t letters_end(std::string_view text, std::size_t position) const {
    while (position + 16 <= text.size()) {
      const __m128i bytes =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + position));
      // As signed numbers, a to z are the 26 largest after this shift.
      const __m128i shifted =
          _mm_add_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8(0x7F - 'z'));
      const __m128i is_letter = _mm_cmpgt_epi8(shifted, _mm_set1_epi8(0x7F - 26));
      const auto others = static_cast<unsigned>(_mm_movemask_epi8(is_letter)) ^ 0xFFFF;
      if (others == 0) {
        position += 16;
        continue;
      }
      position += static_cast<std::size_t>(std::countr_zero(others));
      if (static_cast<unsigned char>(text[position]) < 0x80) return position;
      break;
    }
    return run_end(text, position, letter);
  }

  // Where the run of `kind` that may begin at `position` ends.
  std::size_t run_end(std::string_view text, std::size_t position, Kind kind) const {
    while (position < text.size()) {
      const Character character = at(text, position);
      if (character.kind != kind) break;
      position = character.end;
    }
    return position;
  }

  // 's 't 're 've 'm 'll 'd at `position`; 0: none.
  template <bool ignores_case>
  static std::size_t contraction_bytes(std::string_view text, std::size_t position) {
    const auto lower = [&](std::size_t index) -> char {
      if (index >= text.size()) return '\0';
      const char c = text[index];
      return ignores_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    };
    const char first = lower(position + 1);
    const char second = lower(position + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if ((first == 'r' || first == 'v') && second == 'e') return 3;
    if (first == 'l' && second == 'l') return 3;
    // U+017F is a lower-case s to whoever ignores case.
    if (ignores_case && text.substr(position + 1).starts_with("\xC5\xBF")) return 3;
    return 0;
  }

  // The alternatives for white space at `begin`.
  template <bool keeps_newlines>
  std::size_t end_of_space(std::string_view text, std::size_t begin) const {
    std::size_t end = begin;
    std::size_t last = begin;           // where the last character begins
    std::size_t after_newline = begin;  // behind the last CR or LF
    while (end < text.size()) {
      const Character character = at(text, end);
      if (character.kind != space && character.kind != newline) break;
      last = end;
      end = character.end;
      if (character.kind == newline) after_newline = end;
    }
    if (keeps_newlines && after_newline > begin) return after_newline;
    // The last one is left to the next word, unless it is alone or ends the text.
    return end == text.size() || last == begin ? end : last;
  }

  template <WordPattern pattern>
  std::size_t end_of_word(std::string_view text, std::size_t begin) const {
    constexpr bool is_gpt2 = pattern == WordPattern::gpt2;
    const Character first = at(text, begin);
    if (first.kind == letter) return letters_end(text, first.end);
    if (first.kind == number) return end_of_number<pattern>(text, first.end);
    if (text[begin] == '\'')
      if (const std::size_t size_bytes = contraction_bytes<!is_gpt2>(text, begin))
        return begin + size_bytes;
    const Character second =
        first.end < text.size() ? at(text, first.end) : Character{newline, first.end};
    const bool is_blank = text[begin] == ' ';
    if (second.kind == letter && (is_gpt2 ? is_blank : first.kind != newline))
      return letters_end(text, second.end);
    if (is_gpt2 && is_blank && second.kind == number) return run_end(text, second.end, number);
    if (first.kind == other || (is_blank && second.kind == other)) {
      const std::size_t end = run_end(text, first.end, other);
      return is_gpt2 ? end : run_end(text, end, newline);
    }
    return end_of_space<!is_gpt2>(text, begin);
  }

  template <WordPattern pattern>
  std::size_t end_of_number(std::string_view text, std::size_t end) const {
    if (pattern == WordPattern::gpt2) return run_end(text, end, number);
    constexpr int most_digits = pattern == WordPattern::llama3 ? 3 : 1;
    for (int count = 1; count < most_digits && end < text.size(); ++count) {
      const Character next = at(text, end);
      if (next.kind != number) break;
      end = next.end;
    }
    return end;
  }

  std::vector<Kind> kinds_;  // by code point
};

}  // namespace underkeel::data
