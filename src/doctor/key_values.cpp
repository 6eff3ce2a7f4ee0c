#include "doctor/key_values.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "doctor/document.h"

namespace underkeel::doctor {
namespace {

using spec::Value;
using spec::ValueKind;

/// What pydantic takes for a truth value; it strips no blanks there.
bool is_lax_truth(std::string_view text) {
  return is_in(lower_case(text), "true|false|yes|no|on|off|t|f|y|n|1|0");
}

std::string_view stripped(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Without underscores, each of which has to stand between two digits; empty where one does not.
std::string without_underscores(std::string_view text) {
  const auto is_digit = [&](std::size_t at) {
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  std::string made;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '_')
      made += text[at];
    else if (at == 0 || !is_digit(at - 1) || !is_digit(at + 1))
      return {};
  }
  return made;
}

/// A number in a text as pydantic reads it; "inf" and "nan" are numbers there.
std::optional<double> spelled_number(std::string_view text) {
  std::string number = without_underscores(stripped(text));
  const bool is_negative = number.starts_with('-');
  if (is_negative || number.starts_with('+')) number.erase(0, 1);
  const double sign = is_negative ? -1 : 1;
  const std::string word = lower_case(number);
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (word == "inf" || word == "infinity") return sign * std::numeric_limits<double>::infinity();
  if (number.ends_with('.')) number.pop_back();
  if (number.starts_with('.')) number.insert(0, "0");
  if (number.empty() || std::isdigit(static_cast<unsigned char>(number[0])) == 0 ||
      number.find_first_of("xX") != std::string::npos)
    return std::nullopt;
  const auto value = spec::parse_double(number);
  return value ? std::optional(sign * *value) : std::nullopt;
}

/// A whole number that is written without a fraction or an exponent, however long.
bool is_digits(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// pydantic takes a float without a fraction, up to 2^63 and not with it.
bool is_whole_float(const Value& value) {
  constexpr double end = 0x1p63;
  const auto number = spec::to_double(value);
  return number && std::trunc(*number) == *number && *number > -end && *number < end;
}

Fit fit_of_number(const Value& value, const KeyRule& rule, bool is_pydantic) {
  const bool is_whole = rule.type == ValueType::whole;
  // Python's bool is an int; the scale of the loss has a check of its own against it.
  if (value.kind == ValueKind::boolean) return rule.key == "loss_scale" ? Fit::wrong : Fit::boolean;
  if (value.kind == ValueKind::number && is_whole && is_pydantic && is_whole_float(value))
    return Fit::right;
  if (value.kind == ValueKind::number)
    return (is_whole ? spec::to_integer(value).has_value() : spec::to_double(value).has_value())
               ? Fit::right
               : Fit::wrong;
  if (value.kind != ValueKind::text || !is_pydantic) return Fit::wrong;
  const bool is_spelled =
      is_whole ? spelled_whole(value.text).has_value() : spelled_number(value.text).has_value();
  return is_spelled ? Fit::quoted : Fit::wrong;
}

}  // namespace

std::optional<std::int64_t> spelled_whole(std::string_view text) {
  std::string digits = without_underscores(stripped(text));
  if (digits.starts_with('+')) digits.erase(0, 1);
  if (const std::size_t point = digits.find('.'); point != std::string::npos) {
    // "12.0" counts, "12." does not.
    if (point + 1 == digits.size() || digits.find_first_not_of('0', point + 1) != std::string::npos)
      return std::nullopt;
    digits.resize(point);
  }
  return is_digits(digits) ? spec::parse_integer(digits) : std::nullopt;
}

bool is_in_range(const Value& value, const KeyRule& rule) {
  std::optional<double> number = spec::to_double(value);
  if (value.kind == ValueKind::text) number = spelled_number(value.text);
  if (!number) return true;
  // Of "nan" every comparison is false; the scale of the loss is to be finite.
  const bool is_bounded = std::isfinite(rule.least) || std::isfinite(rule.most);
  const bool is_above = *number >= rule.least, is_below = *number <= rule.most;
  return (!is_bounded || (is_above && is_below)) &&
         (rule.key != "loss_scale" || std::isfinite(*number));
}

bool is_in(std::string_view word, std::string_view alternatives) {
  while (true) {
    const std::size_t bar = alternatives.find('|');
    if (word == alternatives.substr(0, bar)) return true;
    if (bar == std::string_view::npos) return false;
    alternatives.remove_prefix(bar + 1);
  }
}

bool is_choice(const KeyRule& rule, std::string_view word) {
  return rule.any_case ? is_in(lower_case(word), lower_case(rule.choices))
                       : is_in(word, rule.choices);
}

std::string_view phrase_of(ValueType type) {
  constexpr std::string_view names[] = {"@truth",  "@whole",   "@number", "@text",
                                        "@choice", "@mapping", "@list",   "@any"};
  return names[static_cast<std::size_t>(type)];
}

Fit fit_of(const Value& value, const KeyRule& rule, Reader reader) {
  const bool is_text = value.kind == ValueKind::text;
  const bool is_pydantic = reader == Reader::pydantic;
  switch (rule.type) {
    case ValueType::any:
      return Fit::right;
    case ValueType::boolean:
      if (value.kind == ValueKind::boolean) return Fit::right;
      if (const auto number = spec::to_double(value); number && !is_text)
        return *number == 0 || *number == 1 ? Fit::right : Fit::wrong;
      return is_text && is_pydantic && is_lax_truth(value.text) ? Fit::quoted : Fit::wrong;
    case ValueType::whole:
    case ValueType::number:
      return fit_of_number(value, rule, is_pydantic);
    case ValueType::text:
    case ValueType::choice:
      return is_text ? Fit::right : Fit::wrong;
    case ValueType::mapping:
      return value.kind == ValueKind::mapping ? Fit::right : Fit::wrong;
    case ValueType::list:
      return value.kind == ValueKind::list ? Fit::right : Fit::wrong;
  }
  return Fit::wrong;
}

Effect effect_of_wrong_type(const Section& section, const KeyRule& rule, const Value& value) {
  if (value.kind == ValueKind::number && !spec::to_double(value)) return {"@does.overflows"};
  if (section.reader == Reader::pydantic) {
    // Python's whole numbers have no end, and pydantic takes them all.
    const bool is_long = value.kind == ValueKind::number && is_digits(value.text);
    return {rule.type == ValueType::whole && is_long ? "@does.uses-as-is" : "@does.rejects"};
  }
  if (rule.key == "wall_clock_breakdown") return {"@does.fails-combining"};
  // Python asks only whether the value is empty.
  if (rule.type == ValueType::boolean) return {"@does.takes-as-true", Severity::warning};
  if (rule.key == "gradient_clipping" || rule.key == "steps_per_print" ||
      section.reader == Reader::arguments)
    return {"@does.fails-at-step-1"};
  if (rule.type == ValueType::mapping) return {"@does.fails-without-keys"};
  if (!section.name.empty()) return {"@does.uses-as-is"};
  const bool is_word = rule.type == ValueType::text || rule.type == ValueType::choice;
  return {is_word ? "@does.fails-as-text" : "@does.fails-at-start"};
}

Effect effect_out_of_range(const Section& section, const KeyRule& rule) {
  if (section.reader == Reader::pydantic) return {"@does.rejects"};
  if (rule.key == "warmup_type") return {"@does.takes-log", Severity::warning};
  if (rule.key == "tag_validation") return {"@does.config-error"};
  if (section.name == "optimizer.params") return {"@does.unchecked-by-own-adam"};
  if (!section.name.empty()) return {"@does.uses-as-is"};
  return {rule.type == ValueType::choice ? "@does.value-error" : "@does.fails-at-start"};
}

}  // namespace underkeel::doctor
