// Reads the protocol buffer by hand: it has three levels and five kinds of fields, and the library's
// interface tells neither control from user-defined pieces nor the normalization.

#include "data/tokenizer/sentencepiece_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "data/tokenizer/metaspace.h"
#include "data/tokenizer/utf8.h"

namespace underkeel::data {
namespace {

constexpr const char* file_name = "tokenizer.model";
constexpr const char* mark = "\xE2\x96\x81";  // U+2581
constexpr std::size_t most_pieces = std::size_t{1} << 22;
// Merges are made from every cut of every piece, so that a long one costs its square.
constexpr std::size_t longest_piece_bytes = 1024;

struct Field {
  std::uint32_t number = 0;
  std::uint64_t value = 0;  // of a number
  std::string_view bytes;   // of a text or a message
  bool is_bytes = false;
};

// Walks over the fields of one message. Offsets are those of the whole file.
class Fields {
 public:
  Fields(std::string_view message, std::size_t offset) : rest_(message), offset_(offset) {}

  bool at_end() const { return rest_.empty(); }
  std::size_t offset() const { return offset_; }

  Result<Field> next() {
    UK_TRY(key, read_varint());
    if (key >> 3 == 0 || key >> 3 > std::numeric_limits<std::uint32_t>::max())
      return broken("a field without a number");
    Field field{.number = static_cast<std::uint32_t>(key >> 3)};
    switch (key & 7) {
      case 0: {
        UK_TRY(value, read_varint());
        field.value = value;
        return field;
      }
      case 1:
        UK_TRY_VOID(take(8));
        return field;
      case 2: {
        UK_TRY(size, read_varint());
        field.is_bytes = true;
        UK_TRY(bytes, take(size));
        field.bytes = bytes;
        return field;
      }
      case 5: {
        UK_TRY(bytes, take(4));
        std::uint32_t bits = 0;
        std::memcpy(&bits, bytes.data(), sizeof bits);
        field.value = bits;
        return field;
      }
      default:
        return broken(fmt::format("a field of the unknown kind {}", key & 7));
    }
  }

 private:
  tl::unexpected<Error> broken(std::string what) const {
    return fail(ErrorCode::bad_file, "not a SentencePiece model: " + what,
                fmt::format("{}, byte {}", file_name, offset_));
  }

  Result<std::uint64_t> read_varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return broken("a number is cut off");
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      ++offset_;
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    return broken("a number is longer than 64 bits");
  }

  Result<std::string_view> take(std::uint64_t size) {
    if (size > rest_.size())
      return broken(fmt::format("{} bytes announced, {} left", size, rest_.size()));
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    offset_ += size;
    return bytes;
  }

  std::string_view rest_;
  std::size_t offset_;
};

enum class PieceKind : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

struct Piece {
  std::string text;
  PieceKind kind = PieceKind::normal;
  float score = 0;
};

struct SentencePieceModel {
  std::vector<Piece> pieces;
  std::uint64_t model_type = 1;  // 1 Unigram, 2 BPE
  bool has_character_map = false;
  bool adds_prefix = true;
};

Result<Piece> read_piece(std::string_view message, std::size_t offset) {
  Piece piece;
  Fields fields(message, offset);
  while (!fields.at_end()) {
    UK_TRY(field, fields.next());
    if (field.number == 1) piece.text = std::string(field.bytes);
    if (field.number == 2)
      piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
    if (field.number != 3) continue;
    if (field.value < 1 || field.value > 6)
      return fail(ErrorCode::bad_file, fmt::format("a piece of the unknown kind {}", field.value),
                  fmt::format("{}, byte {}", file_name, offset));
    piece.kind = static_cast<PieceKind>(field.value);
  }
  if (piece.text.empty() || piece.text.size() > longest_piece_bytes ||
      first_invalid_utf8(piece.text))
    return fail(
        ErrorCode::bad_file,
        fmt::format("a piece of {} bytes is empty, too long or not UTF-8", piece.text.size()),
        fmt::format("{}, byte {}", file_name, offset));
  if (std::isnan(piece.score))
    return fail(ErrorCode::bad_file,
                fmt::format("the score of piece `{}` is no number", piece.text),
                fmt::format("{}, byte {}", file_name, offset));
  return piece;
}

Result<SentencePieceModel> read_model(std::string_view bytes) {
  SentencePieceModel model;
  Fields fields(bytes, 0);
  while (!fields.at_end()) {
    UK_TRY(field, fields.next());
    const std::size_t begin = fields.offset() - field.bytes.size();
    if (field.number == 1 && field.is_bytes) {
      UK_TRY(piece, read_piece(field.bytes, begin));
      if (model.pieces.size() == most_pieces)
        return fail(ErrorCode::bad_file, fmt::format("more than {} pieces", most_pieces),
                    file_name);
      model.pieces.push_back(std::move(piece));
    }
    if (field.number == 2 && field.is_bytes) {
      Fields trainer(field.bytes, begin);
      while (!trainer.at_end()) {
        UK_TRY(option, trainer.next());
        if (option.number == 3) model.model_type = option.value;
      }
    }
    if (field.number == 3 && field.is_bytes) {
      Fields normalizer(field.bytes, begin);
      while (!normalizer.at_end()) {
        UK_TRY(option, normalizer.next());
        if (option.number == 2) model.has_character_map = !option.bytes.empty();
        if (option.number == 3) model.adds_prefix = option.value != 0;
      }
    }
  }
  if (model.pieces.empty())
    return fail(ErrorCode::bad_file, "not a SentencePiece model: it has no pieces", file_name);
  return model;
}

// Merges go by the score of what they make. Trained pieces stand in that order, but pieces put in by
// hand, such as the runs of spaces in Llama's and Mistral's models, have the least score and the first ids.
BpeConfig bpe_of(const std::vector<Piece>& pieces) {
  BpeConfig config;
  config.fuse_unknown = true;
  config.byte_fallback = true;
  std::unordered_set<std::string_view> known;
  std::vector<const Piece*> by_score;
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    config.vocabulary.emplace_back(pieces[id].text, static_cast<std::int32_t>(id));
    known.insert(pieces[id].text);
    by_score.push_back(&pieces[id]);
  }
  std::stable_sort(by_score.begin(), by_score.end(),
                   [](const Piece* a, const Piece* b) { return a->score > b->score; });
  for (const Piece* piece : by_score) {
    const std::string_view text = piece->text;
    for (std::size_t cut = code_point_bytes(text[0]); cut < text.size();
         cut += code_point_bytes(text[cut])) {
      const std::string_view left = text.substr(0, cut);
      const std::string_view right = text.substr(cut);
      if (known.contains(left) && known.contains(right)) config.merges.emplace_back(left, right);
    }
  }
  return config;
}

Result<std::unique_ptr<Decoder>> decoder_of(bool strips_prefix) {
  std::vector<std::unique_ptr<Decoder>> parts;
  UK_TRY(marks, Regex::compile(mark));
  parts.push_back(make_replace_decoder(std::move(marks), " "));
  parts.push_back(make_byte_fallback_decoder());
  parts.push_back(make_fuse_decoder());
  if (strips_prefix) parts.push_back(make_strip_decoder({.character = " ", .left = 1}));
  return make_decoder_sequence(std::move(parts));
}

}  // namespace

Result<TokenizerFile> read_sentencepiece_model(std::string_view bytes,
                                               const TokenizerConfigFile& config) {
  UK_TRY(model, read_model(bytes));
  const auto unsupported = [](std::string what) {
    return fail(ErrorCode::unsupported, std::move(what), file_name,
                "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) in transformers "
                "may write a tokenizer.json");
  };
  if (model.model_type != 2)
    return unsupported(
        fmt::format("SentencePiece model of type {} is not supported yet (only BPE)",
                    model.model_type == 1 ? "Unigram" : std::to_string(model.model_type)));
  if (model.has_character_map)
    return unsupported("a SentencePiece model that normalizes characters is not supported yet");
  TokenizerFile file;
  const bool adds_prefix = config.add_prefix_space.value_or(model.adds_prefix);
  const Prepend prepend = !adds_prefix    ? Prepend::never
                          : config.legacy ? Prepend::always
                                          : Prepend::first;
  UK_TRY(pre_tokenizer, make_metaspace({.prepend = prepend, .split = false}));
  file.pre_tokenizer = std::move(pre_tokenizer);
  UK_TRY(decoder, decoder_of(adds_prefix));
  file.decoder = std::move(decoder);
  UK_TRY(bpe, make_bpe(bpe_of(model.pieces)));
  file.model = std::move(bpe);
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    if (piece.kind != PieceKind::control && piece.kind != PieceKind::user_defined) continue;
    file.added_tokens.push_back({.content = piece.text,
                                 .id = static_cast<std::int32_t>(id),
                                 .normalized = false,
                                 .special = piece.kind == PieceKind::control});
  }
  return file;
}

}  // namespace underkeel::data
