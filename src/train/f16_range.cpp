#include "train/f16_range.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace underkeel::train {

namespace {

// Half of the way from the largest f16, 65,504, to where the next would be: from there on rounding gives infinity.
constexpr float rounds_to_infinity = 65'520.0f;

bool fits(float value) {
  return std::abs(value) < rounds_to_infinity;  // false for what is no number
}

std::string place_in(std::vector<std::int64_t> shape, std::int64_t element) {
  for (std::size_t i = shape.size(); i-- > 0;) {
    const std::int64_t size = shape[i];
    shape[i] = element % size;
    element /= size;
  }
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

F16RangeSource::F16RangeSource(exec::StateSource& inner, std::string where)
    : inner_(inner), where_(std::move(where)) {}

Result<void> F16RangeSource::read(const plan::UnitTensor& tensor, plan::StatePart part,
                                  std::int64_t begin, std::int64_t end, float* into) {
  UK_TRY_VOID(inner_.read(tensor, part, begin, end, into));
  if (part != plan::StatePart::weights && part != plan::StatePart::master) return {};
  const std::span<const float> values(into, static_cast<std::size_t>(end - begin));
  const auto bad = std::find_if_not(values.begin(), values.end(), fits);
  if (bad == values.end()) return {};
  return fail(ErrorCode::bad_file,
              fmt::format("the weight {} at {} of {} is beyond what fp16 holds, 65,504", *bad,
                          place_in(tensor.shape, begin + (bad - values.begin())), tensor.name),
              where_, "train with bf16: true, or in f32 without fp16");
}

}  // namespace underkeel::train
