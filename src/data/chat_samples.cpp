#include "data/chat_samples.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "io/checksum.h"

namespace underkeel::data {

ChatSamples::ChatSamples(std::shared_ptr<const TokenStore> store,
                         const std::vector<std::uint32_t>& order, const ChatSampleOptions& options)
    : store_(std::move(store)), options_(options) {
  records_.reserve(order.size());
  if (!options_.packing) {
    for (const std::uint32_t record : order)
      if (!store_->is_dropped(record)) records_.push_back(record);
  } else {
    std::vector<std::uint32_t> batch;
    std::vector<std::int64_t> lengths;
    std::size_t begin = 0;
    for (const std::int64_t end :
         batch_ends(static_cast<std::int64_t>(order.size()), options_.batches)) {
      batch.clear();
      lengths.clear();
      for (; begin < static_cast<std::size_t>(end); ++begin) {
        if (store_->is_dropped(order[begin])) continue;
        batch.push_back(order[begin]);
        lengths.push_back(store_->length_of(order[begin]));
      }
      for (const auto& places : pack(lengths, options_.capacity_tokens)) {
        pack_begins_.push_back(static_cast<std::uint32_t>(records_.size()));
        for (const std::uint32_t place : places) records_.push_back(batch[place]);
      }
    }
  }
  for (const std::uint32_t record : records_) used_tokens_ += store_->length_of(record);
  for (std::int64_t index = 0; index < count(); ++index)
    largest_tokens_ = std::max(largest_tokens_, tokens_in(index));
}

std::int64_t ChatSamples::count() const {
  return static_cast<std::int64_t>(options_.packing ? pack_begins_.size() : records_.size());
}

ChatSamples::Range ChatSamples::range_of(std::int64_t index) const {
  UK_CHECK(index >= 0 && index < count(), fmt::format("sample {} of {}", index, count()));
  const auto at = static_cast<std::size_t>(index);
  if (!options_.packing) return {at, at + 1};
  return {pack_begins_[at], at + 1 < pack_begins_.size() ? pack_begins_[at + 1] : records_.size()};
}

std::int64_t ChatSamples::records_in(std::int64_t index) const {
  const Range range = range_of(index);
  return static_cast<std::int64_t>(range.end - range.begin);
}

std::int64_t ChatSamples::tokens_in(std::int64_t index) const {
  const Range range = range_of(index);
  std::int64_t tokens = 0;
  for (std::size_t place = range.begin; place < range.end; ++place)
    tokens += store_->length_of(records_[place]);
  return tokens;
}

bool ChatSamples::is_untrained(std::int64_t index) const {
  const Range range = range_of(index);
  for (std::size_t place = range.begin; place < range.end; ++place)
    if (!store_->is_untrained(records_[place])) return false;
  return true;
}

Result<void> ChatSamples::append(std::uint32_t record, std::vector<TokenWord>& words,
                                 Sample& into) const {
  words.resize(static_cast<std::size_t>(store_->length_of(record)));
  UK_TRY_VOID(store_->read(store_->begin_of(record), words));
  for (std::size_t i = 0; i < words.size(); ++i) {
    into.tokens.push_back(token_of(words[i]));
    into.labels.push_back(label_of(words[i], store_->end_token()));
    into.positions.push_back(static_cast<std::int32_t>(i));
  }
  if (!words.empty()) into.sequence_lengths.push_back(static_cast<std::int32_t>(words.size()));
  return {};
}

std::int64_t ChatSamples::resident_bytes() const {
  return static_cast<std::int64_t>((records_.capacity() + pack_begins_.capacity()) *
                                   sizeof(std::uint32_t)) +
         store_->resident_bytes();
}

std::uint64_t ChatSamples::cut_checksum() const {
  io::Checksum checksum;
  checksum.update(std::as_bytes(std::span(records_)));
  checksum.update(std::as_bytes(std::span(pack_begins_)));
  const bool is_shared = options_.packing && options_.attention == PackingAttention::shared;
  checksum.update(std::as_bytes(std::span(&is_shared, 1)));
  return checksum.value();
}

Result<void> ChatSamples::read(std::int64_t index, Sample& into) const {
  const Range range = range_of(index);
  into.clear();
  std::vector<TokenWord> words;
  for (std::size_t place = range.begin; place < range.end; ++place)
    UK_TRY_VOID(append(records_[place], words, into));
  if (options_.attention == PackingAttention::shared && into.sequence_lengths.size() > 1)
    into.sequence_lengths = {static_cast<std::int32_t>(into.tokens.size())};
  return {};
}

}  // namespace underkeel::data
