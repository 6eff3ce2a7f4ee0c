#include <cstdlib>
#include <string_view>

#include "kernels/cpu/instruction_set.h"

namespace underkeel::kernels {

namespace cpu {

namespace avx2 {
const KernelTable& table();
}
namespace avx512 {
const KernelTable& table();
}

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets = {InstructionSet::avx2};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    sets.push_back(InstructionSet::avx512);
  return sets;
}

InstructionSet chosen_instruction_set() {
  const char* wanted = std::getenv("UNDERKEEL_CPU");
  if (wanted != nullptr && std::string_view(wanted) == "avx2") return InstructionSet::avx2;
  return instruction_sets().back();
}

const KernelTable& kernels_for(InstructionSet set) {
  return set == InstructionSet::avx512 ? avx512::table() : avx2::table();
}

}  // namespace cpu

const KernelTable& cpu_kernels() {
  static const KernelTable& table = cpu::kernels_for(cpu::chosen_instruction_set());
  return table;
}

}  // namespace underkeel::kernels
