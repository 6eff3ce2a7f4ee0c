#include "data/text_samples.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "io/checksum.h"

namespace underkeel::data {

TextSamples::TextSamples(std::shared_ptr<const TokenStore> store, std::vector<std::uint32_t> order,
                         const TextSampleOptions& options)
    : store_(std::move(store)), order_(std::move(order)), options_(options) {
  UK_CHECK(options_.cutoff_tokens > 0 && options_.batches.batch_records > 0,
           "text samples of no length");
  std::int64_t all_tokens = 0;
  for (const std::uint32_t document : order_) all_tokens += store_->length_of(document);
  if (options_.packing) {
    cut_blocks();
    largest_tokens_ = blocks_.empty() ? 0 : options_.cutoff_tokens;
    used_tokens_ = static_cast<std::int64_t>(blocks_.size()) * options_.cutoff_tokens;
  } else {
    std::erase_if(order_, [&](std::uint32_t document) { return store_->is_dropped(document); });
    for (std::int64_t index = 0; index < count(); ++index) {
      largest_tokens_ = std::max(largest_tokens_, tokens_in(index));
      used_tokens_ += tokens_in(index);
    }
  }
  dropped_tokens_ = all_tokens - used_tokens_;
}

void TextSamples::cut_blocks() {
  std::size_t first = 0;
  for (const std::int64_t end :
       batch_ends(static_cast<std::int64_t>(order_.size()), options_.batches)) {
    const auto last = static_cast<std::size_t>(end);
    std::int64_t left = 0;
    for (std::size_t position = first; position < last; ++position)
      left += store_->length_of(order_[position]);
    std::int64_t offset = 0;
    std::size_t position = first;
    for (; left >= options_.cutoff_tokens; left -= options_.cutoff_tokens) {
      while (offset >= store_->length_of(order_[position]))
        offset -= store_->length_of(order_[position++]);
      blocks_.push_back({static_cast<std::uint32_t>(position), static_cast<std::int32_t>(offset)});
      offset += options_.cutoff_tokens;
    }
    first = last;
  }
  blocks_.shrink_to_fit();
}

std::int64_t TextSamples::count() const {
  return static_cast<std::int64_t>(options_.packing ? blocks_.size() : order_.size());
}

std::int64_t TextSamples::tokens_in(std::int64_t index) const {
  UK_CHECK(index >= 0 && index < count(), fmt::format("sample {} of {}", index, count()));
  if (options_.packing) return options_.cutoff_tokens;
  return std::min(store_->length_of(order_[static_cast<std::size_t>(index)]),
                  options_.cutoff_tokens);
}

std::int64_t TextSamples::resident_bytes() const {
  return static_cast<std::int64_t>(order_.capacity() * sizeof(std::uint32_t) +
                                   blocks_.capacity() * sizeof(Block)) +
         store_->resident_bytes();
}

std::uint64_t TextSamples::cut_checksum() const {
  io::Checksum checksum;
  const auto add = [&](std::int64_t value) {
    checksum.update(std::as_bytes(std::span(&value, 1)));
  };
  if (!options_.packing) {
    for (std::int64_t index = 0; index < count(); ++index) {
      add(order_[static_cast<std::size_t>(index)]);
      add(tokens_in(index));
    }
    return checksum.value();
  }
  add(options_.cutoff_tokens);
  add(options_.block_begin ? *options_.block_begin : -1);
  add(options_.attention == PackingAttention::shared);
  checksum.update(std::as_bytes(std::span(order_)));
  for (const Block& block : blocks_) {
    add(block.position);
    add(block.offset);
  }
  return checksum.value();
}

Result<void> TextSamples::read(std::int64_t index, Sample& into) const {
  UK_CHECK(index >= 0 && index < count(), fmt::format("sample {} of {}", index, count()));
  into.clear();
  if (options_.packing) {
    UK_TRY_VOID(read_block(blocks_[static_cast<std::size_t>(index)], into));
  } else {
    const std::int64_t document = order_[static_cast<std::size_t>(index)];
    const std::int64_t length = tokens_in(index);
    into.tokens.resize(static_cast<std::size_t>(length));
    UK_TRY_VOID(read_tokens(store_->begin_of(document), into.tokens));
    into.sequence_lengths.push_back(static_cast<std::int32_t>(length));
  }
  into.labels = into.tokens;
  return {};
}

Result<void> TextSamples::read_tokens(std::int64_t begin, std::span<std::int32_t> into) const {
  // A token and its word have the same size; the label's bits go.
  const std::span words(reinterpret_cast<TokenWord*>(into.data()), into.size());
  UK_TRY_VOID(store_->read(begin, words));
  for (std::size_t i = 0; i < words.size(); ++i) into[i] = token_of(words[i]);
  return {};
}

Result<void> TextSamples::read_block(const Block& block, Sample& into) const {
  into.tokens.resize(static_cast<std::size_t>(options_.cutoff_tokens));
  std::span<std::int32_t> rest(into.tokens);
  std::int64_t offset = block.offset;
  for (std::size_t position = block.position; !rest.empty();) {
    // Documents that follow each other in the store are read in one go.
    const std::int64_t begin = store_->begin_of(order_[position]) + offset;
    std::size_t wanted = 0;
    do {
      const std::int64_t length = store_->length_of(order_[position]) - offset;
      const auto taken = std::min(static_cast<std::size_t>(length), rest.size() - wanted);
      if (taken > 0) into.sequence_lengths.push_back(static_cast<std::int32_t>(taken));
      wanted += taken;
      offset = 0;
      ++position;
    } while (wanted < rest.size() && order_[position] == order_[position - 1] + 1);
    UK_TRY_VOID(read_tokens(begin, rest.first(wanted)));
    rest = rest.subspan(wanted);
  }
  if (options_.block_begin) into.tokens[0] = *options_.block_begin;
  if (options_.attention == PackingAttention::shared)
    into.sequence_lengths = {static_cast<std::int32_t>(options_.cutoff_tokens)};
  return {};
}

}  // namespace underkeel::data
