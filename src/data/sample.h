#pragma once
// A sample as training sees it, and where samples come from.

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace underkeel::data {

/// The label of a token that is no target.
constexpr std::int32_t ignored_label = -100;

/// Tokens of one sample: one or more sequences end to end. Attention and positions stay inside a
/// sequence, and no sequence predicts the first token of the next.
struct Sample {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;  // as long as tokens, not shifted: the token, or ignored_label
  std::vector<std::int32_t> sequence_lengths;  // they add up to the tokens; none is 0
  // Of each token. Empty: from 0 in each sequence. Given where positions begin anew inside one.
  std::vector<std::int32_t> positions;

  void clear() {
    tokens.clear();
    labels.clear();
    positions.clear();
    sequence_lengths.clear();
  }
};

/// Samples by index. Immutable; may be used by several threads.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual std::int64_t count() const = 0;
  /// Tokens of one sample, known without reading it.
  virtual std::int64_t tokens_in(std::int64_t index) const = 0;
  /// The most tokens that a sample can have.
  virtual std::int64_t largest_tokens() const = 0;
  /// Host memory that it keeps: lists of samples, and how long each stored record is.
  virtual std::int64_t resident_bytes() const = 0;
  virtual Result<void> read(std::int64_t index, Sample& into) const = 0;
  /// Of all that makes samples out of stored records: the same for the same cut.
  virtual std::uint64_t cut_checksum() const = 0;
};

}  // namespace underkeel::data
