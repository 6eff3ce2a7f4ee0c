#pragma once

#include <cstdint>
#include <cstring>

#include "base/host_device.h"
#include "base/random.h"
#include "tensor/view.h"

namespace underkeel::kernels {

/// One AdamW step on weights and moments that are bf16 and have no wider copy, in place. In f32, in the order
/// of AdamwArgs; then weight and moments are rounded up or down at random, so that on average nothing is lost.
/// Types:   weight, moment1, moment2 bf16; gradient f32 or bf16.
/// step_values (4) f32 as for AdamwArgs; the bits of the fourth are the number of the update.
/// clip as for AdamwArgs: with finite = 0 nothing changes.
/// Bits:    of element e (of the unit: first_element + its place here) Philox word 2 (e mod 2) of block
///          {e / 2 (64 bits), stream, update} under `seed`: the low half rounds the weight, the high half moment1;
///          the low half of the next word moment2. The same on every backend, rank count and stage.
struct AdamwAtRandomArgs {
  TensorView weight;
  TensorView moment1;
  TensorView moment2;
  TensorView gradient;
  TensorView step_values;
  TensorView clip;
  double beta1 = 0.9;
  double beta2 = 0.999;
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
  std::int64_t first_element = 0;
};

/// The bits of elements `pair` * 2 and `pair` * 2 + 1.
UK_HOST_DEVICE inline std::array<std::uint32_t, 4> rounding_bits(const AdamwAtRandomArgs& args,
                                                                 std::uint32_t update,
                                                                 std::int64_t pair) {
  return philox(
      {static_cast<std::uint32_t>(pair), static_cast<std::uint32_t>(pair >> 32), args.stream,
       update},
      {static_cast<std::uint32_t>(args.seed), static_cast<std::uint32_t>(args.seed >> 32)});
}

UK_HOST_DEVICE inline std::uint32_t update_number(const float* step_values) {
  std::uint32_t number = 0;
  std::memcpy(&number, step_values + 3, sizeof number);
  return number;
}

/// `value` as bf16: up with the probability that its place between two neighbours says, given 16 random
/// bits. What is not finite stays what it is.
UK_HOST_DEVICE inline std::uint16_t round_at_random(float value, std::uint32_t random_bits) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  constexpr std::uint32_t exponent = 0x7f800000;
  if ((bits & exponent) == exponent)
    return static_cast<std::uint16_t>((bits >> 16) | ((bits & 0xffff) != 0 ? 0x40u : 0u));
  return static_cast<std::uint16_t>((bits + (random_bits & 0xffff)) >> 16);
}

}  // namespace underkeel::kernels
