// Translates a pattern from Oniguruma's Ruby syntax with Unicode 16 to PCRE2 with Unicode 14.
// What both understand alike passes through; \s, \d, \w, \v, \u and properties are rewritten; what
// only one of them understands is refused. Every code point was compared with the `tokenizers`
// library; the one that differs is U+1171E, which left Mn for Mc and is in both here.

#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "data/tokenizer/regex.h"
#include "data/tokenizer/utf8.h"

namespace underkeel::data {
namespace {

struct Addition {
  std::uint32_t first;
  std::uint32_t last;
  const char* category;
};

constexpr Addition additions[] = {
#include "data/tokenizer/unicode_additions.inc"
};

constexpr std::string_view white_space =
    R"(\t-\r\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// What Oniguruma's \w holds beyond letters, marks, decimal and letter numbers and connectors.
constexpr std::string_view other_word_characters =
    R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

// The items of a class for general category `name` (one or two letters).
std::string category_items(std::string_view name) {
  std::string items;
  // The ASCII part first: PCRE2 looks it up in a bitmap.
  if (name == "L") items = "A-Za-z";
  if (name == "N") items = "0-9";
  items += fmt::format(R"(\p{{{}}})", name);
  for (const Addition& addition : additions)
    if (std::string_view(addition.category).substr(0, name.size()) == name)
      items += fmt::format(R"(\x{{{:X}}}-\x{{{:X}}})", addition.first, addition.last);
  return items;
}

std::string word_items() {
  std::string items = "A-Za-z0-9_";
  for (const std::string_view name : {"L", "M", "Nd", "Nl", "Pc"}) items += category_items(name);
  return items.append(other_word_characters);
}

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        UK_TRY(escape, read_escape());
        out_ +=
            escape.items.empty() ? escape.text : (escape.negated ? "[^" : "[") + escape.items + "]";
      } else if (c == '[') {
        UK_TRY_VOID(read_class());
      } else if (c == '(') {
        UK_TRY_VOID(read_group());
      } else if (c == '{') {
        UK_TRY_VOID(read_interval());
      } else {
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  // One escape: either `text` that stands for a single thing, or the items of a class.
  struct Escape {
    std::string text;
    std::string items;
    bool negated = false;
  };

  bool starts_with(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

  tl::unexpected<Error> refuse(std::string_view construct, std::size_t offset) const {
    return fail(ErrorCode::unsupported,
                fmt::format("regular expression: `{}` is not supported yet", construct),
                fmt::format("byte {} of `{}`", offset, pattern_));
  }

  Result<Escape> read_escape() {
    const std::size_t begin = at_++;
    if (at_ == pattern_.size()) return refuse("\\", begin);
    const char c = pattern_[at_++];
    switch (c) {
      case 's':
      case 'S':
        return Escape{.items = std::string(white_space), .negated = c == 'S'};
      case 'd':
      case 'D':
        return Escape{.items = category_items("Nd"), .negated = c == 'D'};
      case 'w':
      case 'W':
        return Escape{.items = word_items(), .negated = c == 'W'};
      case 'p':
      case 'P':
        return read_property(begin, c == 'P');
      case 'v':
        return Escape{.text = R"(\x{0B})"};
      case 'r':
      case 'n':
      case 't':
      case 'f':
        return Escape{.text = {'\\', c}};
      case 'x':
      case 'u':
        return read_code(begin, c);
      default:
        break;
    }
    if (is_letter_or_digit(c)) return refuse(pattern_.substr(begin, 2), begin);
    --at_;
    Escape escape{.text = "\\"};
    // A letter beyond ASCII needs no backslash.
    if (static_cast<unsigned char>(c) >= 0x80) escape.text.clear();
    const std::size_t length = code_point_bytes(c);
    escape.text += pattern_.substr(at_, length);
    at_ += length;
    return escape;
  }

  Result<Escape> read_property(std::size_t begin, bool negated) {
    const std::size_t close = pattern_.find('}', at_);
    if (!starts_with("{") || close == std::string_view::npos)
      return refuse(pattern_.substr(begin, 2), begin);
    std::string_view name = pattern_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    static constexpr std::array<std::string_view, 35> known = {
        "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N", "Nd",
        "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm",
        "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cs"};
    for (const std::string_view category : known)
      if (category == name) return Escape{.items = category_items(name), .negated = negated};
    return refuse(pattern_.substr(begin, at_ - begin), begin);
  }

  // \xHH, \x{H...} and \uHHHH.
  Result<Escape> read_code(std::size_t begin, char kind) {
    std::string digits;
    if (kind == 'x' && starts_with("{")) {
      const std::size_t close = pattern_.find('}', at_);
      if (close == std::string_view::npos) return refuse("\\x{", begin);
      digits = std::string(pattern_.substr(at_ + 1, close - at_ - 1));
      at_ = close + 1;
    } else {
      const std::size_t wanted = kind == 'x' ? 2 : 4;
      digits = std::string(pattern_.substr(at_, wanted));
      if (digits.size() != wanted) return refuse(pattern_.substr(begin), begin);
      at_ += wanted;
    }
    const bool hexadecimal =
        !digits.empty() && digits.size() <= 6 &&
        digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    // Above 7F the two-digit form means a raw byte in Oniguruma.
    const bool raw_byte = kind == 'x' && pattern_[at_ - 1] != '}' && digits[0] >= '8';
    if (!hexadecimal || raw_byte) return refuse(pattern_.substr(begin, at_ - begin), begin);
    return Escape{.text = fmt::format(R"(\x{{{}}})", digits)};
  }

  Result<void> read_class() {
    const std::size_t begin = at_++;
    out_ += '[';
    if (starts_with("^")) {
      out_ += '^';
      ++at_;
    }
    if (starts_with("]")) return refuse("[]", begin);
    bool after_items = false;  // a `-` now is a literal, not a range
    while (at_ < pattern_.size() && pattern_[at_] != ']') {
      const std::size_t item_begin = at_;
      const char c = pattern_[at_];
      if (c == '[') return refuse("[ inside a class", item_begin);
      if (starts_with("&&")) return refuse("&&", item_begin);
      if (c == '-') {
        ++at_;
        const bool before_items =
            at_ + 1 < pattern_.size() && pattern_[at_] == '\\' &&
            std::string_view("sSdDwWpP").find(pattern_[at_ + 1]) != std::string_view::npos;
        out_ += after_items || before_items ? "\\-" : "-";
        after_items = false;
        continue;
      }
      if (c != '\\') {
        out_ += c;
        ++at_;
        after_items = false;
        continue;
      }
      UK_TRY(escape, read_escape());
      after_items = !escape.items.empty();
      if (!after_items) {
        out_ += escape.text;
      } else if (!escape.negated) {
        out_ += escape.items;
      } else if (escape.items == white_space) {
        out_ += R"(\S\x{180E})";  // PCRE2 counts U+180E as white space, Unicode does not
      } else {
        return refuse("a negated property inside a class", item_begin);
      }
    }
    if (at_ == pattern_.size()) return refuse("[ without ]", begin);
    out_ += ']';
    ++at_;
    return {};
  }

  Result<void> read_group() {
    const std::size_t begin = at_;
    static constexpr std::array<std::string_view, 8> openings = {"(?:",  "(?=",  "(?!",  "(?>",
                                                                 "(?<=", "(?<!", "(?i:", "(?-i:"};
    for (const std::string_view opening : openings) {
      if (!starts_with(opening)) continue;
      out_ += opening;
      at_ += opening.size();
      return {};
    }
    // At the very start both read (?i) as holding for the whole pattern.
    if (at_ == 0 && starts_with("(?i)")) {
      out_ += "(?i)";
      at_ += 4;
      return {};
    }
    if (starts_with("(?") || starts_with("(*")) return refuse(pattern_.substr(begin, 4), begin);
    out_ += '(';
    ++at_;
    return {};
  }

  // {n}, {n,}, {n,m}: alike in both unless + follows (possessive only in PCRE2).
  Result<void> read_interval() {
    const std::size_t begin = at_;
    const std::size_t close = pattern_.find('}', at_);
    const std::string_view body =
        close == std::string_view::npos ? "" : pattern_.substr(at_ + 1, close - at_ - 1);
    const bool is_interval = !body.empty() && body[0] >= '0' && body[0] <= '9' &&
                             body.find_first_not_of("0123456789,") == std::string_view::npos;
    if (!is_interval) return refuse("{", begin);
    at_ = close + 1;
    if (starts_with("+") || (starts_with("?") && body.find(',') == std::string_view::npos))
      return refuse(pattern_.substr(begin, at_ - begin + 1), begin);
    out_ += pattern_.substr(begin, at_ - begin);
    return {};
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> translate_regex(std::string_view pattern) {
  if (const auto offset = first_invalid_utf8(pattern))
    return fail(ErrorCode::bad_file, "regular expression: not valid UTF-8",
                fmt::format("byte {}", *offset));
  return Translator(pattern).run();
}

std::string escape_regex(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const bool plain = is_letter_or_digit(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
    // Control characters and spaces need no backslash and would become another escape with one.
    if (!plain && c > 0x20 && c != 0x7F) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace underkeel::data
