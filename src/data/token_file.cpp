#include "data/token_file.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/check.h"

namespace underkeel::data {
namespace {

constexpr std::size_t waiting_limit = std::size_t{1} << 18;  // words: writes of 1 MiB
constexpr char magic[8] = {'U', 'K', 'T', 'O', 'K', 'E', 'N', '2'};
constexpr std::int64_t word_bytes = sizeof(TokenWord);
constexpr std::int64_t largest_text_bytes = std::int64_t{1} << 26;

struct Header {
  char magic[8];
  std::int64_t record_count;
  std::int64_t token_count;
  std::int64_t key_bytes;
  std::int64_t report_bytes;
  std::uint64_t checksum;
  std::int32_t end_token;
  std::int32_t largest_token;
  std::uint64_t words_checksum;
};
static_assert(sizeof(Header) == 64);
constexpr std::int64_t header_bytes = sizeof(Header);

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The header without its checksum, then key and report: what a reader checks before the lengths.
io::Checksum begin_checksum(Header header, const TokenFileInfo& info) {
  header.checksum = 0;
  io::Checksum checksum;
  checksum.update(std::as_bytes(std::span(&header, 1)));
  checksum.update(bytes_of(info.key));
  checksum.update(bytes_of(info.report));
  return checksum;
}

// A name that no other process or thread uses: ids keep ranks on one machine apart, the host name
// those that share a folder.
std::string temporary_name(const std::string& path) {
  static std::atomic<int> made{0};
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return fmt::format("{}.{}-{}-{}.tmp", path, host, static_cast<long>(getpid()), made++);
}

}  // namespace

Result<TokenFileWriter> TokenFileWriter::create(io::FileSystem& files, const std::string& path) {
  UK_TRY_VOID(files.make_folders(io::folder_of(path)));
  const std::string temporary = temporary_name(path);
  UK_TRY(words, files.create(temporary));
  const std::string lengths_name = temporary_name(path);
  UK_TRY(lengths, files.create(lengths_name));
  UK_TRY_VOID(files.remove_file(lengths_name));
  return TokenFileWriter(files, std::move(words), std::move(lengths), path, temporary);
}

TokenFileWriter::TokenFileWriter(TokenFileWriter&& other) noexcept
    : files_(other.files_),
      words_(std::move(other.words_)),
      lengths_(std::move(other.lengths_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      waiting_words_(std::move(other.waiting_words_)),
      waiting_lengths_(std::move(other.waiting_lengths_)),
      words_checksum_(other.words_checksum_),
      written_words_(other.written_words_),
      written_lengths_(other.written_lengths_),
      record_count_(other.record_count_),
      token_count_(other.token_count_),
      largest_token_(other.largest_token_) {}

TokenFileWriter::~TokenFileWriter() {
  if (temporary_.empty()) return;
  // Nobody waits for the outcome: a later run removes what stays.
  static_cast<void>(files_->remove_file(temporary_));
}

Result<void> TokenFileWriter::add(const TokenisedRecord* record) {
  RecordLength length = record_dropped;
  if (record != nullptr) {
    if (record->words.size() >= record_length_mask)
      return fail(ErrorCode::unsupported,
                  fmt::format("a record of {} tokens", record->words.size()), path_);
    length = static_cast<RecordLength>(record->words.size()) |
             (record->figures.trained == 0 ? record_untrained : 0);
    for (const TokenWord word : record->words)
      largest_token_ = std::max(largest_token_, token_of(word));
    waiting_words_.insert(waiting_words_.end(), record->words.begin(), record->words.end());
    token_count_ += static_cast<std::int64_t>(record->words.size());
  }
  waiting_lengths_.push_back(length);
  ++record_count_;
  if (waiting_words_.size() >= waiting_limit) UK_TRY_VOID(flush_words());
  if (waiting_lengths_.size() >= waiting_limit) UK_TRY_VOID(flush_lengths());
  return {};
}

Result<void> TokenFileWriter::flush_words() {
  words_checksum_.update(bytes_of(waiting_words_));
  UK_TRY_VOID(words_.write(bytes_of(waiting_words_), header_bytes + written_words_ * word_bytes));
  written_words_ += static_cast<std::int64_t>(waiting_words_.size());
  waiting_words_.clear();
  return {};
}

Result<void> TokenFileWriter::flush_lengths() {
  UK_TRY_VOID(lengths_.write(bytes_of(waiting_lengths_), written_lengths_ * word_bytes));
  written_lengths_ += static_cast<std::int64_t>(waiting_lengths_.size());
  waiting_lengths_.clear();
  return {};
}

Result<void> TokenFileWriter::finish(const TokenFileInfo& info) {
  UK_TRY_VOID(flush_words());
  UK_TRY_VOID(flush_lengths());
  Header header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.record_count = record_count_;
  header.token_count = token_count_;
  header.key_bytes = static_cast<std::int64_t>(info.key.size());
  header.report_bytes = static_cast<std::int64_t>(info.report.size());
  header.end_token = info.end_token;
  header.largest_token = largest_token_;
  header.words_checksum = words_checksum_.value();
  io::Checksum checksum = begin_checksum(header, info);
  std::int64_t at = header_bytes + written_words_ * word_bytes;
  for (std::int64_t done = 0; done < record_count_;) {
    waiting_lengths_.resize(static_cast<std::size_t>(
        std::min(record_count_ - done, static_cast<std::int64_t>(waiting_limit))));
    UK_TRY_VOID(
        lengths_.read(std::as_writable_bytes(std::span(waiting_lengths_)), done * word_bytes));
    checksum.update(bytes_of(waiting_lengths_));
    UK_TRY_VOID(words_.write(bytes_of(waiting_lengths_), at));
    done += static_cast<std::int64_t>(waiting_lengths_.size());
    at += static_cast<std::int64_t>(waiting_lengths_.size()) * word_bytes;
  }
  UK_TRY_VOID(words_.write(bytes_of(info.key), at));
  UK_TRY_VOID(words_.write(bytes_of(info.report), at + header.key_bytes));
  header.checksum = checksum.value();
  UK_TRY_VOID(words_.write(std::as_bytes(std::span(&header, 1)), 0));
  UK_TRY_VOID(words_.sync());
  UK_TRY_VOID(files_->rename(temporary_, path_));
  temporary_.clear();
  return files_->sync_folder(io::folder_of(path_));
}

Result<std::optional<TokenFile>> TokenFile::open(io::FileSystem& files, const std::string& path,
                                                 std::string_view key) {
  if (!files.exists(path)) return std::nullopt;
  UK_TRY(file, files.open(path));
  UK_TRY(size_bytes, file.size_bytes());
  Header header{};
  if (size_bytes < header_bytes) return std::nullopt;
  UK_TRY_VOID(file.read(std::as_writable_bytes(std::span(&header, 1)), 0));
  const std::int64_t most = size_bytes / word_bytes;
  const bool is_whole =
      std::memcmp(header.magic, magic, sizeof magic) == 0 && header.record_count >= 0 &&
      header.token_count >= 0 && header.record_count <= most && header.token_count <= most &&
      header.key_bytes >= 0 && header.report_bytes >= 0 && header.key_bytes <= largest_text_bytes &&
      header.report_bytes <= largest_text_bytes &&
      header_bytes + (header.token_count + header.record_count) * word_bytes + header.key_bytes +
              header.report_bytes ==
          size_bytes;
  if (!is_whole || header.key_bytes != static_cast<std::int64_t>(key.size())) return std::nullopt;
  TokenFileInfo info;
  info.key.resize(key.size());
  info.report.resize(static_cast<std::size_t>(header.report_bytes));
  const std::int64_t at = header_bytes + (header.token_count + header.record_count) * word_bytes;
  UK_TRY_VOID(file.read(std::as_writable_bytes(std::span(info.key)), at));
  UK_TRY_VOID(file.read(std::as_writable_bytes(std::span(info.report)), at + header.key_bytes));
  if (info.key != key) return std::nullopt;
  info.end_token = header.end_token;
  info.largest_token = header.largest_token;
  io::Checksum checksum = begin_checksum(header, info);
  TokenFile opened(std::move(file), std::move(info));
  opened.record_count_ = header.record_count;
  opened.token_count_ = header.token_count;
  opened.words_checksum_ = header.words_checksum;
  std::vector<RecordLength> lengths;
  UK_TRY_VOID(opened.append_lengths(lengths));
  checksum.update(bytes_of(lengths));
  std::int64_t sum = 0;
  for (const RecordLength length : lengths)
    if ((length & record_dropped) == 0) sum += length & record_length_mask;
  if (checksum.value() != header.checksum || sum != header.token_count) return std::nullopt;
  return opened;
}

Result<void> TokenFile::append_lengths(std::vector<RecordLength>& into) const {
  const std::size_t before = into.size();
  into.resize(before + static_cast<std::size_t>(record_count_));
  return file_.read(std::as_writable_bytes(std::span(into).subspan(before)),
                    header_bytes + token_count_ * word_bytes);
}

Result<void> TokenFile::read(std::int64_t begin, std::span<TokenWord> into) const {
  UK_CHECK(begin >= 0 && begin + static_cast<std::int64_t>(into.size()) <= token_count_,
           fmt::format("tokens {} to {} of {}", begin,
                       begin + static_cast<std::int64_t>(into.size()), token_count_));
  UK_TRY_VOID(file_.read(std::as_writable_bytes(into), header_bytes + begin * word_bytes));
  for (const TokenWord word : into)
    if (token_of(word) > info_.largest_token)
      return fail(ErrorCode::bad_file,
                  fmt::format("the tokens are damaged: token {} where {} is the largest",
                              token_of(word), info_.largest_token),
                  file_.path(), "delete the file; it is made again");
  return {};
}

}  // namespace underkeel::data
