#pragma once
// Whether a value fits a key of a DeepSpeed config, by the rules of its section: pydantic's lax ones, or Python's where
// DeepSpeed looks a key up and uses what it finds. Not here: which keys there are (key_tables.h), what is told of them.

#include <cstdint>
#include <optional>
#include <string_view>

#include "doctor/finding.h"
#include "doctor/key_tables.h"
#include "spec/value.h"

namespace underkeel::doctor {

/// quoted: a text that is read as the value it spells. boolean: true and false are read as 1 and 0.
enum class Fit { right, quoted, boolean, wrong };

Fit fit_of(const spec::Value& value, const KeyRule& rule, Reader reader);
/// Of a value that fits: whether the key takes it.
bool is_in_range(const spec::Value& value, const KeyRule& rule);

/// The whole number that a text spells for pydantic: " 12 ", "1_000", "+5", "12.0", but not "5e8".
std::optional<std::int64_t> spelled_whole(std::string_view text);

/// What comes of a wrong value: a phrase, and whether the run stops on it.
struct Effect {
  std::string_view does;
  Severity severity = Severity::error;
};
Effect effect_of_wrong_type(const Section& section, const KeyRule& rule, const spec::Value& value);
Effect effect_out_of_range(const Section& section, const KeyRule& rule);

/// Whether `word` is one of `alternatives`, which are cut at `|`.
bool is_in(std::string_view word, std::string_view alternatives);
/// Of a key of ValueType::choice.
bool is_choice(const KeyRule& rule, std::string_view word);

/// "@whole", "@text": what is wanted.
std::string_view phrase_of(ValueType type);

}  // namespace underkeel::doctor
