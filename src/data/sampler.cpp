#include "data/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "base/check.h"
#include "base/units.h"
#include "data/random_order.h"

namespace underkeel::data {

std::vector<std::uint32_t> order_of_epoch(const SamplerConfig& config, std::int64_t epoch) {
  if (config.shuffle)
    return torch_permutation(config.sample_count, config.seed + static_cast<std::uint64_t>(epoch));
  std::vector<std::uint32_t> order(static_cast<std::size_t>(config.sample_count));
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

Result<Sampler> Sampler::make(const SamplerConfig& config) {
  UK_CHECK(config.world_size > 0 && config.rank >= 0 && config.rank < config.world_size &&
               config.sequences_per_micro_batch > 0 && config.accumulation_steps > 0,
           "a sampler of impossible shape");
  if (config.sample_count < 1)
    return fail(ErrorCode::bad_config, "there are no samples to train on", "dataset");
  if (config.sample_count > std::numeric_limits<std::uint32_t>::max())
    return fail(ErrorCode::unsupported,
                fmt::format("{} samples; at most 2^32 - 1", config.sample_count), "dataset");
  Sampler sampler(config);
  if (sampler.micro_batches_per_epoch() == 0)
    return fail(
        ErrorCode::bad_config,
        fmt::format("dropping the last batch leaves none: {} samples, {} ranks with {} each",
                    config.sample_count, config.world_size, config.sequences_per_micro_batch),
        "dataloader_drop_last", "dataloader_drop_last: false");
  return sampler;
}

// Places that an epoch still has after `samples`: a multiple of the round, but for a single rank,
// whose last batch is short. Not positive: the epoch is over.
std::int64_t Sampler::places_from(std::int64_t samples) const {
  const std::int64_t left = config_.sample_count - samples;
  if (left <= 0) return 0;
  if (config_.drop_last) return left / round_samples() * round_samples();
  return config_.world_size == 1 ? left : round_up(left, round_samples());
}

std::int64_t Sampler::micro_batches_per_epoch() const {
  return ceil_div(places_from(0), round_samples());
}

std::int64_t Sampler::updates_per_epoch() const {
  return ceil_div(micro_batches_per_epoch(), config_.accumulation_steps);
}

std::int64_t Sampler::filled_samples() const {
  return std::max<std::int64_t>(0, places_from(0) - config_.sample_count);
}

std::int64_t Sampler::left_out_samples() const {
  return std::max<std::int64_t>(0, config_.sample_count - places_from(0));
}

std::int64_t Sampler::updates_for(double epochs) const {
  return static_cast<std::int64_t>(std::ceil(epochs * static_cast<double>(updates_per_epoch())));
}

DataPosition Sampler::position_of(std::int64_t step) const {
  return {.epoch = step / updates_per_epoch(),
          .samples = step % updates_per_epoch() * config_.accumulation_steps * round_samples()};
}

std::int64_t Sampler::epochs_met(DataPosition position, std::int64_t updates) const {
  if (places_from(position.samples) <= 0) position = {.epoch = position.epoch + 1, .samples = 0};
  if (updates <= 0) return position.epoch;
  const std::int64_t updates_left = ceil_div(
      ceil_div(places_from(position.samples), round_samples()), config_.accumulation_steps);
  return position.epoch + 1 +
         ceil_div(std::max<std::int64_t>(0, updates - updates_left), updates_per_epoch());
}

double Sampler::epochs_at(const DataPosition& position) const {
  const std::int64_t done = ceil_div(position.samples, round_samples());
  return static_cast<double>(position.epoch) +
         static_cast<double>(done) / static_cast<double>(micro_batches_per_epoch());
}

WindowSamples Sampler::window_at(DataPosition position) const {
  if (places_from(position.samples) <= 0) position = {.epoch = position.epoch + 1, .samples = 0};
  const std::int64_t places =
      std::min(places_from(position.samples), config_.accumulation_steps * round_samples());
  const Order order = order_of(position.epoch);
  WindowSamples window{.begin = position};
  const std::int64_t batch_size = config_.sequences_per_micro_batch;
  for (std::int64_t first = config_.rank * batch_size; first < places; first += round_samples()) {
    auto& batch = window.micro_batches.emplace_back();
    for (std::int64_t place = first; place < std::min(first + batch_size, places); ++place) {
      // Beyond the end the epoch's own order begins again.
      const std::int64_t index = (position.samples + place) % config_.sample_count;
      batch.push_back((*order)[static_cast<std::size_t>(index)]);
    }
  }
  window.end = {.epoch = position.epoch, .samples = position.samples + places};
  if (places_from(window.end.samples) <= 0)
    window.end = {.epoch = position.epoch + 1, .samples = 0};
  return window;
}

Sampler::Order Sampler::order_of(std::int64_t epoch) const {
  const std::lock_guard lock(last_order_->mutex);
  if (last_order_->epoch == epoch) return last_order_->order;
  last_order_->order =
      std::make_shared<const std::vector<std::uint32_t>>(order_of_epoch(config_, epoch));
  last_order_->epoch = epoch;
  return last_order_->order;
}

std::vector<EvaluationBatch> evaluation_batches(std::int64_t sample_count,
                                                std::int64_t sequences_per_micro_batch,
                                                int world_size, int rank, bool drop_last) {
  const std::int64_t round = sequences_per_micro_batch * world_size;
  std::vector<EvaluationBatch> batches;
  for (std::int64_t begin = 0; begin < sample_count; begin += round) {
    if (drop_last && begin + round > sample_count) break;
    EvaluationBatch& batch = batches.emplace_back();
    const std::int64_t first = begin + rank * sequences_per_micro_batch;
    for (std::int64_t place = first; place < first + sequences_per_micro_batch; ++place) {
      if (place < sample_count) ++batch.counted;
      if (place < sample_count || world_size > 1) batch.samples.push_back(place % sample_count);
    }
  }
  return batches;
}

}  // namespace underkeel::data
