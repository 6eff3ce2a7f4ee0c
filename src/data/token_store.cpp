#include "data/token_store.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace underkeel::data {

Result<void> TokenStore::add(TokenFile file) {
  if (record_count() + file.record_count() > std::numeric_limits<std::uint32_t>::max())
    return fail(ErrorCode::unsupported, "more than 2^32 - 1 records", "dataset", "set max_samples");
  const std::int64_t first = record_count();
  lengths_.reserve(static_cast<std::size_t>(first + file.record_count()));
  UK_TRY_VOID(file.append_lengths(lengths_));
  std::int64_t begin = token_count_;
  for (std::int64_t record = first; record < record_count(); ++record) {
    if (record % stride == 0) begins_.push_back(begin);
    begin += length_of(record);
  }
  file_begins_.push_back(token_count_);
  token_count_ += file.token_count();
  files_.push_back(std::move(file));
  return {};
}

std::uint64_t TokenStore::content_checksum() const {
  io::Checksum checksum;
  for (const TokenFile& file : files_) {
    const std::uint64_t words = file.words_checksum();
    checksum.update(std::as_bytes(std::span(&words, 1)));
  }
  checksum.update(std::as_bytes(std::span(lengths_)));
  return checksum.value();
}

std::int64_t TokenStore::begin_of(std::int64_t record) const {
  std::int64_t begin = begins_[static_cast<std::size_t>(record / stride)];
  for (std::int64_t before = record / stride * stride; before < record; ++before)
    begin += length_of(before);
  return begin;
}

Result<void> TokenStore::read(std::int64_t begin, std::span<TokenWord> into) const {
  UK_CHECK(begin >= 0 && begin + static_cast<std::int64_t>(into.size()) <= token_count_,
           fmt::format("tokens {} to {} of {}", begin,
                       begin + static_cast<std::int64_t>(into.size()), token_count_));
  while (!into.empty()) {
    const auto after = std::upper_bound(file_begins_.begin(), file_begins_.end(), begin);
    const auto index = static_cast<std::size_t>(after - file_begins_.begin()) - 1;
    const TokenFile& file = files_[index];
    const std::int64_t offset = begin - file_begins_[index];
    const auto count = static_cast<std::size_t>(
        std::min(static_cast<std::int64_t>(into.size()), file.token_count() - offset));
    UK_TRY_VOID(file.read(offset, into.first(count)));
    into = into.subspan(count);
    begin += static_cast<std::int64_t>(count);
  }
  return {};
}

}  // namespace underkeel::data
