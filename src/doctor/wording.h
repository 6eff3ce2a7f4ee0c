#pragma once
// What findings say, in each language. One entry a rule; rules themselves are elsewhere.
// `{name}` is a slot that the finding fills; both languages have the same ones (a test holds it).

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/finding.h"

namespace underkeel::doctor {

enum class Language { english, chinese };

struct Text {
  std::string_view english;
  std::string_view chinese;
};

/// Of a finding, by its id.
struct Wording {
  std::string_view id;
  Text message;
  Text fix = {};  // may be empty
};

/// Of a part of a sentence, for slots whose text is `@id` or has `@[id]` in it.
struct Phrase {
  std::string_view id;
  Text text;
};

// The tables, by subject.
std::span<const Wording> key_wordings();
std::span<const Wording> config_wordings();
std::span<const Wording> batch_wordings();
std::span<const Wording> run_wordings();
std::span<const Wording> memory_wordings();
std::span<const Wording> advice_wordings();
std::span<const Wording> run_advice_wordings();
std::span<const Wording> method_advice_wordings();
std::span<const Wording> log_wordings();
std::span<const Wording> folder_wordings();
std::span<const Wording> checkpoint_wordings();
std::span<const Wording> disk_wordings();
std::span<const Wording> summary_wordings();
std::span<const Wording> value_wordings();
std::span<const Phrase> phrases();
std::span<const Phrase> memory_phrases();
std::span<const Phrase> folder_phrases();
std::span<const Phrase> disk_phrases();
std::span<const Phrase> run_phrases();
std::span<const Phrase> run_advice_phrases();
std::span<const Phrase> method_advice_phrases();
std::span<const Phrase> log_phrases();
std::span<const Phrase> summary_phrases();
std::span<const Phrase> value_phrases();

/// All tables.
std::vector<std::span<const Wording>> all_wordings();
std::vector<std::span<const Phrase>> all_phrases();

/// Nullptr when there is none.
const Wording* find_wording(std::string_view id);

std::string message_of(const Finding& finding, Language language);
std::string fix_of(const Finding& finding, Language language);
/// The phrase `id` alone; UK_CHECK that there is one.
std::string_view phrase(std::string_view id, Language language);

}  // namespace underkeel::doctor
