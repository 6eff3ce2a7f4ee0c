#include "train/overflows.h"

#include <fmt/format.h>

#include "base/check.h"

namespace underkeel::train {

namespace {

// One or two are how the scale finds its place; a third means that lowering it may not be enough.
constexpr std::int64_t advised_after = 3;

}  // namespace

Overflows::Overflows(const spec::RunConfig& run) : config_(run.loss_scale) {
  if (run.precision == spec::Precision::f16) scale_.emplace(config_);
}

void Overflows::resume(const Progress& progress) {
  skipped_ = progress.skipped_steps;
  if (scale_ && progress.loss_scale) scale_.emplace(config_, *progress.loss_scale);
}

void Overflows::keep_in(Progress& progress) const {
  progress.skipped_steps = skipped_;
  if (scale_) progress.loss_scale = scale_->state();
}

Overflows::Outcome Overflows::step(bool overflowed) {
  UK_CHECK(scale_.has_value(), "only fp16 has a loss scale");
  if (scale_->step(overflowed) == LossScale::Outcome::cannot_fall) {
    ends_ = true;
    return {.ends = true};
  }
  if (!overflowed) {
    in_a_row_ = 0;
    return {};
  }
  ++skipped_;
  ++in_a_row_;
  Outcome outcome{.is_first = in_a_row_ == 1};
  if (in_a_row_ == advised_after)
    outcome.advice = fmt::format(
        "{} steps in a row overflow; the loss scale is {}. If that goes on, train with bf16: true "
        "in place of fp16, or lower learning_rate",
        in_a_row_, scale_->scale());
  return outcome;
}

std::string Overflows::reason_to_end() const {
  if (!ends_) return {};
  return fmt::format(
      "; fp16 overflows at the least loss scale, {}, after {} steps without an update: it can fall "
      "no further",
      scale_->scale(), in_a_row_);
}

std::string Overflows::summary() const {
  if (skipped_ == 0) return {};
  return fmt::format(" ({} without an update, as gradients were not finite)", skipped_);
}

}  // namespace underkeel::train
