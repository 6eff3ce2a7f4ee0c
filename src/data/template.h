#pragma once
// Chat templates as data: which texts and tokens stand around what was said.
// Not here: making ids (chat_encoder.h), what a template changes in a tokenizer (tokenizer_fix.h).

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace underkeel::data {

/// A piece of a message. Each is made into ids on its own, so that no token crosses a border.
struct Slot {
  enum class Kind { text, begin_token, end_token };
  Kind kind = Kind::text;
  std::string_view text;  // {{content}} stands for what was said
};

enum class TemplateKind {
  plain,
  system_in_user,  // the system text is put in front of the first user's words
  reasoning        // answers hold thoughts between <think> and </think>
};

struct Template {
  std::string_view name;
  TemplateKind kind = TemplateKind::plain;
  std::vector<Slot> prefix;
  std::vector<Slot> system;
  std::vector<Slot> user;
  std::vector<Slot> assistant;
  std::string_view default_system;
  std::vector<std::string_view> stop_words;
  bool efficient_eos = false;   // the end token comes once, after the last turn
  bool replace_eos = false;     // the first stop word becomes the tokenizer's end token
  bool replaces_jinja = false;  // also where the tokenizer has a chat template of its own
};

/// All of them, by name.
std::span<const Template> all_templates();

/// Errors: not_found with the nearest name.
Result<const Template*> find_template(std::string_view name);

/// The stop word that ends an answer; empty when an answer ends with the tokenizer's end token, or
/// with nothing. See ends_with_end_token().
std::string_view turn_end_word(const Template& style);
/// Whether what the model learns to write at the end of an answer has the tokenizer's end token.
bool ends_with_end_token(const Template& style);

}  // namespace underkeel::data
