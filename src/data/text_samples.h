#pragma once
// Samples of plain text for stage pt: blocks cut from documents laid end to end, or one sample a
// document.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/packing.h"
#include "data/sample.h"
#include "data/token_store.h"

namespace underkeel::data {

struct TextSampleOptions {
  std::int64_t cutoff_tokens = 2048;
  bool packing = true;
  PackingAttention attention = PackingAttention::block_diagonal;
  /// Documents that are laid end to end before the rest is dropped.
  PackingBatches batches;
  /// add_bos_token. Packed: overwrites the first token of every block. Else the documents in the
  /// store already begin with it.
  std::optional<std::int32_t> block_begin;
};

class TextSamples final : public SampleSource {
 public:
  /// `order` names documents of `store`; dropped ones among them are no samples.
  TextSamples(std::shared_ptr<const TokenStore> store, std::vector<std::uint32_t> order,
              const TextSampleOptions& options);

  std::int64_t count() const override;
  std::int64_t tokens_in(std::int64_t index) const override;
  std::int64_t largest_tokens() const override { return largest_tokens_; }
  std::int64_t resident_bytes() const override;
  Result<void> read(std::int64_t index, Sample& into) const override;
  std::uint64_t cut_checksum() const override;

  /// Tokens of the documents that are in no sample: block rests, tails beyond the cut-off.
  std::int64_t dropped_tokens() const { return dropped_tokens_; }
  std::int64_t used_tokens() const { return used_tokens_; }

 private:
  // A block begins inside a document; all blocks hold cutoff_tokens.
  struct Block {
    std::uint32_t position;  // in order_
    std::int32_t offset;     // tokens into that document
  };

  void cut_blocks();
  Result<void> read_tokens(std::int64_t begin, std::span<std::int32_t> into) const;
  Result<void> read_block(const Block& block, Sample& into) const;

  std::shared_ptr<const TokenStore> store_;
  std::vector<std::uint32_t> order_;
  TextSampleOptions options_;
  std::vector<Block> blocks_;  // empty without packing
  std::int64_t largest_tokens_ = 0;
  std::int64_t used_tokens_ = 0;
  std::int64_t dropped_tokens_ = 0;
};

}  // namespace underkeel::data
