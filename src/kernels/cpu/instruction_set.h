#pragma once
// Which vector instructions the CPU backend uses. The sources in simd/ are compiled once for each
// set; the choice is made at run time.

#include <vector>

#include "kernels/kernels.h"

namespace underkeel::kernels::cpu {

enum class InstructionSet {
  avx2,    // with FMA and F16C; what every build needs
  avx512,  // F, BW, DQ and VL
};

/// Those that this processor has, the narrowest first.
std::vector<InstructionSet> instruction_sets();

/// The widest that this processor has, unless UNDERKEEL_CPU=avx2 asks for less.
InstructionSet chosen_instruction_set();

/// The table for one set; cpu_kernels() is that of the chosen one.
const KernelTable& kernels_for(InstructionSet set);

}  // namespace underkeel::kernels::cpu
