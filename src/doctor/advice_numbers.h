#pragma once
// The number that a piece of advice gives: "lower cutoff_len to 512", "batch size 2", "8 张卡", "halves memory".

#include <optional>
#include <string_view>

#include "doctor/advice_text.h"

namespace underkeel::doctor {

/// What the number of a rule counts.
enum class Quantity {
  none,
  tokens,
  batch,
  evaluation_batch,
  accumulation,
  rank,
  stage,
  bits,
  gpus,
  percent,
  checkpoints
};

/// A count, a share of what there is now ("halve the batch"), or what is added to it ("4 more GPUs").
struct Said {
  double value = 0;
  bool is_share = false;
  bool is_more = false;
  bool operator==(const Said&) const = default;
  /// Of a setting that is `now`.
  double of(double now) const { return is_share ? value * now : is_more ? now + value : value; }
};

/// Of `quantity` in a stretch of a normalised sentence; `subject` is where the thing that is counted is named. Nothing
/// where no number is said, or none that the quantity can have.
std::optional<Said> number_said(std::string_view sentence, const Stretch& clause,
                                const Stretch& subject, Quantity quantity);

}  // namespace underkeel::doctor
