#pragma once
// The normalizer of a tokenizer.json: text to text, before it is cut into pieces.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/tokenizer/regex.h"

namespace underkeel::data {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// `text` is well-formed UTF-8, and so is the result.
  virtual Result<std::string> normalize(std::string_view text) const = 0;
};

/// Unicode Normalization Form C with the tables of Unicode 9.0, as in the `tokenizers` library
/// (0.23: every code point compared). Later code points stay as they are.
Result<std::unique_ptr<Normalizer>> make_nfc_normalizer();

/// Puts `prefix` before a text that is not empty.
std::unique_ptr<Normalizer> make_prepend_normalizer(std::string prefix);

/// Replaces what matches by `content` as it is.
std::unique_ptr<Normalizer> make_replace_normalizer(Regex regex, std::string content);

/// Takes white space from the ends.
std::unique_ptr<Normalizer> make_strip_normalizer(bool left, bool right);

/// One after the other.
std::unique_ptr<Normalizer> make_normalizer_sequence(
    std::vector<std::unique_ptr<Normalizer>> parts);

}  // namespace underkeel::data
