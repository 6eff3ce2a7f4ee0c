#pragma once
// Numbers to time products on: on zeros they need less power and run faster than in a step.

#include <span>
#include <vector>

#include "exec/bind.h"
#include "tensor/dtype.h"

namespace underkeel::exec {

/// A block of them, 8 MiB; it takes a good part of a second to make.
std::vector<BFloat16> noise_block();

/// Fills memory of the device arena with 16-bit normal numbers of deviation one, which as f32 are ordinary numbers too:
/// all of it, or where no persistent buffer lies. Returns once it is there.
Result<void> fill_with_noise(const Context& context, std::span<const BFloat16> block,
                             bool keeps_persistent, device::Queue& queue);

/// Of samples of all memory without persistent buffers: how many 16-bit words are no finite bf16 number.
Result<double> share_not_finite(const Context& context, device::Queue& queue);

/// Noise in any device memory. Returns once it is there.
Result<void> fill_with_noise(device::Gpu& gpu, std::byte* begin, std::int64_t size_bytes,
                             device::Queue& queue);

}  // namespace underkeel::exec
