#pragma once
// Tokenised records of one data set in a file that later runs use again.
//
// Little-endian: a header of 64 bytes; the words of all records end to end (TokenWord); a length of
// 32 bits for each record; the key; the report. The header's checksum covers all but the words, whose own
// is kept in it to tell contents apart; it is not checked when they are read.
// Read with pread, not mapped: mapped pages count as resident memory, which a run keeps a promise
// about, and a disk that fails is an error then, not a signal.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/tokenised.h"
#include "io/checksum.h"
#include "io/file.h"

namespace underkeel::data {

/// The length of a record in the file, with what became of it.
using RecordLength = std::uint32_t;
constexpr RecordLength record_dropped = RecordLength{1} << 31;
constexpr RecordLength record_untrained = RecordLength{1} << 30;  // no token of it is a target
constexpr RecordLength record_length_mask = record_untrained - 1;

struct TokenFileInfo {
  std::string key;     // of what the tokens depend on
  std::string report;  // what the maker wants to know again
  std::int32_t end_token = 0;
  std::int32_t largest_token = -1;
};

class TokenFileWriter {
 public:
  /// `path` is the name that the file gets when it is whole; until then a name that ends in .tmp.
  static Result<TokenFileWriter> create(io::FileSystem& files, const std::string& path);
  TokenFileWriter(TokenFileWriter&& other) noexcept;
  TokenFileWriter& operator=(TokenFileWriter&&) = delete;
  ~TokenFileWriter();  // what is not finished goes

  /// Adds a record; null: one that was dropped. Errors: io (disk full, with bytes needed and free);
  /// unsupported for a record of 2^30 tokens.
  Result<void> add(const TokenisedRecord* record);
  std::int64_t record_count() const { return record_count_; }
  std::int64_t token_count() const { return token_count_; }
  std::int32_t largest_token() const { return largest_token_; }

  /// Writes what is still in memory and gives the file its name, durably.
  Result<void> finish(const TokenFileInfo& info);

 private:
  TokenFileWriter(io::FileSystem& files, io::File words, io::File lengths, std::string path,
                  std::string temporary)
      : files_(&files),
        words_(std::move(words)),
        lengths_(std::move(lengths)),
        path_(std::move(path)),
        temporary_(std::move(temporary)) {}
  Result<void> flush_words();
  Result<void> flush_lengths();

  io::FileSystem* files_;
  io::File words_;
  io::File lengths_;
  std::string path_;
  std::string temporary_;
  std::vector<TokenWord> waiting_words_;
  std::vector<RecordLength> waiting_lengths_;
  io::Checksum words_checksum_;
  std::int64_t written_words_ = 0;
  std::int64_t written_lengths_ = 0;
  std::int64_t record_count_ = 0;
  std::int64_t token_count_ = 0;
  std::int32_t largest_token_ = -1;
};

class TokenFile {
 public:
  /// Nothing when there is no such file, or it is not whole, or has another key.
  static Result<std::optional<TokenFile>> open(io::FileSystem& files, const std::string& path,
                                               std::string_view key);

  const std::string& report() const { return info_.report; }
  std::int32_t end_token() const { return info_.end_token; }
  std::int32_t largest_token() const { return info_.largest_token; }
  std::int64_t record_count() const { return record_count_; }
  std::int64_t token_count() const { return token_count_; }
  /// XXH3 of all words, as they were written.
  std::uint64_t words_checksum() const { return words_checksum_; }

  /// The lengths of all records. Errors: bad_file when they are not those that were written.
  Result<void> append_lengths(std::vector<RecordLength>& into) const;
  /// Fills `into` with the words from `begin` on, counted over all records.
  /// Errors: bad_file for a token that was never written; io. Threads: several at once.
  Result<void> read(std::int64_t begin, std::span<TokenWord> into) const;

 private:
  TokenFile(io::File file, TokenFileInfo info) : file_(std::move(file)), info_(std::move(info)) {}

  io::File file_;
  TokenFileInfo info_;
  std::int64_t record_count_ = 0;
  std::int64_t token_count_ = 0;
  std::uint64_t words_checksum_ = 0;
};

}  // namespace underkeel::data
