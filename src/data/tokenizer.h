#pragma once
// Text to token ids and back, exactly as a Hugging Face tokenizer.json or, without one, a SentencePiece
// tokenizer.model says. Supported now: BPE over bytes (GPT-2, Llama 3, Qwen 2 and 3, DeepSeek styles)
// and over characters (Llama 2, Mistral, Gemma, Phi-3). Any other component is an error that names it.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace underkeel::data {

struct SpecialToken {
  std::string text;
  std::int32_t id = 0;
};

/// What tokenizer_config.json names.
struct SpecialTokens {
  std::optional<SpecialToken> begin;    // bos_token
  std::optional<SpecialToken> end;      // eos_token
  std::optional<SpecialToken> padding;  // pad_token
  std::optional<SpecialToken> unknown;  // unk_token
  bool add_begin = false;               // add_bos_token
  bool add_end = false;                 // add_eos_token
};

/// Changes to the tokens of a tokenizer, as `add_tokens` and `add_special_tokens` of transformers make
/// them. A text that is a token already keeps its id; another gets the next free one.
struct TokenChanges {
  std::vector<std::string> tokens;          // found in text like words; not special
  std::vector<std::string> special_tokens;  // found in the text as given; left out of decoding
  std::optional<std::string> begin;         // becomes bos_token, added as special
  std::optional<std::string> end;           // becomes eos_token
  std::optional<std::string> padding;       // becomes pad_token
};

struct EncodeOptions {
  bool add_special_tokens = false;    // what the post-processor's template puts around the text
  bool split_special_tokens = false;  // special tokens in the text are ordinary text
  bool use_word_cache = true;         // remembers the ids of words: faster, the same ids
};

/// Contents of the files of a model folder; empty where there is none.
struct TokenizerTexts {
  std::string_view json;                // tokenizer.json
  std::string_view sentencepiece;       // tokenizer.model, read when there is no tokenizer.json
  std::string_view config;              // tokenizer_config.json
  std::string_view special_tokens_map;  // special_tokens_map.json
  std::string_view added_tokens;        // added_tokens.json
};

class Tokenizer {
 public:
  /// Reads the files of a model folder.
  /// Errors: not_found (with what else the folder offers), bad_file, unsupported.
  static Result<Tokenizer> load(const std::filesystem::path& model_folder);

  /// The same from their contents.
  static Result<Tokenizer> from_texts(const TokenizerTexts& texts);
  static Result<Tokenizer> from_json(std::string_view tokenizer_json, std::string_view config_json);

  /// Errors: bad_file with the offset when `text` is not valid UTF-8.
  /// Threads: may be called by several at once.
  Result<std::vector<std::int32_t>> encode(std::string_view text,
                                           const EncodeOptions& options = {}) const;

  /// Ids that stand for nothing are left out; bytes that are not UTF-8 become U+FFFD.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const;

  /// A tokenizer with other tokens; this one stays as it is.
  /// Errors: bad_config for an empty token.
  Result<Tokenizer> with(const TokenChanges& changes) const;

  /// Of the vocabulary or added. Special tokens are named by their text: id_of("<|im_end|>").
  std::optional<std::int32_t> id_of(std::string_view token) const;
  std::optional<std::string_view> token_of(std::int32_t id) const;
  /// Whether decoding leaves `id` out when asked to skip special tokens.
  bool is_special(std::int32_t id) const;

  /// One more than the largest id: what an embedding must hold at least.
  std::int32_t vocabulary_size() const;
  const SpecialTokens& special_tokens() const;
  /// What a user should know about these files, one sentence each.
  const std::vector<std::string>& notes() const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

/// Text of ids that come one by one, as in generation. A character that is not yet complete waits
/// for its other bytes, and white space that only a first token loses is lost only once.
class StreamDecoder {
 public:
  /// Keeps a share of `tokenizer`.
  explicit StreamDecoder(Tokenizer tokenizer, bool skip_special_tokens = true);

  /// The text that `id` completes; may be empty.
  std::string push(std::int32_t id);
  /// What waits still, with U+FFFD for bytes that are no characters. Starts anew afterwards.
  std::string finish();

 private:
  std::string take(std::string text);

  Tokenizer tokenizer_;
  bool skip_special_tokens_;
  std::vector<std::int32_t> ids_;  // the tokens of the last text given out, then those that wait
  std::size_t given_count_ = 0;    // how many of `ids_` were given out
  std::string given_text_;         // their text
};

}  // namespace underkeel::data
