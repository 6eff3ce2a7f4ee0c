#pragma once
// Steps of an fp16 run whose gradients are not finite: they are passed over and counted, and the loss scale
// follows them. Elsewhere such a step ends the run.

#include <cstdint>
#include <optional>
#include <string>

#include "spec/run_config.h"
#include "train/job.h"
#include "train/loss_scale.h"

namespace underkeel::train {

class Overflows {
 public:
  explicit Overflows(const spec::RunConfig& run);

  /// Takes over what a checkpoint kept; skipped steps count in any precision.
  void resume(const Progress& progress);
  void keep_in(Progress& progress) const;

  bool are_expected() const { return scale_.has_value(); }
  double loss_scale() const { return scale_ ? scale_->scale() : 1; }
  /// Steps without an update, over all processes of the run. Neither the schedule nor Adam's bias correction
  /// counts them.
  std::int64_t skipped() const { return skipped_; }
  std::int64_t in_a_row() const { return in_a_row_; }

  struct Outcome {
    bool ends = false;      // nothing is left to try
    bool is_first = false;  // after a step that was finite
    std::string advice;     // once in a series, for the user
  };
  /// After the update of a step of an fp16 run.
  Outcome step(bool overflowed);

  /// "; the loss scale ..." once the outcome was to end; else nothing.
  std::string reason_to_end() const;
  /// " (3 without an update, as gradients were not finite)", or nothing.
  std::string summary() const;

 private:
  spec::LossScaleConfig config_;
  std::optional<LossScale> scale_;
  std::int64_t skipped_ = 0;
  std::int64_t in_a_row_ = 0;
  bool ends_ = false;
};

}  // namespace underkeel::train
