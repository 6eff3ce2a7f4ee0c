#pragma once
// Runs every operation of every shape class once before the seal, so that nothing is loaded, chosen or
// created while the run goes on.

#include <cstdint>
#include <vector>

#include "exec/bind.h"

namespace underkeel::exec {

/// `context` names plan, arenas, kernels and GPU; its homes hold nothing yet. The device arena is zero before
/// and afterwards. Operations that differ from an earlier one in addresses alone are left out.
Result<void> warm_up(Context context, device::Queue& queue);

/// Shape classes in the order in which their products are timed: that of the mean micro-batch first, then its neighbours,
/// so that time is spent on what is run most; the largest first where no mean is known.
std::vector<std::int64_t> classes_to_time(const plan::Schedule& schedule);

/// Before warm_up(): runs each of the plan's products, in the order of classes_to_time(), with algorithms of the matrix
/// library timed for at most `limit_s` in all; 0: none is. Leaves noise in the device arena.
Result<void> choose_products(Context context, double limit_s, device::Queue& queue);

}  // namespace underkeel::exec
