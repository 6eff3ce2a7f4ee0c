#pragma once
// Which vector instructions the CPU backend uses. The sources in simd/ are compiled once for each
// set; the choice is made at run time.

#include <string_view>
#include <vector>

#include "kernels/kernels.h"

namespace underkeel::kernels::cpu {

enum class InstructionSet {
  avx2,         // with FMA and F16C; what every build needs
  avx512,       // F, BW, DQ and VL
  avx512_bf16,  // and products of bf16 pairs, in the matrix product
};

/// "avx2".
std::string_view name_of(InstructionSet set);

/// Those that this processor has, the narrowest first.
std::vector<InstructionSet> instruction_sets();

/// The widest that this processor has, unless UNDERKEEL_CPU=avx2 or avx512 asks for less.
InstructionSet chosen_instruction_set();

/// The table for one set; cpu_kernels() is that of the chosen one.
const KernelTable& kernels_for(InstructionSet set);

}  // namespace underkeel::kernels::cpu
