#pragma once
// Which of many patterns of words a sentence has: every word of all patterns is sought in one pass.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "doctor/advice_text.h"

namespace underkeel::doctor {

/// A pattern has groups cut at `&`, each of alternatives cut at `|`; `!` before a group forbids it. `~` at an end of an
/// alternative: no letter, digit or `_` beyond it. Lower case, as normalised() makes it.
class AdviceWords {
 public:
  /// The patterns' texts must outlive this. An empty pattern matches nothing.
  explicit AdviceWords(const std::vector<std::string_view>& patterns);

  /// Takes a normalised sentence in, for the questions below.
  void read(std::string_view sentence);
  bool has(std::size_t pattern) const;
  /// Where the words of each wanted group of `pattern` stand, group by group.
  std::vector<std::vector<Stretch>> places(std::size_t pattern) const;

 private:
  struct Word {
    std::string_view text;
    bool begins = false, ends = false;  // whole at that end
  };
  struct Group {
    std::vector<std::uint32_t> words;
    bool is_forbidden = false;
  };
  struct Hit {
    std::uint32_t word;
    Stretch at;
  };
  std::uint32_t index_of(std::string_view written);
  bool has_group(const Group& group) const;

  std::vector<Word> words_;
  std::vector<std::string_view> written_;
  std::vector<std::vector<Group>> patterns_;
  std::array<std::vector<std::uint32_t>, 256> of_one_byte_;
  std::vector<std::vector<std::uint32_t>> of_two_bytes_;
  std::vector<std::uint16_t> bucket_;   // of two bytes
  std::vector<std::uint32_t> seen_in_;  // the number of the last sentence that had the word
  std::uint32_t sentence_ = 0;
  std::vector<Hit> hits_;
};

}  // namespace underkeel::doctor
