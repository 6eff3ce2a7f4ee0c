#pragma once
// Calls the kernel of a Compute operation.

#include "exec/bind.h"

namespace underkeel::exec {

void run_compute(const Context& context, const plan::Compute& body, device::Queue& queue);

}  // namespace underkeel::exec
