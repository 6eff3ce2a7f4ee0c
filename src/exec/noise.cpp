#include "exec/noise.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tensor/dtype.h"

namespace underkeel::exec {

namespace {

using Range = std::pair<std::int64_t, std::int64_t>;  // offsets in bytes: begin, end

std::vector<BFloat16> normal_numbers(std::size_t count) {
  std::vector<BFloat16> numbers(count);
  for (std::size_t i = 0; i + 1 < count; i += 2) {
    const double radius = std::sqrt(-2 * std::log(1 - random_uniform(17, 0, i)));
    const double angle = 6.283185307179586 * random_uniform(17, 1, i);
    numbers[i] = to_bf16(static_cast<float>(radius * std::cos(angle)));
    numbers[i + 1] = to_bf16(static_cast<float>(radius * std::sin(angle)));
  }
  return numbers;
}

/// Where buffers lie that are not persistent, joined and in order.
std::vector<Range> passing_ranges(const Context& context) {
  std::vector<Range> ranges;
  const auto& buffers = context.plan->schedule.buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].persistent || buffers[i].space != plan::MemorySpace::device) continue;
    const std::int64_t begin = context.plan->layout.offset_bytes[i];
    if (begin < 0) continue;  // a pass has left it without use
    ranges.emplace_back(begin, begin + buffers[i].size_bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  std::vector<Range> joined;
  for (const Range& range : ranges) {
    if (joined.empty() || joined.back().second < range.first) joined.push_back(range);
    joined.back().second = std::max(joined.back().second, range.second);
  }
  return joined;
}

/// A block of numbers over and over: the first comes from the host, the rest doubles.
Result<void> fill(device::Gpu& gpu, std::span<const BFloat16> numbers, std::byte* begin,
                  std::int64_t size_bytes, device::Queue& queue) {
  std::int64_t done = std::min(static_cast<std::int64_t>(numbers.size_bytes()), size_bytes);
  UK_TRY_VOID(gpu.copy(begin, numbers.data(), done, queue));
  for (std::int64_t next = 0; done < size_bytes; done += next) {
    next = std::min(done, size_bytes - done);
    UK_TRY_VOID(gpu.copy(begin + done, begin, next, queue));
  }
  return {};
}

constexpr std::size_t number_count = std::size_t{1} << 22;

}  // namespace

std::vector<BFloat16> noise_block() {
  return normal_numbers(number_count);
}

Result<void> fill_with_noise(const Context& context, std::span<const BFloat16> block,
                             bool keeps_persistent, device::Queue& queue) {
  const Arena& arena = (*context.arenas)[index(plan::MemorySpace::device)];
  const auto ranges =
      keeps_persistent ? passing_ranges(context) : std::vector<Range>{{0, arena.size_bytes()}};
  for (const auto& [begin, end] : ranges)
    UK_TRY_VOID(fill(*context.gpu, block, arena.data() + begin, end - begin, queue));
  return context.gpu->synchronize(queue);
}

Result<void> fill_with_noise(device::Gpu& gpu, std::byte* begin, std::int64_t size_bytes,
                             device::Queue& queue) {
  const auto block = noise_block();
  UK_TRY_VOID(fill(gpu, block, begin, size_bytes, queue));
  return gpu.synchronize(queue);
}

Result<double> share_not_finite(const Context& context, device::Queue& queue) {
  constexpr std::int64_t sample_bytes = 64 << 10;
  constexpr std::int64_t samples_of_range = 64;
  constexpr std::uint16_t exponent = 0x7f80;
  const Arena& arena = (*context.arenas)[index(plan::MemorySpace::device)];
  std::vector<std::uint16_t> words(sample_bytes / 2);
  std::int64_t seen = 0;
  std::int64_t bad = 0;
  for (const auto& [begin, end] : passing_ranges(context))
    for (std::int64_t i = 0; i < samples_of_range; ++i) {
      const std::int64_t at = (begin + (end - begin) / samples_of_range * i) / 2 * 2;
      const std::int64_t size = std::min(sample_bytes, end - at) / 2 * 2;
      UK_TRY_VOID(context.gpu->copy(words.data(), arena.data() + at, size, queue));
      UK_TRY_VOID(context.gpu->synchronize(queue));
      seen += size / 2;
      bad += std::count_if(words.begin(), words.begin() + size / 2,
                           [](std::uint16_t word) { return (word & exponent) == exponent; });
    }
  return seen == 0 ? 0.0 : static_cast<double>(bad) / static_cast<double>(seen);
}

}  // namespace underkeel::exec
