#pragma once
// The pre-tokenizer of a tokenizer.json: cuts text into pieces that the model never joins again.

#include <memory>
#include <vector>

#include "base/result.h"
#include "data/tokenizer/pieces.h"
#include "data/tokenizer/regex.h"

namespace underkeel::data {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Cuts every piece further; may also rewrite its text.
  virtual Result<Pieces> split(Pieces pieces) const = 0;
};

/// What becomes of the parts that match.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Cuts at the matches of `regex`; with `invert`, at what lies between them.
std::unique_ptr<PreTokenizer> make_split(Regex regex, SplitBehavior behavior, bool invert);

struct ByteLevelOptions {
  bool add_prefix_space = true;
  bool use_regex = true;  // GPT-2's expression
};
/// Cuts by GPT-2's expression if asked, then writes bytes as characters (byte_level.h).
Result<std::unique_ptr<PreTokenizer>> make_byte_level(ByteLevelOptions options);

/// Cuts out numbers, whole or one digit each.
Result<std::unique_ptr<PreTokenizer>> make_digits(bool individual_digits);

std::unique_ptr<PreTokenizer> make_pre_tokenizer_sequence(
    std::vector<std::unique_ptr<PreTokenizer>> parts);

}  // namespace underkeel::data
