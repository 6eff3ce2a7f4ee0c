#pragma once
// A conversation made into ids under a template: one pair of prompt and answer a turn.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/conversation.h"
#include "data/template.h"
#include "data/tokenizer.h"

namespace underkeel::data {

struct ChatStyle {
  const Template* style = nullptr;
  std::string system;                          // for conversations that have none of their own
  std::optional<bool> enable_thinking = true;  // of reasoning templates; nullopt: neither
  bool preserve_thinking = false;

  /// `style` with its own default system text.
  static ChatStyle of(const Template& style) {
    return {.style = &style, .system = std::string(style.default_system)};
  }
};

/// What the model is given, and what it is to write.
struct Turn {
  std::vector<std::int32_t> source;
  std::vector<std::int32_t> target;
};

/// Threads: may be used by several at once. The tokenizer must outlive it and must already be as
/// the template wants it (tokenizer_fix.h).
class ChatEncoder {
 public:
  ChatEncoder(const Tokenizer& tokenizer, ChatStyle style)
      : tokenizer_(tokenizer), style_(std::move(style)) {}

  const ChatStyle& style() const { return style_; }

  /// The turns of `talk`, which alternates and ends with an assistant. `mask_history`: only the
  /// last turn is trained, so thoughts of earlier ones go, unless they are to be preserved.
  /// Errors: those of Tokenizer::encode().
  Result<std::vector<Turn>> encode(const Conversation& talk, bool mask_history = false) const;

  /// The ids of a conversation that ends with a user: what the model answers to. Thoughts of earlier
  /// answers go; with enable_thinking false the prompt ends in an empty thought.
  Result<std::vector<std::int32_t>> encode_prompt(const Conversation& talk) const;

 private:
  using Ids = std::vector<std::int32_t>;
  Result<void> append_slots(const std::vector<Slot>& slots, const std::string& content,
                            const std::string* index, Ids& ids) const;
  Result<void> append_text(const std::string& text, Ids& ids) const;
  Result<Ids> encode_message(const Conversation& talk, std::size_t place) const;

  const Tokenizer& tokenizer_;
  ChatStyle style_;
};

}  // namespace underkeel::data
