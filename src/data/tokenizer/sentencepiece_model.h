#pragma once
// tokenizer.model: what SentencePiece trained, made into the parts of a tokenizer.json as
// transformers 5 does (docs/decisions/0009).

#include <string_view>

#include "base/result.h"
#include "data/tokenizer/tokenizer_json.h"

namespace underkeel::data {

/// Of the pieces come the vocabulary and the merges: every way to cut a piece into two others, by the
/// id of the piece. `config` says where the mark for a space is put before text: never without
/// add_prefix_space, before every part of the text with legacy, else at its start.
/// Errors: bad_file with the offset; unsupported for models that are not BPE and for normalization.
Result<TokenizerFile> read_sentencepiece_model(std::string_view bytes,
                                               const TokenizerConfigFile& config);

}  // namespace underkeel::data
