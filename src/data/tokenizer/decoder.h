#pragma once
// The decoder of a tokenizer.json: token texts back to one text.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace underkeel::data {

class Decoder {
 public:
  virtual ~Decoder() = default;
  /// The result is well-formed UTF-8; what is not becomes U+FFFD.
  virtual std::string decode(const std::vector<std::string_view>& tokens) const = 0;
};

/// Characters back to bytes (byte_level.h). A token with a character that stands for no byte, such
/// as an added one, is taken as it is.
std::unique_ptr<Decoder> make_byte_level_decoder();

/// Tokens joined by spaces: what happens when a file names no decoder.
std::unique_ptr<Decoder> make_joining_decoder();

}  // namespace underkeel::data
