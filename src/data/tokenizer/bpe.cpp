// Byte-pair encoding of pieces: vocabulary, merges, and what becomes of unknown characters.

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "data/tokenizer/byte_words.h"
#include "data/tokenizer/merge_symbols.h"
#include "data/tokenizer/model.h"
#include "data/tokenizer/piece_cache.h"
#include "data/tokenizer/utf8.h"

namespace underkeel::data {
namespace {

// Ids index an array, so that a hostile file must not choose its size.
constexpr std::int32_t largest_allowed_id = 1 << 24;

class Bpe final : public Model {
 public:
  Result<void> build(BpeConfig config) {
    byte_fallback_ = config.byte_fallback;
    fuse_unknown_ = config.fuse_unknown;
    ignore_merges_ = config.ignore_merges;
    UK_TRY_VOID(take_vocabulary(config.vocabulary));
    UK_TRY_VOID(take_merges(config.merges));
    unknown_token_ = config.unknown_token;
    if (unknown_token_) unknown_id_ = id_of(*unknown_token_);
    for (int byte = 0; byte < 256 && byte_fallback_; ++byte)
      byte_ids_.push_back(id_of(fmt::format("<0x{:02X}>", byte)));
    if (config.has_byte_words) make_byte_words();
    return {};
  }

  Result<void> append_ids(std::string_view piece, std::vector<std::int32_t>& ids) const override {
    if (ignore_merges_) {
      if (const auto whole = id_of(piece)) {
        ids.push_back(*whole);
        return {};
      }
    }
    if (cache_.append_ids(piece, ids)) return {};
    const std::size_t first = ids.size();
    UK_TRY(symbols, symbols_of(piece));
    merge_symbols(symbols, merges_, ids);
    cache_.remember(piece, ids.data() + first, ids.size() - first);
    return {};
  }

  std::optional<std::int32_t> id_of(std::string_view token) const override {
    const auto found = id_of_.find(token);
    if (found == id_of_.end()) return std::nullopt;
    return found->second;
  }

  std::optional<std::string_view> token_of(std::int32_t id) const override {
    if (id < 0 || id > largest_id() || !has_token_[static_cast<std::size_t>(id)])
      return std::nullopt;
    return tokens_[static_cast<std::size_t>(id)];
  }

  const ByteWords* byte_words() const override { return byte_words_.get(); }

  std::int32_t token_count() const override { return static_cast<std::int32_t>(id_of_.size()); }
  std::int32_t largest_id() const override { return static_cast<std::int32_t>(tokens_.size()) - 1; }

 private:
  Result<void> take_vocabulary(std::vector<std::pair<std::string, std::int32_t>>& vocabulary) {
    std::int32_t largest = -1;
    for (const auto& [token, id] : vocabulary) {
      if (id < 0 || id > largest_allowed_id)
        return fail(ErrorCode::bad_file, fmt::format("token `{}` has the id {}", token, id),
                    "model.vocab", fmt::format("ids are 0 to {}", largest_allowed_id));
      largest = std::max(largest, id);
    }
    tokens_.resize(static_cast<std::size_t>(largest + 1));
    has_token_.resize(tokens_.size());
    for (auto& [token, id] : vocabulary) {
      const auto index = static_cast<std::size_t>(id);
      if (has_token_[index])
        return fail(
            ErrorCode::bad_file,
            fmt::format("tokens `{}` and `{}` have the same id {}", tokens_[index], token, id),
            "model.vocab");
      has_token_[index] = true;
      tokens_[index] = std::move(token);
    }
    id_of_.reserve(vocabulary.size());
    for (std::size_t id = 0; id < tokens_.size(); ++id)
      if (has_token_[id] && !id_of_.emplace(tokens_[id], static_cast<std::int32_t>(id)).second)
        return fail(ErrorCode::bad_file, fmt::format("token `{}` is there twice", tokens_[id]),
                    "model.vocab");
    return {};
  }

  void make_byte_words() {
    std::vector<ByteWords::Token> tokens;
    tokens.reserve(id_of_.size());
    for (const auto& [text, id] : id_of_) tokens.push_back({.text = text, .id = id});
    byte_words_ = ByteWords::make(tokens, merges_, ignore_merges_);
  }

  Result<void> take_merges(const std::vector<std::pair<std::string, std::string>>& merges) {
    std::vector<MergePair> pairs;
    pairs.reserve(merges.size());
    for (std::size_t index = 0; index < merges.size(); ++index) {
      const auto& [left, right] = merges[index];
      const auto left_id = id_of(left);
      const auto right_id = id_of(right);
      const auto merged_id = id_of(left + right);
      if (!left_id || !right_id || !merged_id)
        return fail(ErrorCode::bad_file,
                    fmt::format("merge `{} {}`: `{}` is not in the vocabulary", left, right,
                                !left_id    ? left
                                : !right_id ? right
                                            : left + right),
                    fmt::format("model.merges[{}]", index));
      pairs.push_back({.left = *left_id,
                       .right = *right_id,
                       .merge = {static_cast<std::int32_t>(index), *merged_id}});
    }
    merges_ = MergeTable(pairs);
    return {};
  }

  Result<std::vector<std::int32_t>> symbols_of(std::string_view piece) const {
    std::vector<std::int32_t> symbols;
    symbols.reserve(piece.size());
    bool unknown_waits = false;  // an unknown run whose id is not yet in `symbols`
    const auto put = [&](std::int32_t id) { symbols.push_back(id); };
    while (!piece.empty()) {
      const std::string_view character = piece.substr(0, code_point_bytes(piece[0]));
      piece.remove_prefix(character.size());
      if (const auto id = id_of(character)) {
        if (unknown_waits) put(*unknown_id_);
        unknown_waits = false;
        put(*id);
      } else if (byte_fallback_ && has_all_bytes(character)) {
        // A waiting unknown token stays behind these bytes; the library does the same.
        for (const char byte : character) put(*byte_ids_[static_cast<unsigned char>(byte)]);
      } else if (unknown_token_) {
        if (!unknown_id_)
          return fail(ErrorCode::bad_file,
                      fmt::format("`{}` is not in the vocabulary, and neither is the unknown "
                                  "token `{}`",
                                  character, *unknown_token_),
                      "model.unk_token");
        if (unknown_waits && !fuse_unknown_) put(*unknown_id_);
        unknown_waits = true;
      }
    }
    if (unknown_waits) put(*unknown_id_);
    return symbols;
  }

  bool has_all_bytes(std::string_view character) const {
    return std::all_of(character.begin(), character.end(), [&](char byte) {
      return byte_ids_[static_cast<unsigned char>(byte)].has_value();
    });
  }

  std::vector<std::string> tokens_;  // by id
  std::vector<bool> has_token_;
  std::unordered_map<std::string_view, std::int32_t> id_of_;  // views into tokens_
  MergeTable merges_;
  std::unique_ptr<ByteWords> byte_words_;
  std::vector<std::optional<std::int32_t>> byte_ids_;  // of the tokens <0x00> to <0xFF>
  std::optional<std::string> unknown_token_;
  std::optional<std::int32_t> unknown_id_;
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
  mutable PieceCache cache_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_bpe(BpeConfig config) {
  auto model = std::make_unique<Bpe>();
  UK_TRY_VOID(model->build(std::move(config)));
  return model;
}

}  // namespace underkeel::data
