#pragma once
// The decoder of a tokenizer.json: token texts back to one text.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/metaspace.h"
#include "data/tokenizer/regex.h"

namespace underkeel::data {

/// One step of decoding: texts to texts. The last texts joined are the result.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::vector<std::string> decode(std::vector<std::string> texts) const = 0;
};

/// Characters back to bytes (byte_level.h). A token with a character that stands for no byte, such
/// as an added one, is taken as it is; what is not UTF-8 becomes U+FFFD.
std::unique_ptr<Decoder> make_byte_level_decoder();

/// Tokens joined by spaces: what happens when a file names no decoder.
std::unique_ptr<Decoder> make_joining_decoder();

/// Replaces what matches, in every text.
std::unique_ptr<Decoder> make_replace_decoder(Regex regex, std::string content);

/// A run of tokens <0xHH> becomes the text of these bytes, or one U+FFFD a byte when the whole run
/// is not UTF-8.
std::unique_ptr<Decoder> make_byte_fallback_decoder();

/// All texts become one.
std::unique_ptr<Decoder> make_fuse_decoder();

/// Takes up to `left` and `right` times `character` from the ends of every text.
struct StripOptions {
  std::string character;  // one code point
  std::size_t left = 0;
  std::size_t right = 0;
};
std::unique_ptr<Decoder> make_strip_decoder(StripOptions options);

/// The mark becomes a space, or nothing in the first text if a mark may have been put before it.
std::unique_ptr<Decoder> make_metaspace_decoder(MetaspaceOptions options);

/// One after the other.
std::unique_ptr<Decoder> make_decoder_sequence(std::vector<std::unique_ptr<Decoder>> parts);

}  // namespace underkeel::data
