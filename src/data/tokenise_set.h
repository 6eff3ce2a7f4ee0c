#pragma once
// One data set tokenised into the cache, or found there. Private to dataset.

#include "base/result.h"
#include "data/dataset.h"
#include "data/token_cache.h"

namespace underkeel::data {

struct TokenisedSet {
  TokenFile tokens;
  DatasetFigures figures;
};

/// Errors: those of read_records(); io.
Result<TokenisedSet> tokenise_set(io::FileSystem& files, const Tokenizer& tokenizer,
                                  const DatasetEntry& entry, const DatasetOptions& options);

/// What ends a text of stage pt. Errors: bad_config when the tokenizer has no end token.
Result<std::string> text_end_of(const Tokenizer& tokenizer, const DatasetOptions& options);

}  // namespace underkeel::data
