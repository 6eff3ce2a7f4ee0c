#pragma once
// Tokens that were made before are found again, by a key of everything that they depend on.

#include <functional>
#include <string>

#include "base/result.h"
#include "data/token_file.h"

namespace underkeel::data {

struct TokenCacheRequest {
  std::string folder;
  std::string name;        // of the data set: begins the file's name
  std::string key;         // told apart in full, not only by its checksum
  bool make_anew = false;  // also where there is one
};

struct CachedTokens {
  TokenFile file;
  bool was_there = false;
};

/// Fills a writer; returns what the file keeps besides tokens (the key is set by the cache).
using MakeTokens = std::function<Result<TokenFileInfo>(TokenFileWriter&)>;

/// Opens the file of `request.key`, made now when there is none. Of several processes that share the
/// folder one makes it while the others wait, where the file system has locks; else each makes its
/// own and the last one stays.
/// Errors: those of `make`; io.
Result<CachedTokens> find_or_make_tokens(io::FileSystem& files, const TokenCacheRequest& request,
                                         const MakeTokens& make);

/// XXH3 of a file's bytes, as 16 hexadecimal digits. Errors: not_found, io.
Result<std::string> content_checksum(io::FileSystem& files, const std::string& path);
std::string text_checksum(std::string_view text);

}  // namespace underkeel::data
