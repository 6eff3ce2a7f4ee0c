#include "train/not_finite.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "tensor/shard.h"
#include "train/model_source.h"

namespace underkeel::train {

namespace {

constexpr std::int64_t chunk_elements = 4096;

bool all_finite(const std::byte* from, DType type, std::int64_t count) {
  float values[chunk_elements];
  for (std::int64_t at = 0; at < count; at += chunk_elements) {
    const std::int64_t size = std::min(chunk_elements, count - at);
    widen(from + bytes_of(type, at), type, size, values);
    for (std::int64_t i = 0; i < size; ++i)
      if (!std::isfinite(values[i])) return false;
  }
  return true;
}

}  // namespace

Result<std::string> describe_not_finite(const exec::Executor& executor, const plan::Plan& plan,
                                        comm::Communicator& control) {
  constexpr double none = std::numeric_limits<double>::infinity();
  std::vector<std::string> names;  // of all tensors, in the plan's order, which is the model's
  double first = none;
  double count = 0;
  for (const plan::Unit& unit : plan.schedule.units) {
    const ShardRange own = unit.gradient_sharded
                               ? shard_of(unit.element_count, plan.world_size, control.rank())
                               : ShardRange{0, unit.element_count};
    const DType type = plan.schedule.buffer(unit.gradient).type;
    const std::vector<std::byte> bytes = executor.read_buffer(unit.gradient);
    for (const plan::UnitTensor& tensor : unit.tensors) {
      const ShardRange range = intersect({tensor.begin, tensor.begin + tensor.element_count}, own);
      names.push_back(tensor.name);
      if (range.size() <= 0 ||
          all_finite(bytes.data() + bytes_of(type, range.begin - own.begin), type, range.size()))
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
