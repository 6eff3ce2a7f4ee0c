#pragma once
// Reads the components of tokenizer.json and the keys of tokenizer_config.json.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/decoder.h"
#include "data/tokenizer/model.h"
#include "data/tokenizer/normalizer.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/word_cutter.h"

namespace underkeel::data {

struct TokenizerFile {
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  // Where the pre-tokenizer is one of the common ones, its pattern: then the model's byte_words()
  // give the same ids as pre-tokenizer and model.
  std::optional<WordPattern> words;
  const WordCutter* cutter = nullptr;
  std::unique_ptr<Model> model;
  std::unique_ptr<Decoder> decoder;
  std::vector<AddedToken> added_tokens;  // with the ids that the file states
  // What the template of the post-processor puts around a text.
  std::vector<std::int32_t> template_prefix;
  std::vector<std::int32_t> template_suffix;
};

/// The vocabulary and the merges are taken while parsing, so that they are in memory once.
/// Errors: bad_file with position or key; unsupported naming the component.
Result<TokenizerFile> read_tokenizer_json(std::string_view text);

struct TokenizerConfigFile {
  std::optional<AddedToken> begin;
  std::optional<AddedToken> end;
  std::optional<AddedToken> padding;
  std::optional<AddedToken> unknown;
  std::vector<AddedToken> additional;     // additional_special_tokens, extra_special_tokens
  std::vector<AddedToken> added_decoder;  // added_tokens_decoder or added_tokens.json, by id
  // Whether the key is there at all, be it with null.
  bool names_begin = false;
  bool names_end = false;
  bool names_unknown = false;
  bool add_begin = false;
  bool add_end = false;
  bool legacy = false;
  std::optional<bool> add_prefix_space;
  std::string class_name;  // tokenizer_class
};

/// Contents of the files; empty where there is none.
struct TokenizerConfigTexts {
  std::string_view config;              // tokenizer_config.json
  std::string_view special_tokens_map;  // special_tokens_map.json
  std::string_view added_tokens;        // added_tokens.json
};
/// Errors: bad_file naming file and key.
Result<TokenizerConfigFile> read_tokenizer_config(const TokenizerConfigTexts& texts);

}  // namespace underkeel::data
