#include "train/not_finite.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "tensor/shard.h"
#include "train/model_source.h"

namespace underkeel::train {

namespace {

constexpr std::int64_t chunk_elements = 64 * kibibyte;

/// Reads gradients through two chunks, however large a tensor is: a run may go on after this.
class Finite {
 public:
  explicit Finite(const exec::Executor& executor)
      : executor_(executor), bytes_(chunk_elements * 4), values_(chunk_elements) {}

  bool all(plan::BufferId gradient, DType type, ShardRange range) {
    for (std::int64_t at = range.begin; at < range.end; at += chunk_elements) {
      const std::int64_t count = std::min(chunk_elements, range.end - at);
      const auto size_bytes = static_cast<std::size_t>(bytes_of(type, count));
      executor_.read_buffer(gradient, bytes_of(type, at), std::span(bytes_).first(size_bytes));
      widen(bytes_.data(), type, count, values_.data());
      for (std::int64_t i = 0; i < count; ++i)
        if (!std::isfinite(values_[static_cast<std::size_t>(i)])) return false;
    }
    return true;
  }

 private:
  const exec::Executor& executor_;
  std::vector<std::byte> bytes_;
  std::vector<float> values_;
};

}  // namespace

Result<std::string> describe_not_finite(const exec::Executor& executor, const plan::Plan& plan,
                                        comm::Communicator& control) {
  constexpr double none = std::numeric_limits<double>::infinity();
  std::vector<std::string> names;  // of all tensors, in the plan's order, which is the model's
  double first = none;
  double count = 0;
  Finite finite(executor);
  for (const plan::Unit& unit : plan.schedule.units) {
    const ShardRange own = unit.gradient_sharded
                               ? shard_of(unit.element_count, plan.world_size, control.rank())
                               : ShardRange{0, unit.element_count};
    const std::int64_t home_begin = own.begin;
    const DType type = plan.schedule.buffer(unit.gradient).type;
    for (const plan::UnitTensor& tensor : unit.tensors) {
      const ShardRange range = intersect({tensor.begin, tensor.begin + tensor.element_count}, own);
      names.push_back(tensor.name);
      if (range.size() <= 0 ||
          finite.all(unit.gradient, type, {range.begin - home_begin, range.end - home_begin}))
        continue;
      if (first == none) first = static_cast<double>(names.size() - 1);
      ++count;
    }
  }
  std::vector<double> all(2 * static_cast<std::size_t>(control.world_size()));
  const double words[2] = {first, count};
  UK_TRY_VOID(control.all_gather_values(std::span(words), all));
  std::size_t worst = 0;
  for (std::size_t rank = 0; 2 * rank < all.size(); ++rank)
    if (all[2 * rank] < all[2 * worst]) worst = rank;
  if (all[2 * worst] == none) return std::string();
  return fmt::format(
      "; on rank {} the gradients of {} of {} tensors are not finite, the first of "
      "them {}",
      worst, all[2 * worst + 1], names.size(), names[static_cast<std::size_t>(all[2 * worst])]);
}

}  // namespace underkeel::train
