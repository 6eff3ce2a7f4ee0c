#pragma once
// A key of a DeepSpeed config with a value, as a sentence names it ("set sub_group_size to 1e8"), and what the run holds
// with it. Not here: advice that has an entry of its own (advice_table.cpp and its neighbours).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/advice_text.h"
#include "doctor/memory_rules.h"

namespace underkeel::doctor {

struct SaidKey {
  std::string section;  // "" is the top level
  std::string key;
  std::string value;      // as a run file has it: "100000000", "false", "auto"
  std::string_view acts;  // digits of the stages where it does something; empty: all
  std::vector<Stretch> words;
  std::string path() const { return section.empty() ? key : section + "." + key; }
  bool operator==(const SaidKey& other) const {
    return path() == other.path() && value == other.value;
  }
};

/// In a normalised sentence; nothing where no key that DeepSpeed has is named with a value.
std::optional<SaidKey> key_said(std::string_view sentence);

/// Slots of "advice-set-key" or, where DeepSpeed would refuse the config then, of "advice-set-key-refused".
struct KeyAnswer {
  std::string id;
  std::string_view truth;  // a phrase
  std::vector<Slot> slots;
};
/// `memory` is the case of the files as they are; nothing there: of Llama-2-7B at stage 3.
KeyAnswer answer_to_key(const SaidKey& said, const std::optional<MemoryCase>& memory,
                        const Inputs& inputs);

}  // namespace underkeel::doctor
