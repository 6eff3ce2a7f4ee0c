#include "doctor/wording.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace underkeel::doctor {
namespace {

std::string_view in(const Text& text, Language language) {
  return language == Language::english ? text.english : text.chinese;
}

std::string slot_text(const Finding& finding, std::string_view name, Language language) {
  const auto slot = std::find_if(finding.slots.begin(), finding.slots.end(),
                                 [&](const Slot& each) { return each.name == name; });
  UK_CHECK(slot != finding.slots.end(),
           fmt::format("finding `{}` fills no slot `{}`", finding.id, name));
  if (!slot->text.starts_with("@")) return slot->text;
  return std::string(phrase(std::string_view(slot->text).substr(1), language));
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
    text += slot_text(finding, pattern.substr(open + 1, close - open - 1), language);
    pattern.remove_prefix(close + 1);
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
  return {key_wordings(), config_wordings()};
}

const Wording* find_wording(std::string_view id) {
  for (const std::span<const Wording> table : all_wordings())
    for (const Wording& wording : table)
      if (wording.id == id) return &wording;
  return nullptr;
}

std::string_view phrase(std::string_view id, Language language) {
  for (const Phrase& each : phrases())
    if (each.id == id) return in(each.text, language);
  UK_CHECK(false, fmt::format("there is no phrase `{}`", id));
}

std::string message_of(const Finding& finding, Language language) {
  return filled(in(wording_of(finding).message, language), finding, language);
}

std::string fix_of(const Finding& finding, Language language) {
  return filled(in(wording_of(finding).fix, language), finding, language);
}

}  // namespace underkeel::doctor
