#include "data/tokenizer/decoder.h"

#include "data/tokenizer/byte_level.h"
#include "data/tokenizer/utf8.h"

namespace underkeel::data {
namespace {

class ByteLevel final : public Decoder {
 public:
  std::string decode(const std::vector<std::string_view>& tokens) const override {
    std::string bytes;
    for (const std::string_view token : tokens) {
      if (const auto mapped = characters_to_bytes(token))
        bytes += *mapped;
      else
        bytes += token;
    }
    return repair_utf8(bytes);
  }
};

class Joining final : public Decoder {
 public:
  std::string decode(const std::vector<std::string_view>& tokens) const override {
    std::string text;
    for (const std::string_view token : tokens) {
      if (!text.empty()) text += ' ';
      text += token;
    }
    return text;
  }
};

}  // namespace

std::unique_ptr<Decoder> make_byte_level_decoder() {
  return std::make_unique<ByteLevel>();
}
std::unique_ptr<Decoder> make_joining_decoder() {
  return std::make_unique<Joining>();
}

}  // namespace underkeel::data
