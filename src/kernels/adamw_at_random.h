#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/host_device.h"
#include "base/random.h"
#include "tensor/view.h"

namespace underkeel::kernels {

/// One AdamW step on weights and moments that are bf16 and have no wider copy, in place. In f32, in the order
/// of AdamwArgs; then weight and moments are rounded up or down at random, so that on average nothing is lost.
/// Types:   weight, moment1, moment2 bf16; gradient f32 or bf16.
/// step_values (4) f32 as for AdamwArgs; the bits of the fourth are the number of the update.
/// clip as for AdamwArgs: with finite = 0 nothing changes.
/// Formula: as AdamwArgs, but the root of moment2 is multiplied by 1 / c2, rounded once, not divided by c2.
/// Bits:    of element e (of the unit: first_element + its place here) Philox word e mod 4 of block
///          {e / 4 (64 bits), stream, update} under `seed`, seven rounds: the low half rounds the weight, the high
///          half moment1, their exclusive or moment2, so that any two of the three are independent.
///          The same on every backend, rank count and stage.
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

/// Elements that share a block of random bits; first_element is a multiple of it.
constexpr int elements_of_rounding_block = 4;

/// The bits of the elements of block `block`, a word each.
UK_HOST_DEVICE inline std::array<std::uint32_t, elements_of_rounding_block> rounding_bits(
    const AdamwAtRandomArgs& args, std::uint32_t update, std::int64_t block) {
  return philox<7>(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), args.stream,
       update},
      {static_cast<std::uint32_t>(args.seed), static_cast<std::uint32_t>(args.seed >> 32)});
}

UK_HOST_DEVICE inline std::uint32_t update_number(const float* step_values) {
  std::uint32_t number = 0;
  std::memcpy(&number, step_values + 3, sizeof number);
  return number;
}

/// The high half is `value` as bf16: up with the probability that its place between two neighbours says, given 16
/// random bits (below 2^16). The low half is of no use. What is not finite stays what it is; a value that is not a
/// number must be a quiet one, as every result of arithmetic is.
UK_HOST_DEVICE inline std::uint32_t round_at_random(float value, std::uint32_t random_bits) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (fabsf(value) < std::numeric_limits<float>::infinity()) bits += random_bits;
  return bits;
}

/// An element of AdamwAtRandomArgs after the update; the high halves are the numbers.
struct RoundedElement {
  std::uint32_t weight = 0;
  std::uint32_t moment1 = 0;
  std::uint32_t moment2 = 0;
};
UK_HOST_DEVICE inline RoundedElement round_at_random(float weight, float moment1, float moment2,
                                                     std::uint32_t random_word) {
  const std::uint32_t low = random_word & 0xffff;
  const std::uint32_t high = random_word >> 16;
  return {.weight = round_at_random(weight, low),
          .moment1 = round_at_random(moment1, high),
          .moment2 = round_at_random(moment2, low ^ high)};
}
constexpr std::uint16_t high_half(std::uint32_t bits) {
  return static_cast<std::uint16_t>(bits >> 16);
}

}  // namespace underkeel::kernels
