#include "doctor/wording.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/check.h"
#include "base/printable.h"
#include "doctor/reader_words.h"

namespace underkeel::doctor {
namespace {

std::string_view in(const Text& text, Language language) {
  return language == Language::english ? text.english : text.chinese;
}

/// Nullptr when there is none.
const Phrase* find_phrase(std::string_view id) {
  for (const std::span<const Phrase> table : all_phrases())
    for (const Phrase& each : table)
      if (each.id == id) return &each;
  return nullptr;
}

/// A text `@id`, or with parts `@[id]`, in a language. What names no phrase stays as it is: keys of files may look so.
std::string with_phrases(std::string_view text, Language language) {
  if (text.starts_with("@"))
    if (const Phrase* whole = find_phrase(text.substr(1)))
      return std::string(in(whole->text, language));
  std::string filled;
  while (!text.empty()) {
    const std::size_t open = text.find("@[");
    filled += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find(']', open);
    const Phrase* part = close == std::string_view::npos
                             ? nullptr
                             : find_phrase(text.substr(open + 2, close - open - 2));
    filled += part == nullptr ? std::string_view("@[") : in(part->text, language);
    text.remove_prefix(part == nullptr ? open + 2 : close + 1);
  }
  return filled;
}

/// Slots whose text is a list that we made: its marks are those of the language.
constexpr std::string_view list_slots[] = {"choices", "cure",  "differ", "host_terms", "keys",
                                           "known",   "lines", "others", "parts",      "run_key",
                                           "stages",  "terms", "types",  "wanted"};

/// ", " and "; " outside of quotes and of brackets of a value, as Chinese has them.
std::string with_chinese_marks(std::string_view text) {
  std::string made;
  int depth = 0;
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t close = c == '`' || c == '"' ? text.find(c, 1) : std::string_view::npos;
    if (close != std::string_view::npos) {
      made += text.substr(0, close + 1);
      text.remove_prefix(close + 1);
      continue;
    }
    if (c == '[' || c == ']') depth += c == '[' ? 1 : -1;
    const bool is_comma = text.starts_with(", ");
    if (depth <= 0 && (is_comma || text.starts_with("; "))) {
      made += is_comma ? "、" : "；";
      text.remove_prefix(2);
      continue;
    }
    made += c;
    text.remove_prefix(1);
  }
  return made;
}

std::string slot_text(const Finding& finding, std::string_view name, Language language) {
  const auto slot = std::find_if(finding.slots.begin(), finding.slots.end(),
                                 [&](const Slot& each) { return each.name == name; });
  UK_CHECK(slot != finding.slots.end(),
           fmt::format("finding `{}` fills no slot `{}`", finding.id, name));
  // What a reader below said; its names for things stay.
  const bool is_said =
      name == "what" || name == "where" || name == "fix" || name == "do" || name == "reason";
  const std::string text =
      is_said ? printable_lines(slot->text) : printable(slot->text, any_length);
  if (is_said && language == Language::chinese && !text.starts_with('@')) return in_chinese(text);
  // A value that has no words of its own: what it is.
  if ((name == "found" || name == "value") && language == Language::chinese &&
      text.starts_with("a mapping of "))
    return in_chinese(text);
  std::string filled = with_phrases(text, language);
  const bool is_list =
      std::find(std::begin(list_slots), std::end(list_slots), name) != std::end(list_slots);
  return is_list && language == Language::chinese ? with_chinese_marks(filled) : filled;
}

/// A word in the plural, and what it is of one.
struct Counted {
  std::string_view several, one;
};
constexpr Counted counted[] = {
    {"ranks", "rank"},
    {"packs", "pack"},
    {"positions", "position"},
    {"places", "place"},
    {"texts", "text"},
    {"blocks", "block"},
    {"GPUs", "GPU"},
    {"nodes", "node"},
    {"keys", "key"},
    {"layers", "layer"},
    {"copies", "copy"},
    {"tensors", "tensor"},
    {"parameters", "parameter"},
    {"elements", "element"},
    {"matrices", "matrix"},
    {"slices", "slice"},
    {"files", "file"},
    {"checkpoints", "checkpoint"},
    {"records", "record"},
    {"samples", "sample"},
    {"answers", "answer"},
    {"prompts", "prompt"},
    {"tokens", "token"},
    {"rows", "row"},
    {"values", "value"},
    {"windows", "window"},
    {"batches", "batch"},
    {"bits", "bit"},
    {"bytes", "byte"},
    {"sets", "set"},
    {"errors", "error"},
    {"warnings", "warning"},
    {"notes", "note"},
    {"sentences", "sentence"},
};
constexpr Counted verbs[] = {{"make", "makes"}, {"are", "is"},     {"have", "has"},
                             {"hold", "holds"}, {"take", "takes"}, {"stand", "stands"}};
/// May stand between a figure and its noun.
constexpr std::string_view qualities[] = {"training", "trained", "data", "second"};

/// The word behind a blank at the front of `pattern`, empty for another character.
std::string_view next_word(std::string_view pattern) {
  if (!pattern.starts_with(' ')) return {};
  std::size_t end = 1;
  while (end < pattern.size() && std::isalpha(static_cast<unsigned char>(pattern[end]))) ++end;
  return pattern.substr(1, end - 1);
}

/// Takes the word at the front off `pattern`, blank and all, and gives its singular; empty for a word without one.
template <std::size_t n>
std::string take_one(const Counted (&words)[n], std::string_view& pattern) {
  const std::string_view word = next_word(pattern);
  for (const Counted& each : words) {
    if (each.several != word) continue;
    pattern.remove_prefix(1 + word.size());
    return fmt::format(" {}", each.one);
  }
  return {};
}

/// "1 rank is": the words behind a figure, put into the singular where it is 1; takes them off `pattern`.
std::string take_singular(std::string_view figure, std::string_view& pattern) {
  if (figure != "1") return {};
  std::string_view rest = pattern;
  std::string words;
  if (const std::string_view word = next_word(rest);
      std::find(std::begin(qualities), std::end(qualities), word) != std::end(qualities)) {
    words = fmt::format(" {}", word);
    rest.remove_prefix(1 + word.size());
  }
  const std::string noun = take_one(counted, rest);
  if (noun.empty()) return {};
  pattern = rest;
  words += noun;
  return words + take_one(verbs, pattern);
}

/// One pass, so that a `{` in a value (a key of a hostile file) stays what it is.
std::string filled(std::string_view pattern, const Finding& finding, Language language) {
  std::string text;
  while (!pattern.empty()) {
    const std::size_t open = pattern.find('{');
    text += pattern.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = pattern.find('}', open);
    UK_CHECK(close != std::string_view::npos, fmt::format("wording of `{}`", finding.id));
    const std::string value =
        slot_text(finding, pattern.substr(open + 1, close - open - 1), language);
    pattern.remove_prefix(close + 1);
    text += value;
    text += take_singular(value, pattern);
  }
  return text;
}

const Wording& wording_of(const Finding& finding) {
  const Wording* wording = find_wording(finding.id);
  UK_CHECK(wording != nullptr, fmt::format("finding `{}` has no wording", finding.id));
  return *wording;
}

}  // namespace

std::vector<std::span<const Wording>> all_wordings() {
  return {batch_wordings(),  key_wordings(),       config_wordings(),     run_wordings(),
          memory_wordings(), advice_wordings(),    run_advice_wordings(), method_advice_wordings(),
          log_wordings(),    folder_wordings(),    disk_wordings(),       summary_wordings(),
          value_wordings(),  checkpoint_wordings()};
}

std::vector<std::span<const Phrase>> all_phrases() {
  return {phrases(),         memory_phrases(),     folder_phrases(),        disk_phrases(),
          run_phrases(),     run_advice_phrases(), method_advice_phrases(), log_phrases(),
          summary_phrases(), value_phrases()};
}

const Wording* find_wording(std::string_view id) {
  for (const std::span<const Wording> table : all_wordings())
    for (const Wording& wording : table)
      if (wording.id == id) return &wording;
  return nullptr;
}

std::string_view phrase(std::string_view id, Language language) {
  const Phrase* found = find_phrase(id);
  UK_CHECK(found != nullptr, fmt::format("there is no phrase `{}`", id));
  return in(found->text, language);
}

std::string message_of(const Finding& finding, Language language) {
  return filled(in(wording_of(finding).message, language), finding, language);
}

std::string fix_of(const Finding& finding, Language language) {
  return filled(in(wording_of(finding).fix, language), finding, language);
}

}  // namespace underkeel::doctor
