#pragma once
// What a template changes in a tokenizer, and what a folder for others must then say.

#include <cstdint>
#include <string>
#include <vector>

#include "data/template.h"
#include "data/tokenizer.h"

namespace underkeel::data {

/// The changes that LLaMA-Factory makes before it tokenises: the end token is replaced or made, a
/// missing padding token is the end token, stop words become special tokens.
TokenChanges template_changes(const Tokenizer& tokenizer, const Template& style);

/// The tokens at which an answer ends, the one that the model learns to write first. `tokenizer`
/// already has the changes.
std::vector<std::int32_t> stop_tokens(const Tokenizer& tokenizer, const Template& style);

/// The template as Jinja, for chat_template of tokenizer_config.json. `tokenizer` has the changes.
std::string jinja_of(const Tokenizer& tokenizer, const Template& style, const std::string& system);

}  // namespace underkeel::data
