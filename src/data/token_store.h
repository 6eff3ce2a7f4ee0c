#pragma once
// The tokenised records of all data sets of a run, numbered one set after the other. Resident memory
// holds how long each record is (4 bytes a record); the tokens stay on the disk.

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/token_file.h"

namespace underkeel::data {

class TokenStore {
 public:
  /// The records of `file` come after those that are there. Errors: io; unsupported above 2^32 - 1
  /// records.
  Result<void> add(TokenFile file);

  std::int64_t record_count() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t token_count() const { return token_count_; }
  /// Host memory that it keeps.
  std::int64_t resident_bytes() const {
    return static_cast<std::int64_t>(lengths_.capacity() * sizeof(RecordLength) +
                                     begins_.capacity() * sizeof(std::int64_t));
  }
  /// Tokens of a record; 0 for one that was dropped.
  std::int64_t length_of(std::int64_t record) const {
    const RecordLength length = lengths_[static_cast<std::size_t>(record)];
    return (length & record_dropped) != 0 ? 0 : length & record_length_mask;
  }
  bool is_dropped(std::int64_t record) const {
    return (lengths_[static_cast<std::size_t>(record)] & record_dropped) != 0;
  }
  bool is_untrained(std::int64_t record) const {
    return (lengths_[static_cast<std::size_t>(record)] & record_untrained) != 0;
  }
  /// Tokens before the record.
  std::int64_t begin_of(std::int64_t record) const;
  /// XXH3 of all words and lengths: the same for the same records in the same order.
  std::uint64_t content_checksum() const;
  std::int32_t end_token() const { return files_.empty() ? 0 : files_.front().end_token(); }

  /// Fills `into` with the words from `begin` on, counted over all records.
  /// Threads: may be called by several at once.
  Result<void> read(std::int64_t begin, std::span<TokenWord> into) const;

 private:
  // begin_of() adds up at most this many lengths.
  static constexpr std::int64_t stride = 64;

  std::vector<TokenFile> files_;
  std::vector<std::int64_t> file_begins_;  // tokens before each file
  std::vector<RecordLength> lengths_;
  std::vector<std::int64_t> begins_;  // of every stride-th record
  std::int64_t token_count_ = 0;
};

}  // namespace underkeel::data
