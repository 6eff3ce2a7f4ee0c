#pragma once

#include "kernels/kernels.h"

namespace underkeel::kernels::cpu {

/// Double-precision cosines in tiles of rows; a step needs few of them.
void rope_table(const RopeTableArgs& args, device::Queue& queue);

}  // namespace underkeel::kernels::cpu
