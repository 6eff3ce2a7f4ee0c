// A JSON reader that keeps places, refuses a key given twice and bounds its own depth. nlohmann's
// parser has no trailing commas and no places of values, which the messages here need.

#include "spec/json_reader.h"

#include <unordered_set>

#include <fmt/format.h>

#include "base/byte_order_mark.h"
#include "base/printable.h"
#include "base/units.h"

namespace underkeel::spec {
namespace {

constexpr int deepest_nesting = 64;  // recursion stays below a few tens of KiB of stack
constexpr std::size_t longest_text_bytes = std::size_t{16} << 20;
// A tokenizer_config.json with 6,400 tokens has 45,000; nothing that is read here has more.
constexpr std::int64_t most_values = 100'000;
constexpr std::size_t most_departures = 20;

class JsonReader {
 public:
  JsonReader(std::string_view text, std::string_view where, JsonDialect dialect)
      : text_(text),
        where_(where),
        relaxed_(dialect != JsonDialect::strict),
        last_holds_(dialect == JsonDialect::last_holds) {}

  Result<JsonDocument> read() {
    if (text_.size() > longest_text_bytes)
      return fail(ErrorCode::bad_file,
                  fmt::format("the JSON text has {} bytes, more than the {} that are read",
                              text_.size(), longest_text_bytes),
                  where_);
    if (text_.starts_with(byte_order_mark)) {
      at_ = line_start_ = byte_order_mark.size();
      if (relaxed_) depart(here(), "a byte-order mark");
    }
    JsonDocument document;
    UK_TRY_VOID(skip_space());
    UK_TRY(root, value(0));
    document.root = std::move(root);
    UK_TRY_VOID(skip_space());
    if (at_ != text_.size()) return wrong(fmt::format("{} after the end of the document", found()));
    document.departures = std::move(departures_);
    document.repeated = std::move(repeated_);
    return document;
  }

 private:
  std::string place_text(const Place& place) const {
    return fmt::format("{}, line {}, column {}", where_, place.line, place.column);
  }
  tl::unexpected<Error> wrong(std::string what, std::string fix = {}) const {
    return wrong_at(here(), std::move(what), std::move(fix));
  }
  tl::unexpected<Error> wrong_at(const Place& place, std::string what, std::string fix = {}) const {
    return fail(ErrorCode::bad_file, "not valid JSON: " + what, place_text(place), std::move(fix));
  }

  Place here() const {
    return {
        .line = line_, .column = static_cast<int>(at_ - line_start_) + 1, .begin = at_, .end = at_};
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool starts(std::string_view word) const { return text_.substr(at_, word.size()) == word; }
  std::string found() const {
    if (at_ >= text_.size()) return "the text ends";
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte < 0x20 || byte >= 0x7F) return fmt::format("byte 0x{:02X}", byte);
    return fmt::format("`{}`", text_[at_]);
  }
  void next_line() {
    ++line_;
    line_start_ = at_ + 1;
  }
  void depart(const Place& place, std::string_view what) {
    if (departures_.size() == most_departures) departures_.push_back("and more of that kind");
    if (departures_.size() > most_departures) return;
    departures_.push_back(fmt::format("line {}, column {}: {}", place.line, place.column, what));
  }

  Result<void> skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') next_line();
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        ++at_;
        continue;
      }
      if (c == '#' || starts("//")) {
        if (!relaxed_) return wrong("comments are not allowed");
        depart(here(), "a comment");
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
        continue;
      }
      if (starts("/*")) {
        if (!relaxed_) return wrong("comments are not allowed");
        const Place start = here();
        depart(start, "a comment");
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return wrong_at(start, "the comment is not closed");
        for (; at_ < end + 2; ++at_)
          if (text_[at_] == '\n') next_line();
        continue;
      }
      break;
    }
    return {};
  }

  Result<Value> value(int depth) {
    if (depth > deepest_nesting)
      return fail(
          ErrorCode::bad_file,
          fmt::format("nested deeper than {} levels, which no configuration is", deepest_nesting),
          place_text(here()));
    if (++value_count_ > most_values)
      return fail(ErrorCode::unsupported,
                  fmt::format("the JSON text has more than {} values, which no configuration has",
                              format_count(most_values)),
                  where_);
    Value result;
    result.place = here();
    const char c = peek();
    if (c == '{') {
      UK_TRY(entries, mapping(depth));
      result.kind = ValueKind::mapping;
      result.entries = std::move(entries);
    } else if (c == '[') {
      UK_TRY(items, list(depth));
      result.kind = ValueKind::list;
      result.items = std::move(items);
    } else if (c == '"') {
      UK_TRY(content, string());
      result.kind = ValueKind::text;
      result.text = std::move(content);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      UK_TRY(digits, number());
      result.kind = ValueKind::number;
      result.text = std::move(digits);
    } else {
      UK_TRY(word, literal());
      result.kind = word.kind;
      result.boolean = word.boolean;
    }
    result.place.end = at_;
    return result;
  }

  Result<Value> literal() {
    Value result;
    if (starts("true") || starts("false")) {
      result.kind = ValueKind::boolean;
      result.boolean = peek() == 't';
      at_ += result.boolean ? 4 : 5;
    } else if (starts("null")) {
      at_ += 4;
    } else if (starts("NaN") || starts("Infinity")) {
      return wrong("NaN and Infinity are no JSON numbers");
    } else if (at_ >= text_.size()) {
      return wrong("the text ends where a value is due");
    } else {
      return wrong(fmt::format("{} where a value is due", found()));
    }
    const char after = peek();
    if ((after >= 'a' && after <= 'z') || (after >= 'A' && after <= 'Z') || after == '_')
      return wrong(fmt::format("{} where a value ends", found()));
    return result;
  }

  Result<std::string> number() {
    const std::size_t start = at_;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      return at_ > first;
    };
    if (peek() == '-') ++at_;
    if (starts("Infinity")) return wrong("NaN and Infinity are no JSON numbers");
    const bool leading_zero = peek() == '0';
    const std::size_t first_digit = at_;
    if (!digits()) return wrong(fmt::format("{} where a digit is due", found()));
    if (leading_zero && at_ - first_digit > 1) return wrong("a number starts with a spare zero");
    if (peek() == '.') {
      ++at_;
      if (!digits()) return wrong(fmt::format("{} where a digit is due", found()));
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) return wrong(fmt::format("{} where a digit is due", found()));
    }
    return std::string(text_.substr(start, at_ - start));
  }

  Result<std::string> string() {
    const Place start = here();
    ++at_;
    std::string content;
    while (true) {
      if (at_ >= text_.size()) return wrong_at(start, "the text in quotes is not closed");
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte == '"') {
        ++at_;
        return content;
      }
      if (byte == '\\') {
        UK_TRY_VOID(escape(content));
      } else if (byte < 0x20) {
        return wrong(fmt::format("{} inside text in quotes", found()));
      } else if (byte < 0x80) {
        content += text_[at_++];
      } else {
        const std::size_t length = utf8_length(text_.substr(at_, 4));
        if (length == 0) return wrong(fmt::format("{} is not UTF-8", found()));
        content += text_.substr(at_, length);
        at_ += length;
      }
    }
  }

  Result<unsigned> hex4() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      unsigned digit = 0;
      if (c >= '0' && c <= '9')
        digit = static_cast<unsigned>(c - '0');
      else if (c >= 'a' && c <= 'f')
        digit = static_cast<unsigned>(c - 'a') + 10;
      else if (c >= 'A' && c <= 'F')
        digit = static_cast<unsigned>(c - 'A') + 10;
      else
        return wrong("\\u needs four hexadecimal digits");
      code = code * 16 + digit;
    }
    return code;
  }

  Result<void> escape(std::string& content) {
    ++at_;
    const char c = peek();
    constexpr std::string_view letters = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    if (const auto index = letters.find(c); at_ < text_.size() && index != letters.npos) {
      content += meanings[index];
      ++at_;
      return {};
    }
    if (c != 'u') return wrong(fmt::format("{} after a backslash", found()));
    ++at_;
    UK_TRY(code, hex4());
    if (code >= 0xD800 && code <= 0xDFFF) {
      if (code >= 0xDC00 || !starts("\\u")) return wrong("half of a surrogate pair");
      at_ += 2;
      UK_TRY(low, hex4());
      if (low < 0xDC00 || low > 0xDFFF) return wrong("half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(content, code);
    return {};
  }

  static void append_utf8(std::string& content, unsigned code) {
    const auto put = [&](unsigned byte) { content += static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xC0 | (code >> 6));
      put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      put(0xE0 | (code >> 12));
      put(0x80 | ((code >> 6) & 0x3F));
      put(0x80 | (code & 0x3F));
    } else {
      put(0xF0 | (code >> 18));
      put(0x80 | ((code >> 12) & 0x3F));
      put(0x80 | ((code >> 6) & 0x3F));
      put(0x80 | (code & 0x3F));
    }
  }

  /// After an element: true when another follows, false when `closing` was read.
  Result<bool> continues_after_element(char closing) {
    UK_TRY_VOID(skip_space());
    if (peek() == closing && at_ < text_.size()) {
      ++at_;
      return false;
    }
    if (peek() != ',') {
      if (at_ >= text_.size()) return wrong(fmt::format("the text ends before `{}`", closing));
      return wrong(fmt::format("{} where `,` or `{}` is due", found(), closing));
    }
    const Place comma = here();
    ++at_;
    UK_TRY_VOID(skip_space());
    if (peek() == closing && at_ < text_.size()) {
      if (!relaxed_) return wrong_at(comma, fmt::format("`,` before `{}`", closing));
      depart(comma, fmt::format("a comma before `{}`", closing));
      ++at_;
      return false;
    }
    return true;
  }

  Result<std::vector<Value>> list(int depth) {
    ++at_;
    std::vector<Value> items;
    UK_TRY_VOID(skip_space());
    if (peek() == ']') {
      ++at_;
      return items;
    }
    while (true) {
      UK_TRY(item, value(depth + 1));
      items.push_back(std::move(item));
      UK_TRY(more, continues_after_element(']'));
      if (!more) return items;
    }
  }

  Result<std::string> key() {
    if (peek() == '"') return string();
    const auto is_word = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-' || c == '.';
    };
    if (!relaxed_ || !is_word(peek()))
      return wrong(fmt::format("{} where a key in quotes is due", found()));
    depart(here(), "a key without quotes");
    const std::size_t start = at_;
    while (is_word(peek())) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  Result<std::vector<Entry>> mapping(int depth) {
    ++at_;
    std::vector<Entry> entries;
    std::unordered_set<std::string> seen;
    UK_TRY_VOID(skip_space());
    if (peek() == '}') {
      ++at_;
      return entries;
    }
    while (true) {
      Entry entry;
      entry.key_place = here();
      UK_TRY(name, key());
      entry.key_place.end = at_;
      entry.key = std::move(name);
      const bool is_new = seen.insert(entry.key).second;
      if (!is_new && !last_holds_)
        return wrong_at(entry.key_place,
                        fmt::format("key `{}` is given twice", printable(entry.key)),
                        "keep one of the two");
      UK_TRY_VOID(skip_space());
      if (peek() != ':') return wrong(fmt::format("{} where `:` is due", found()));
      ++at_;
      UK_TRY_VOID(skip_space());
      UK_TRY(content, value(depth + 1));
      entry.value = std::move(content);
      if (!is_new) {
        if (repeated_.size() < most_departures)
          repeated_.push_back({printable(entry.key), entry.key_place});
        std::erase_if(entries, [&](const Entry& other) { return other.key == entry.key; });
      }
      entries.push_back(std::move(entry));
      UK_TRY(more, continues_after_element('}'));
      if (!more) return entries;
    }
  }

  std::string_view text_;
  std::string where_;
  bool relaxed_, last_holds_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  std::int64_t value_count_ = 0;
  std::vector<std::string> departures_;
  std::vector<RepeatedKey> repeated_;
};

}  // namespace

Result<JsonDocument> read_json(std::string_view text, std::string_view where, JsonDialect dialect) {
  return JsonReader(text, where, dialect).read();
}

}  // namespace underkeel::spec
