#include "data/template_tokens.h"

#include <algorithm>

#include <fmt/format.h>

namespace underkeel::data {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') result += '\\';
    result += c;
  }
  return result;
}

std::string quoted(std::string_view text) {
  return fmt::format("'{}'", escaped(text));
}

// Slots as a sum of texts and of the variable that holds what was said.
std::string sum_of(const std::vector<Slot>& slots, const SpecialTokens& special,
                   std::string_view variable) {
  std::string sum;
  const auto add = [&](const std::string& term) { sum += (sum.empty() ? "" : " + ") + term; };
  constexpr std::string_view mark = "{{content}}";
  for (const Slot& slot : slots) {
    if (slot.kind == Slot::Kind::begin_token) {
      if (special.begin) add("'" + special.begin->text + "'");
    } else if (slot.kind == Slot::Kind::end_token) {
      if (special.end) add("'" + special.end->text + "'");
    } else {
      const std::size_t at = slot.text.find(mark);
      const std::string_view before = slot.text.substr(0, at);
      if (!before.empty()) add(quoted(before));
      if (at == std::string_view::npos) continue;
      add(std::string(variable));
      const std::string_view after = slot.text.substr(at + mark.size());
      if (!after.empty()) add(quoted(after));
    }
  }
  return sum;
}

}  // namespace

TokenChanges template_changes(const Tokenizer& tokenizer, const Template& style) {
  const SpecialTokens& special = tokenizer.special_tokens();
  TokenChanges changes;
  std::vector<std::string> words(style.stop_words.begin(), style.stop_words.end());
  std::string end = special.end ? special.end->text : std::string();
  if (style.replace_eos) {
    end = words.front();
    words.erase(words.begin());
  } else if (end.empty()) {
    end = "<|endoftext|>";
  }
  if (!special.end || special.end->text != end) changes.end = end;
  if (!special.padding) changes.padding = end;
  changes.special_tokens = std::move(words);
  return changes;
}

std::vector<std::int32_t> stop_tokens(const Tokenizer& tokenizer, const Template& style) {
  std::vector<std::int32_t> ids;
  const auto add = [&](std::optional<std::int32_t> id) {
    if (id && std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(*id);
  };
  if (const std::string_view word = turn_end_word(style); !word.empty()) add(tokenizer.id_of(word));
  if (tokenizer.special_tokens().end) add(tokenizer.special_tokens().end->id);
  for (const std::string_view word : style.stop_words) add(tokenizer.id_of(word));
  return ids;
}

std::string jinja_of(const Tokenizer& tokenizer, const Template& style,
                     const std::string& default_system) {
  const SpecialTokens& special = tokenizer.special_tokens();
  const std::string prefix = sum_of(style.prefix, special, "content");
  const std::string system = sum_of(style.system, special, "system_message");
  const std::string user = sum_of(style.user, special, "content");
  const std::string assistant = sum_of(style.assistant, special, "content");
  std::string jinja;
  if (!prefix.empty()) jinja += "{{ " + prefix + " }}";
  if (!default_system.empty())
    jinja += "{% set system_message = '" + escaped(default_system) + "' %}";
  jinja +=
      "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
      "{% set system_message = messages[0]['content'] %}{% else %}"
      "{% set loop_messages = messages %}{% endif %}";
  if (style.kind == TemplateKind::system_in_user) {
    jinja +=
        "{% for message in loop_messages %}"
        "{% if loop.index0 == 0 and system_message is defined %}"
        "{% set content = " +
        system +
        " + message['content'] %}"
        "{% else %}{% set content = message['content'] %}{% endif %}";
  } else {
    jinja += "{% if system_message is defined %}{{ " + system +
             " }}{% endif %}{% for message in loop_messages %}"
             "{% set content = message['content'] %}";
  }
  return jinja + "{% if message['role'] == 'user' %}{{ " + user +
         " }}{% elif message['role'] == 'assistant' %}{{ " + assistant +
         " }}{% endif %}{% endfor %}";
}

}  // namespace underkeel::data
