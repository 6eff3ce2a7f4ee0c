#pragma once
// Samples of stage sft: one record each, or packs of whole records.

#include <cstdint>
#include <memory>
#include <vector>

#include "data/packing.h"
#include "data/sample.h"
#include "data/token_store.h"

namespace underkeel::data {

struct ChatSampleOptions {
  bool packing = false;
  std::int64_t capacity_tokens = 0;  // of a pack
  PackingAttention attention = PackingAttention::block_diagonal;
  PackingBatches batches;
};

class ChatSamples final : public SampleSource {
 public:
  /// `order` names records of `store`; dropped ones among them take part in cutting batches, but are
  /// no samples.
  ChatSamples(std::shared_ptr<const TokenStore> store, const std::vector<std::uint32_t>& order,
              const ChatSampleOptions& options);

  std::int64_t count() const override;
  std::int64_t tokens_in(std::int64_t index) const override;
  std::int64_t largest_tokens() const override { return largest_tokens_; }
  std::int64_t resident_bytes() const override;
  Result<void> read(std::int64_t index, Sample& into) const override;
  std::uint64_t cut_checksum() const override;

  std::int64_t record_count() const { return static_cast<std::int64_t>(records_.size()); }
  std::int64_t used_tokens() const { return used_tokens_; }
  /// Records of one sample.
  std::int64_t records_in(std::int64_t index) const;
  /// Whether no token of the sample is a target.
  bool is_untrained(std::int64_t index) const;

 private:
  struct Range {
    std::size_t begin;
    std::size_t end;
  };
  Range range_of(std::int64_t index) const;
  Result<void> append(std::uint32_t record, std::vector<TokenWord>& words, Sample& into) const;

  std::shared_ptr<const TokenStore> store_;
  ChatSampleOptions options_;
  std::vector<std::uint32_t> records_;      // in the order of the samples
  std::vector<std::uint32_t> pack_begins_;  // in records_; empty without packing
  std::int64_t largest_tokens_ = 0;
  std::int64_t used_tokens_ = 0;
};

}  // namespace underkeel::data
