#pragma once
// What a folder of a model that was trained under a template must say, so that others stop where its
// answers end and lay out a conversation as it was trained.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/chat_encoder.h"
#include "data/tokenizer.h"
#include "train/checkpoint_writer.h"

namespace underkeel::train {

struct TemplateFiles {
  std::string name;                         // of the template; empty: nothing is to be changed
  std::optional<data::SpecialToken> begin;  // of the tokenizer with the template's changes
  std::optional<data::SpecialToken> end;
  std::optional<data::SpecialToken> padding;
  std::optional<data::SpecialToken> turn_end;  // what an answer ends with; none: with nothing
  std::vector<std::string> special_tokens;     // further stop words
  std::string jinja;
  bool replaces_jinja = false;
};

TemplateFiles template_files_of(const data::Tokenizer& tokenizer, const data::ChatStyle& style);

/// Changes config.json, generation_config.json (made when it is missing) and tokenizer_config.json
/// among `files`: the tokenizer's ids, the token that ends an answer in front of the model's own end
/// tokens, the template as Jinja where there is none or where the template replaces it.
/// Errors: bad_file for JSON that cannot be read.
Result<void> apply_template(const TemplateFiles& style, std::vector<ExtraFile>& files);

/// For the user: when the token that ends an answer is not among those at which the model ends now.
/// `own_ends` are the ids that its folder names.
std::optional<std::string> end_token_note(const TemplateFiles& style,
                                          const std::vector<std::int64_t>& own_ends);

/// The end tokens of generation_config.json, else of config.json; texts may be empty.
std::vector<std::int64_t> end_tokens_of(const std::string& generation_config,
                                        const std::string& config);

}  // namespace underkeel::train
