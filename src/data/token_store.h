#pragma once
// Tokenised documents on disk: written once, then read in any order with pread, so that resident
// memory holds only where each document ends (8 bytes a document).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/file.h"

namespace underkeel::data {

class TokenStore {
 public:
  /// Makes a file in `folder` that has no name any more and is gone with this object or process.
  /// `files` must outlive it.
  static Result<TokenStore> create(io::FileSystem& files, const std::string& folder);

  /// Adds a document. Errors: io (disk full, with the bytes needed and free).
  Result<void> append(std::span<const std::int32_t> tokens);
  /// Writes what is still in memory. Call after the last append(), before the first read().
  Result<void> finish();

  std::int64_t document_count() const { return static_cast<std::int64_t>(ends_.size()); }
  std::int64_t token_count() const { return ends_.empty() ? 0 : ends_.back(); }
  std::int64_t begin_of(std::int64_t document) const {
    return document == 0 ? 0 : ends_[static_cast<std::size_t>(document - 1)];
  }
  std::int64_t length_of(std::int64_t document) const {
    return ends_[static_cast<std::size_t>(document)] - begin_of(document);
  }

  /// Fills `into` with the tokens from `begin` on, counted over all documents in the order in which
  /// they were added. Threads: may be called by several at once.
  Result<void> read(std::int64_t begin, std::span<std::int32_t> into) const;

 private:
  explicit TokenStore(io::File file) : file_(std::move(file)) {}
  Result<void> flush();

  io::File file_;
  std::vector<std::int64_t> ends_;
  std::vector<std::int32_t> waiting_;  // appended, not yet written
  std::int64_t written_tokens_ = 0;
};

}  // namespace underkeel::data
