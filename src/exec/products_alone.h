#pragma once
// A segment's products and attention without what stands between them: the floor of its time.

#include <span>

#include "exec/bind.h"

namespace underkeel::exec {

/// As Executor::run_products() has it. `noise`: a noise_block(); `context` has the batch.
Result<Executor::ProductsTime> run_products_alone(const Context& context,
                                                  const plan::Segment& segment,
                                                  std::span<const BFloat16> noise,
                                                  const Executor::ProductsHow& how,
                                                  device::Queue& queue);

}  // namespace underkeel::exec
