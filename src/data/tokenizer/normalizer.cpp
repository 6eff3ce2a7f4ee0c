#include "data/tokenizer/normalizer.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>

#include "data/tokenizer/utf8.h"

namespace underkeel::data {
namespace {

// ICU's NFC held to the code points of Unicode 9.
struct FilteredNfc {
  UErrorCode status = U_ZERO_ERROR;
  icu::UnicodeSet known{icu::UnicodeString::fromUTF8("[:age=9.0:]"), status};
  const icu::Normalizer2* full = icu::Normalizer2::getNFCInstance(status);
  std::optional<icu::FilteredNormalizer2> filtered;

  FilteredNfc() {
    known.freeze();
    if (U_SUCCESS(status)) filtered.emplace(*full, known);
  }
};

// Made once: the set takes milliseconds.
const FilteredNfc& filtered_nfc() {
  static const FilteredNfc made;
  return made;
}

class Nfc final : public Normalizer {
 public:
  Result<std::string> normalize(std::string_view text) const override {
    // Below U+0300, that is below the lead byte CC, nothing composes or moves.
    if (std::all_of(text.begin(), text.end(),
                    [](char c) { return static_cast<unsigned char>(c) < 0xCC; }))
      return std::string(text);
    std::string result;
    icu::StringByteSink<std::string> sink(&result, static_cast<std::int32_t>(text.size()));
    UErrorCode status = U_ZERO_ERROR;
    filtered_nfc().filtered->normalizeUTF8(
        0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())), sink, nullptr,
        status);
    if (U_FAILURE(status))
      return fail(ErrorCode::bad_file, fmt::format("NFC normalization: {}", u_errorName(status)),
                  fmt::format("text of {} bytes", text.size()));
    return result;
  }
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}

  Result<std::string> normalize(std::string_view text) const override {
    return text.empty() ? std::string() : prefix_ + std::string(text);
  }

 private:
  std::string prefix_;
};

class Replace final : public Normalizer {
 public:
  Replace(Regex regex, std::string content)
      : regex_(std::move(regex)), content_(std::move(content)) {}

  Result<std::string> normalize(std::string_view text) const override {
    return regex_.replace(text, content_);
  }

 private:
  Regex regex_;
  std::string content_;
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  Result<std::string> normalize(std::string_view text) const override {
    if (left_) text.remove_prefix(white_space_at_start(text));
    if (right_) text.remove_suffix(white_space_at_end(text));
    return std::string(text);
  }

 private:
  bool left_;
  bool right_;
};

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}

  Result<std::string> normalize(std::string_view text) const override {
    std::string result(text);
    for (const auto& part : parts_) {
      UK_TRY(next, part->normalize(result));
      result = std::move(next);
    }
    return result;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> make_nfc_normalizer() {
  if (U_FAILURE(filtered_nfc().status))
    return fail(ErrorCode::unsupported,
                fmt::format("ICU has no NFC: {}", u_errorName(filtered_nfc().status)));
  return std::make_unique<Nfc>();
}

std::unique_ptr<Normalizer> make_prepend_normalizer(std::string prefix) {
  return std::make_unique<Prepend>(std::move(prefix));
}
std::unique_ptr<Normalizer> make_replace_normalizer(Regex regex, std::string content) {
  return std::make_unique<Replace>(std::move(regex), std::move(content));
}
std::unique_ptr<Normalizer> make_strip_normalizer(bool left, bool right) {
  return std::make_unique<Strip>(left, right);
}

std::unique_ptr<Normalizer> make_normalizer_sequence(
    std::vector<std::unique_ptr<Normalizer>> parts) {
  return std::make_unique<Sequence>(std::move(parts));
}

}  // namespace underkeel::data
