// yaml-cpp's parser drives a handler that builds the Value; its own Node would lose duplicates.

#include "spec/yaml_reader.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <unordered_set>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "base/printable.h"
#include "base/units.h"

namespace underkeel::spec {
namespace {

constexpr std::size_t deepest_nesting = 64;
// A run file has a hundred.
constexpr std::size_t most_values = 10'000;

/// Thrown inside this file only, out of yaml-cpp's callbacks.
struct Refused {
  YAML::Mark mark;
  std::string what;
  ErrorCode code = ErrorCode::bad_file;  // unsupported: YAML that other readers take
};

template <std::size_t n>
bool is_one_of(std::string_view word, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 12> true_words = {"true", "True", "TRUE", "yes", "Yes",
                                                         "YES",  "on",   "On",   "ON"};
constexpr std::array<std::string_view, 12> false_words = {"false", "False", "FALSE", "no", "No",
                                                          "NO",    "off",   "Off",   "OFF"};
constexpr std::array<std::string_view, 5> null_words = {"", "~", "null", "Null", "NULL"};

/// Decimal numbers with optional `_` between digits. Octal (010), hexadecimal and base-60 (1:30)
/// forms of YAML 1.1 stay text, so that nobody gets a number that they did not mean.
std::optional<std::string> plain_number(const std::string& word) {
  std::string digits;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (c == '_' && i > 0) continue;
    const bool may_appear =
        (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
    if (!may_appear) return std::nullopt;
    digits += c;
  }
  const std::size_t first = digits.find_first_not_of("+-");
  if (first == std::string::npos || first > 1) return std::nullopt;
  const bool leading_zero = digits[first] == '0' && first + 1 < digits.size() &&
                            digits[first + 1] >= '0' && digits[first + 1] <= '9';
  if (leading_zero) return std::nullopt;
  if (!parse_double(digits)) {
    // Out of range is still a number for the message; anything else is a word.
    const bool has_digit = digits.find_first_of("0123456789") != std::string::npos;
    const bool only_digits = digits.find_first_not_of("0123456789", first) == std::string::npos;
    if (!has_digit || !only_digits) return std::nullopt;
  }
  return digits;
}

Value scalar_value(const std::string& tag, const std::string& word) {
  Value value;
  value.kind = ValueKind::text;
  value.text = word;
  if (tag == "!") return value;  // in quotes
  if (is_one_of(word, null_words)) {
    value.kind = ValueKind::null;
    value.text.clear();
  } else if (!word.empty() && is_one_of(word, true_words)) {
    value.kind = ValueKind::boolean;
    value.boolean = true;
  } else if (!word.empty() && is_one_of(word, false_words)) {
    value.kind = ValueKind::boolean;
  } else if (const auto number = plain_number(word)) {
    value.kind = ValueKind::number;
    value.text = *number;
  }
  return value;
}

class Builder : public YAML::EventHandler {
 public:
  Value root;
  bool has_root = false;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(mark, Value{}, "");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{mark, "aliases are not supported; write the value out", ErrorCode::unsupported};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& word) override {
    refuse_anchor(mark, anchor);
    if (!tag.empty() && tag != "?" && tag != "!")
      throw Refused{mark, fmt::format("tags such as {} are not supported", printable(tag))};
    add(mark, scalar_value(tag, word), word);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, ValueKind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, ValueKind::mapping);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Value value;
    YAML::Mark mark;
    bool has_key = false;
    std::string key;
    Place key_place;
    std::unordered_set<std::string> keys;
  };

  static Place place_of(const YAML::Mark& mark) {
    return {.line = mark.line + 1,
            .column = mark.column + 1,
            .begin = static_cast<std::size_t>(std::max(0, mark.pos)),
            .end = static_cast<std::size_t>(std::max(0, mark.pos))};
  }

  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor)
      throw Refused{mark, "anchors are not supported; write the value out", ErrorCode::unsupported};
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, ValueKind kind) {
    refuse_anchor(mark, anchor);
    if (stack_.size() > deepest_nesting)
      throw Refused{mark, fmt::format("nested deeper than {} levels", deepest_nesting)};
    if (!stack_.empty() && stack_.back().value.kind == ValueKind::mapping && !stack_.back().has_key)
      throw Refused{mark, "a key must be a word"};
    Open opened;
    opened.value.kind = kind;
    opened.mark = mark;
    stack_.push_back(std::move(opened));
  }

  void close() {
    Open closed = std::move(stack_.back());
    stack_.pop_back();
    add(closed.mark, std::move(closed.value), "");
  }

  void add(const YAML::Mark& mark, Value value, const std::string& word) {
    if (++value_count_ > most_values)
      throw Refused{mark, fmt::format("more than {} keys and values, which no configuration has",
                                      format_count(most_values))};
    value.place = place_of(mark);
    if (stack_.empty()) {
      root = std::move(value);
      has_root = true;
      return;
    }
    Open& top = stack_.back();
    if (top.value.kind == ValueKind::list) {
      top.value.items.push_back(std::move(value));
    } else if (!top.has_key) {
      if (!top.keys.insert(word).second)
        throw Refused{mark, fmt::format("key `{}` is given twice", printable(word))};
      top.key = word;
      top.key_place = value.place;
      top.has_key = true;
    } else {
      top.value.entries.push_back({std::move(top.key), top.key_place, std::move(value)});
      top.has_key = false;
    }
  }

  std::vector<Open> stack_;
  std::size_t value_count_ = 0;
};

}  // namespace

namespace {

/// "line 3, column 5" of the first byte that is no UTF-8; empty without one.
std::string place_of_no_utf8(std::string_view text) {
  int line = 1;
  for (std::size_t at = 0, line_start = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at, 4));
    if (length == 0) return fmt::format("line {}, column {}", line, at - line_start + 1);
    if (text[at] == '\n') {
      ++line;
      line_start = at + 1;
    }
    at += length;
  }
  return {};
}

}  // namespace

Result<Value> read_yaml(std::string_view text, std::string_view where) {
  if (const std::string place = place_of_no_utf8(text); !place.empty())
    return fail(ErrorCode::bad_file, "not valid YAML: a byte that is not UTF-8",
                fmt::format("{}, {}", where, place), "save the file as UTF-8");
  const auto wrong = [&](const YAML::Mark& mark, const std::string& what,
                         ErrorCode code = ErrorCode::bad_file) {
    return fail(code, "not valid YAML: " + what,
                mark.is_null()
                    ? std::string(where)
                    : fmt::format("{}, line {}, column {}", where, mark.line + 1, mark.column + 1));
  };
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder;
    if (!parser.HandleNextDocument(builder) || !builder.has_root ||
        builder.root.kind == ValueKind::null) {
      Value empty;
      empty.kind = ValueKind::mapping;
      return empty;
    }
    Builder second;
    if (parser.HandleNextDocument(second))
      return fail(ErrorCode::bad_file, "not valid YAML: more than one document",
                  std::string(where));
    return std::move(builder.root);
  } catch (const Refused& refused) {
    return wrong(refused.mark, refused.what, refused.code);
  } catch (const YAML::Exception& exception) {
    return wrong(exception.mark, exception.msg);
  }
}

}  // namespace underkeel::spec
