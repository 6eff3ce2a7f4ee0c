#pragma once
// The functions of one instruction set.

#include "kernels/cpu/simd/vector.h"
#include "kernels/kernels.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

void matmul(const MatmulArgs& args, device::Queue& queue);

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
