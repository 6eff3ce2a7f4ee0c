#pragma once
// Runs every operation of every shape class once before the seal, so that nothing is loaded, chosen or
// created while the run goes on.

#include "exec/bind.h"

namespace underkeel::exec {

/// `context` names plan, arenas, kernels and GPU; its homes hold nothing yet. The device arena is zero
/// afterwards. Operations that differ from an earlier one in addresses alone are left out.
Result<void> warm_up(Context context, device::Queue& queue);

}  // namespace underkeel::exec
