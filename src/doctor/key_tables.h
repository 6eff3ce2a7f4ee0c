#pragma once
// Every key of a DeepSpeed config that DeepSpeed 0.19 knows, as data: where it belongs, its type, when
// it acts, and what DeepSpeed does with what is wrong. A new key is one line of a table.
// spec's deepspeed_keys() share the names alone: they say what this engine makes of a key; a test holds the names together.

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace underkeel::doctor {

enum class ValueType { boolean, whole, number, text, choice, mapping, list, any };

/// How a section is read. pydantic sections refuse unknown keys, read numbers in quotes, and take "auto" for
/// absent; the others look keys up by name and use what they find.
enum class Reader { lookup, pydantic, arguments };

struct Section {
  std::string_view name;  // "zero_optimization.offload_param"; "" is the top level
  Reader reader = Reader::lookup;
  bool is_open = false;  // it has keys that these tables do not list: unknown ones are let pass
};

/// What is special about a key, told whenever it is given. The name of a finding: "key-dead", ...
struct KeyRule {
  std::string_view key;
  ValueType type = ValueType::any;
  std::string_view fallback = {};  // its default, as text
  std::string_view choices = {};   // of ValueType::choice, cut at `|`
  bool any_case = false;           // DeepSpeed asks for a choice in letters of either case
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  std::string_view stages = {};   // digits of the stages where it acts; empty: all
  std::string_view special = {};  // id of a finding that is told whenever the key is there
  std::string_view other = {};    // the other spelling of the same key
  bool is_old = false;            // of the two spellings the one that is out of use
};

struct SectionTable {
  Section section;
  std::span<const KeyRule> keys;
};

/// All sections; the top level is the first.
std::span<const SectionTable> section_tables();
/// Null when these tables do not have the section.
const SectionTable* find_section(std::string_view name);
/// Null when the section has no such key.
const KeyRule* find_key(const SectionTable& table, std::string_view key);
/// The sections that know `key`, in the order of the tables.
std::vector<const SectionTable*> sections_of(std::string_view key);

// The tables of the larger sections.
std::span<const KeyRule> top_level_keys();
std::span<const KeyRule> zero_keys();

/// What the HF Trainer, with accelerate under it, makes of "auto" there: its argument, a formula or a value. Empty
/// where neither fills it in.
std::string_view filling_of(std::string_view section, std::string_view key);

}  // namespace underkeel::doctor
