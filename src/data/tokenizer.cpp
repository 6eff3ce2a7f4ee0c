#include "data/tokenizer.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "base/foreign_content.h"
#include "data/tokenizer/byte_level.h"
#include "data/tokenizer/byte_words.h"
#include "data/tokenizer/sentencepiece_model.h"
#include "data/tokenizer/tokenizer_json.h"
#include "data/tokenizer/utf8.h"

namespace underkeel::data {
namespace {

constexpr std::uintmax_t largest_file_bytes = std::uintmax_t{1} << 30;

Result<std::string> read_whole_file(const std::filesystem::path& path) {
  std::error_code status;
  const std::uintmax_t size_bytes = std::filesystem::file_size(path, status);
  if (status) return fail(ErrorCode::io, status.message(), path.string());
  if (size_bytes > largest_file_bytes)
    return fail(ErrorCode::bad_file, fmt::format("{} bytes is no tokenizer", size_bytes),
                path.string());
  std::string text(size_bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size_bytes)))
    return fail(ErrorCode::io, "the file could not be read", path.string());
  // A tokenizer.model is not text.
  const auto foreign = path.extension() == ".json" ? foreign_content_of(text) : stand_in_of(text);
  if (foreign)
    return fail(ErrorCode::bad_file, fmt::format("the content is {}", foreign->what), path.string(),
                foreign->fix);
  return text;
}

tl::unexpected<Error> no_tokenizer(const std::filesystem::path& folder) {
  const auto has = [&](const char* name) { return std::filesystem::exists(folder / name); };
  std::string what = "there is neither tokenizer.json nor tokenizer.model";
  if (has("vocab.json") && has("merges.txt"))
    what += " (vocab.json and merges.txt are its older form)";
  return fail(ErrorCode::not_found, std::move(what), folder.string(),
              "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) in transformers "
              "writes one");
}

// What LlamaTokenizer of transformers takes for granted where the configuration has no such key.
void name_sentencepiece_tokens(TokenizerConfigFile& config) {
  const auto token = [](const char* text) {
    return AddedToken{.content = text, .normalized = false, .special = true};
  };
  if (!config.names_begin) config.begin = token("<s>");
  if (!config.names_end) config.end = token("</s>");
  if (!config.names_unknown) config.unknown = token("<unk>");
}

}  // namespace

struct Tokenizer::Parts {
  std::shared_ptr<const TokenizerFile> file;  // shared by tokenizers that differ in added tokens
  AddedTokens added;
  SpecialTokens special;
  std::vector<std::string> notes;
  // What goes around a text when asked.
  std::vector<std::int32_t> prefix;
  std::vector<std::int32_t> suffix;

  Result<void> take_added_tokens();
  Result<void> take_config(const TokenizerConfigFile& config);
  Result<void> take_changes(const TokenChanges& changes);
  void take_template();
  void note_class(std::string_view class_name);
  void take_template_of_config();
  void note_missing_bytes();

  SpecialToken add_special(const AddedToken& token, std::string_view key);
  Result<void> encode_text(std::string_view text, bool starts_text, bool use_word_cache,
                           std::vector<std::int32_t>& ids) const;
};

Result<void> Tokenizer::Parts::take_added_tokens() {
  for (const AddedToken& token : file->added_tokens) {
    const std::int32_t id = added.add(token, *file->model);
    if (id != token.id)
      notes.push_back(
          fmt::format("tokenizer.json gives added token `{}` the id {}, but its place "
                      "makes it {}; {} is used, as by the tokenizers library",
                      token.content, token.id, id, id));
  }
  return {};
}

// A special token that no file has added yet is added now, as transformers does.
SpecialToken Tokenizer::Parts::add_special(const AddedToken& token, std::string_view key) {
  if (const auto id = added.id_of(token.content)) return {token.content, *id};
  const bool is_new = !file->model->id_of(token.content).has_value();
  const std::int32_t id = added.add(token, *file->model);
  if (is_new)
    notes.push_back(
        fmt::format("{} `{}` of tokenizer_config.json is not in tokenizer.json; it "
                    "gets the new id {}",
                    key, token.content, id));
  return {token.content, id};
}

Result<void> Tokenizer::Parts::take_config(const TokenizerConfigFile& config) {
  // What the configuration says of a token's flags holds, as in transformers.
  for (const AddedToken& token : config.added_decoder) {
    if (added.id_of(token.content))
      added.add(token, *file->model);
    else
      add_special(token, "added token");
  }
  if (config.begin) special.begin = add_special(*config.begin, "bos_token");
  if (config.end) special.end = add_special(*config.end, "eos_token");
  if (config.unknown) special.unknown = add_special(*config.unknown, "unk_token");
  if (config.padding) special.padding = add_special(*config.padding, "pad_token");
  for (const AddedToken& token : config.additional) add_special(token, "special token");
  special.add_begin = config.add_begin;
  special.add_end = config.add_end;
  return {};
}

Result<void> Tokenizer::Parts::take_changes(const TokenChanges& changes) {
  const auto add = [&](const std::string& content, bool is_special) -> Result<SpecialToken> {
    if (content.empty() || first_invalid_utf8(content))
      return fail(ErrorCode::bad_config,
                  content.empty() ? "a token to add is empty" : "a token to add is not valid UTF-8",
                  is_special ? "special token" : "added token");
    const AddedToken token{.content = content, .normalized = !is_special, .special = is_special};
    return SpecialToken{content, added.add(token, *file->model)};
  };
  for (const std::string& token : changes.tokens) UK_TRY_VOID(add(token, false));
  for (const auto& [text, role] :
       {std::pair(&changes.begin, &special.begin), std::pair(&changes.end, &special.end),
        std::pair(&changes.padding, &special.padding)}) {
    if (!*text) continue;
    UK_TRY(token, add(**text, true));
    *role = token;
  }
  for (const std::string& token : changes.special_tokens) UK_TRY_VOID(add(token, true));
  return {};
}

void Tokenizer::Parts::take_template() {
  prefix = file->template_prefix;
  suffix = file->template_suffix;
}

// add_bos_token and add_eos_token count only where no tokenizer.json has a template.
void Tokenizer::Parts::take_template_of_config() {
  if (special.add_begin && special.begin) prefix = {special.begin->id};
  if (special.add_end && special.end) suffix = {special.end->id};
}

// transformers 5 builds the pipeline of this class anew and leaves the file's unread; 4 follows it.
void Tokenizer::Parts::note_class(std::string_view class_name) {
  if (class_name.starts_with("LlamaTokenizer") && file->normalizer != nullptr)
    notes.push_back(
        fmt::format("tokenizer.json puts a mark before every part of the text and is followed; the "
                    "class {} of transformers 5 puts it only at the start",
                    class_name));
}

void Tokenizer::Parts::note_missing_bytes() {
  int missing = 0;
  for (int byte = 0; byte < 256; ++byte)
    if (!file->model->id_of(byte_character(static_cast<unsigned char>(byte)))) ++missing;
  if (missing > 0 && missing < 256)
    notes.push_back(
        fmt::format("the vocabulary has no token for {} of the 256 bytes; they are "
                    "left out of the text unless it has an unknown token",
                    missing));
}

Result<void> Tokenizer::Parts::encode_text(std::string_view text, bool starts_text,
                                           bool use_word_cache,
                                           std::vector<std::int32_t>& ids) const {
  if (text.empty()) return {};
  if (const ByteWords* words = file->model->byte_words(); words != nullptr && file->words) {
    words->append_ids(text, *file->cutter, *file->words, use_word_cache, ids);
    return {};
  }
  Pieces pieces;
  pieces.starts_text = starts_text;
  pieces.append(text);
  if (file->pre_tokenizer != nullptr) {
    UK_TRY(split, file->pre_tokenizer->split(std::move(pieces)));
    pieces = std::move(split);
  }
  for (std::size_t index = 0; index < pieces.ends.size(); ++index)
    UK_TRY_VOID(file->model->append_ids(pieces.piece(index), ids));
  return {};
}

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& model_folder) {
  const auto has = [&](const char* name) { return std::filesystem::exists(model_folder / name); };
  if (!has("tokenizer.json") && !has("tokenizer.model")) return no_tokenizer(model_folder);
  std::array<std::string, 4> texts;
  const std::array<const char*, 4> names = {
      has("tokenizer.json") ? "tokenizer.json" : "tokenizer.model", "tokenizer_config.json",
      "special_tokens_map.json", "added_tokens.json"};
  for (std::size_t index = 0; index < names.size(); ++index) {
    if (!has(names[index])) continue;
    UK_TRY(text, read_whole_file(model_folder / names[index]));
    texts[index] = std::move(text);
  }
  TokenizerTexts views{
      .config = texts[1], .special_tokens_map = texts[2], .added_tokens = texts[3]};
  (has("tokenizer.json") ? views.json : views.sentencepiece) = texts[0];
  auto tokenizer = from_texts(views);
  if (!tokenizer) {
    Error error = std::move(tokenizer).error();
    error.where = fmt::format("{} ({})", error.where, model_folder.string());
    return tl::unexpected(std::move(error));
  }
  return tokenizer;
}

Result<Tokenizer> Tokenizer::from_json(std::string_view tokenizer_json,
                                       std::string_view config_json) {
  return from_texts({.json = tokenizer_json, .config = config_json});
}

Result<Tokenizer> Tokenizer::from_texts(const TokenizerTexts& texts) {
  UK_TRY(config, read_tokenizer_config({.config = texts.config,
                                        .special_tokens_map = texts.special_tokens_map,
                                        .added_tokens = texts.added_tokens}));
  const bool is_sentencepiece = texts.json.empty() && !texts.sentencepiece.empty();
  auto parts = std::make_shared<Parts>();
  if (is_sentencepiece) name_sentencepiece_tokens(config);
  auto file = is_sentencepiece ? read_sentencepiece_model(texts.sentencepiece, config)
                               : read_tokenizer_json(texts.json);
  if (!file) return tl::unexpected(std::move(file).error());
  parts->file = std::make_shared<const TokenizerFile>(std::move(*file));
  UK_TRY_VOID(parts->take_added_tokens());
  UK_TRY_VOID(parts->take_config(config));
  if (is_sentencepiece) {
    parts->notes.emplace_back(
        "tokenizer.model was read as transformers 5 converts it, but merged by score like "
        "SentencePiece, which differs where text begins with a space");
    parts->take_template_of_config();
  } else {
    parts->take_template();
    parts->note_class(config.class_name);
  }
  UK_TRY_VOID(parts->added.finish(parts->file->normalizer.get()));
  if (!is_sentencepiece) parts->note_missing_bytes();
  Tokenizer tokenizer;
  tokenizer.parts_ = std::move(parts);
  return tokenizer;
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text,
                                                    const EncodeOptions& options) const {
  if (const auto offset = first_invalid_utf8(text))
    return fail(
        ErrorCode::bad_file,
        fmt::format("byte 0x{:02X} is not valid UTF-8", static_cast<unsigned char>(text[*offset])),
        fmt::format("byte {} of the text", *offset));
  std::vector<std::int32_t> ids;
  if (options.add_special_tokens) ids = parts_->prefix;
  ids.reserve(ids.size() + text.size() / 3 + 8);
  for (const Segment& raw : parts_->added.cut_raw(text, options.split_special_tokens)) {
    if (raw.id) {
      ids.push_back(*raw.id);
      continue;
    }
    const bool starts_text = raw.text.data() == text.data();
    std::string normalized;
    std::string_view rest = raw.text;
    if (parts_->file->normalizer != nullptr) {
      UK_TRY(result, parts_->file->normalizer->normalize(raw.text));
      normalized = std::move(result);
      rest = normalized;
    }
    for (const Segment& part : parts_->added.cut_normalized(rest, options.split_special_tokens)) {
      if (part.id)
        ids.push_back(*part.id);
      else
        UK_TRY_VOID(parts_->encode_text(part.text, starts_text && part.text.data() == rest.data(),
                                        options.use_word_cache, ids));
    }
  }
  if (options.add_special_tokens)
    ids.insert(ids.end(), parts_->suffix.begin(), parts_->suffix.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    const auto token = token_of(id);
    if (!token || (skip_special_tokens && parts_->added.is_special(*token))) continue;
    tokens.emplace_back(*token);
  }
  std::string text;
  for (const std::string& part : parts_->file->decoder->decode(std::move(tokens))) text += part;
  return text;
}

Result<Tokenizer> Tokenizer::with(const TokenChanges& changes) const {
  auto parts = std::make_shared<Parts>(*parts_);
  UK_TRY_VOID(parts->take_changes(changes));
  UK_TRY_VOID(parts->added.finish(parts->file->normalizer.get()));
  Tokenizer tokenizer;
  tokenizer.parts_ = std::move(parts);
  return tokenizer;
}

bool Tokenizer::is_special(std::int32_t id) const {
  const auto token = token_of(id);
  return token && parts_->added.is_special(*token);
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  if (const auto id = parts_->added.id_of(token)) return id;
  return parts_->file->model->id_of(token);
}

std::optional<std::string_view> Tokenizer::token_of(std::int32_t id) const {
  if (const AddedToken* added = parts_->added.token_of(id)) return added->found_as;
  return parts_->file->model->token_of(id);
}

std::int32_t Tokenizer::vocabulary_size() const {
  return std::max(parts_->file->model->largest_id(), parts_->added.largest_id()) + 1;
}

const SpecialTokens& Tokenizer::special_tokens() const {
  return parts_->special;
}
const std::vector<std::string>& Tokenizer::notes() const {
  return parts_->notes;
}

}  // namespace underkeel::data
