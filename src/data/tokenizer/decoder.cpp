#include "data/tokenizer/decoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "data/tokenizer/byte_level.h"
#include "data/tokenizer/utf8.h"

namespace underkeel::data {
namespace {

std::string joined(const std::vector<std::string>& texts, std::string_view between = {}) {
  std::string all;
  for (const std::string& text : texts) {
    if (!all.empty()) all += between;
    all += text;
  }
  return all;
}

class ByteLevel final : public Decoder {
 public:
  std::vector<std::string> decode(std::vector<std::string> texts) const override {
    std::string bytes;
    for (const std::string& text : texts) bytes += characters_to_bytes(text).value_or(text);
    return {repair_utf8(bytes)};
  }
};

class Joining final : public Decoder {
 public:
  std::vector<std::string> decode(std::vector<std::string> texts) const override {
    return {joined(texts, " ")};
  }
};

class Fuse final : public Decoder {
 public:
  std::vector<std::string> decode(std::vector<std::string> texts) const override {
    return {joined(texts)};
  }
};

class Replace final : public Decoder {
 public:
  Replace(Regex regex, std::string content)
      : regex_(std::move(regex)), content_(std::move(content)) {}

  std::vector<std::string> decode(std::vector<std::string> texts) const override {
    // A pattern that gives up on a text leaves it as it is: decoding has no errors.
    for (std::string& text : texts)
      if (auto replaced = regex_.replace(text, content_)) text = std::move(*replaced);
    return texts;
  }

 private:
  Regex regex_;
  std::string content_;
};

// The value of a token <0xHH>. A sign in place of the first digit counts, as in the library.
std::optional<unsigned char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  const int high = token[3] == '+' ? 0 : digit(token[3]);
  const int low = digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<unsigned char>(high * 16 + low);
}

class ByteFallback final : public Decoder {
 public:
  std::vector<std::string> decode(std::vector<std::string> texts) const override {
    std::vector<std::string> decoded;
    std::string run;
    const auto end_run = [&] {
      if (run.empty()) return;
      if (!first_invalid_utf8(run))
        decoded.push_back(run);
      else
        decoded.insert(decoded.end(), run.size(), "\xEF\xBF\xBD");
      run.clear();
    };
    for (std::string& text : texts) {
      if (const auto byte = byte_of(text)) {
        run.push_back(static_cast<char>(*byte));
        continue;
      }
      end_run();
      decoded.push_back(std::move(text));
    }
    end_run();
    return decoded;
  }
};

class Strip final : public Decoder {
 public:
  explicit Strip(StripOptions options) : options_(std::move(options)) {}

  std::vector<std::string> decode(std::vector<std::string> texts) const override {
    const std::size_t size = options_.character.size();
    for (std::string& text : texts) {
      std::string_view rest = text;
      for (std::size_t count = 0; count < options_.left; ++count) {
        if (!rest.starts_with(options_.character)) break;
        rest.remove_prefix(size);
      }
      for (std::size_t count = 0; count < options_.right; ++count) {
        if (!rest.ends_with(options_.character)) break;
        rest.remove_suffix(size);
      }
      if (rest.size() != text.size()) text = std::string(rest);
    }
    return texts;
  }

 private:
  StripOptions options_;
};

class Metaspace final : public Decoder {
 public:
  explicit Metaspace(MetaspaceOptions options) : options_(std::move(options)) {}

  std::vector<std::string> decode(std::vector<std::string> texts) const override {
    bool is_first = true;
    for (std::string& text : texts) {
      const bool drops = is_first && options_.prepend != Prepend::never;
      is_first = false;
      std::string replaced;
      for (std::size_t at = 0; at < text.size();) {
        const bool is_mark = text.compare(at, options_.mark.size(), options_.mark) == 0;
        if (is_mark && !drops) replaced += ' ';
        if (!is_mark) replaced += text[at];
        at += is_mark ? options_.mark.size() : 1;
      }
      text = std::move(replaced);
    }
    return texts;
  }

 private:
  MetaspaceOptions options_;
};

class Sequence final : public Decoder {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Decoder>> parts) : parts_(std::move(parts)) {}

  std::vector<std::string> decode(std::vector<std::string> texts) const override {
    for (const auto& part : parts_) texts = part->decode(std::move(texts));
    return texts;
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

}  // namespace

std::unique_ptr<Decoder> make_byte_level_decoder() {
  return std::make_unique<ByteLevel>();
}
std::unique_ptr<Decoder> make_joining_decoder() {
  return std::make_unique<Joining>();
}
std::unique_ptr<Decoder> make_replace_decoder(Regex regex, std::string content) {
  return std::make_unique<Replace>(std::move(regex), std::move(content));
}
std::unique_ptr<Decoder> make_byte_fallback_decoder() {
  return std::make_unique<ByteFallback>();
}
std::unique_ptr<Decoder> make_fuse_decoder() {
  return std::make_unique<Fuse>();
}
std::unique_ptr<Decoder> make_strip_decoder(StripOptions options) {
  return std::make_unique<Strip>(std::move(options));
}
std::unique_ptr<Decoder> make_metaspace_decoder(MetaspaceOptions options) {
  return std::make_unique<Metaspace>(std::move(options));
}
std::unique_ptr<Decoder> make_decoder_sequence(std::vector<std::unique_ptr<Decoder>> parts) {
  return std::make_unique<Sequence>(std::move(parts));
}

}  // namespace underkeel::data
