#include "data/chat_encoder.h"

#include <utility>

#include "base/check.h"

namespace underkeel::data {
namespace {

constexpr std::string_view thought_begin = "<think>\n";
constexpr std::string_view thought_end = "\n</think>\n\n";

void replace_once(std::string& text, std::string_view mark, std::string_view words) {
  const std::size_t at = text.find(mark);
  if (at != std::string::npos) text.replace(at, mark.size(), words);
}

// Every stretch from <think> to the next </think>, then newlines at the front.
std::string without_thoughts(const std::string& text) {
  std::string kept;
  std::size_t from = 0;
  while (true) {
    const std::size_t begin = text.find(thought_begin, from);
    const std::size_t end = begin == std::string::npos
                                ? std::string::npos
                                : text.find(thought_end, begin + thought_begin.size());
    if (end == std::string::npos) break;
    kept.append(text, from, begin - from);
    from = end + thought_end.size();
  }
  kept.append(text, from);
  kept.erase(0, std::min(kept.find_first_not_of('\n'), kept.size()));
  return kept;
}

bool has_thought(const std::string& text) {
  return text.find("<think>") != std::string::npos || text.find("</think>") != std::string::npos;
}

}  // namespace

Result<void> ChatEncoder::append_text(const std::string& text, Ids& ids) const {
  if (text.empty()) return {};
  UK_TRY(more, tokenizer_.encode(text));
  ids.insert(ids.end(), more.begin(), more.end());
  return {};
}

Result<void> ChatEncoder::append_slots(const std::vector<Slot>& slots, const std::string& content,
                                       const std::string* index, Ids& ids) const {
  const SpecialTokens& special = tokenizer_.special_tokens();
  for (const Slot& slot : slots) {
    if (slot.kind == Slot::Kind::begin_token) {
      if (special.begin) ids.push_back(special.begin->id);
    } else if (slot.kind == Slot::Kind::end_token) {
      if (special.end) ids.push_back(special.end->id);
    } else {
      std::string text(slot.text);
      replace_once(text, "{{content}}", content);
      // The number of a turn, which no template here has: but LLaMA-Factory looks for it in what the
      // user wrote as well.
      if (index != nullptr) replace_once(text, "{{idx}}", *index);
      UK_TRY_VOID(append_text(text, ids));
    }
  }
  return {};
}

Result<ChatEncoder::Ids> ChatEncoder::encode_message(const Conversation& talk,
                                                     std::size_t place) const {
  const Template& style = *style_.style;
  const Message& message = talk.messages[place];
  const std::string& system = talk.system.empty() ? style_.system : talk.system;
  const bool in_user = style.kind == TemplateKind::system_in_user;
  const bool has_system = place == 0 && (!system.empty() || talk.has_tools_list);
  Ids ids;
  if (place == 0) UK_TRY_VOID(append_slots(style.prefix, {}, nullptr, ids));
  if (has_system && !in_user) UK_TRY_VOID(append_slots(style.system, system, nullptr, ids));
  if (message.role == Role::assistant) {
    UK_TRY_VOID(append_slots(style.assistant, message.text, nullptr, ids));
  } else if (in_user) {
    std::string words;
    if (has_system) {
      words = style.system.front().text;
      replace_once(words, "{{content}}", system);
    }
    UK_TRY_VOID(append_slots(style.user, words + message.text, nullptr, ids));
  } else {
    const std::string index = std::to_string(place / 2);
    UK_TRY_VOID(append_slots(style.user, message.text, &index, ids));
  }
  return ids;
}

Result<std::vector<Turn>> ChatEncoder::encode(const Conversation& talk, bool mask_history) const {
  UK_CHECK(talk.messages.size() % 2 == 0, "a conversation ends without an answer");
  const bool reasons = style_.style->kind == TemplateKind::reasoning;
  const bool last_only = mask_history && !style_.preserve_thinking;
  Conversation changed;
  if (reasons) {
    changed = talk;
    for (std::size_t answer = 1; answer < changed.messages.size(); answer += 2) {
      const bool is_last = answer + 1 == changed.messages.size();
      if (style_.enable_thinking == false || (last_only && !is_last))
        changed.messages[answer].text = without_thoughts(changed.messages[answer].text);
    }
  }
  const Conversation& said = reasons ? changed : talk;
  std::vector<Turn> turns;
  for (std::size_t place = 0; place < said.messages.size(); place += 2) {
    UK_TRY(source, encode_message(said, place));
    UK_TRY(target, encode_message(said, place + 1));
    turns.push_back({.source = std::move(source), .target = std::move(target)});
  }
  if (!reasons) return turns;
  UK_TRY(thought, tokenizer_.encode(std::string(thought_begin) + std::string(thought_end)));
  for (std::size_t turn = last_only && !turns.empty() ? turns.size() - 1 : 0; turn < turns.size();
       ++turn) {
    if (has_thought(said.messages[2 * turn + 1].text)) continue;
    Turn& at = turns[turn];
    if (style_.enable_thinking.value_or(false))
      at.target.insert(at.target.begin(), thought.begin(), thought.end());
    else
      at.source.insert(at.source.end(), thought.begin(), thought.end());
  }
  return turns;
}

Result<std::vector<std::int32_t>> ChatEncoder::encode_prompt(const Conversation& talk) const {
  UK_CHECK(talk.messages.size() % 2 == 1, "a prompt ends with a user");
  const bool reasons = style_.style->kind == TemplateKind::reasoning;
  Conversation said = talk;
  Ids ids;
  for (std::size_t place = 0; place < said.messages.size(); ++place) {
    std::string& text = said.messages[place].text;
    if (reasons && place % 2 == 1 && !style_.preserve_thinking) text = without_thoughts(text);
    UK_TRY(more, encode_message(said, place));
    ids.insert(ids.end(), more.begin(), more.end());
  }
  if (reasons && !style_.enable_thinking.value_or(false))
    UK_TRY_VOID(append_text(std::string(thought_begin) + std::string(thought_end), ids));
  return ids;
}

}  // namespace underkeel::data
