#pragma once
// One choice of the matrix library's algorithms for all ranks.

#include "exec/bind.h"

namespace underkeel::exec {

/// choose_products() on rank 0; what it chose holds for the other ranks where they run on the same kind of GPU with the same
/// version of the library. One rank with nothing to time does nothing. Collective; the calling threads' GPUs are the ranks'.
/// Before warm_up().
Result<void> choose_products_for_all(const Context& context, double limit_s, device::Queue& queue);

}  // namespace underkeel::exec
