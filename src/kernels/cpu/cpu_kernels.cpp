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
namespace avx512_bf16 {
void matmul(const MatmulArgs& args, device::Queue& queue);
}

std::string_view name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
    case InstructionSet::avx512_bf16:
      return "avx512_bf16";
  }
  return "?";
}

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets = {InstructionSet::avx2};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    sets.push_back(InstructionSet::avx512);
    if (__builtin_cpu_supports("avx512bf16")) sets.push_back(InstructionSet::avx512_bf16);
  }
  return sets;
}

InstructionSet chosen_instruction_set() {
  const char* wanted = std::getenv("UNDERKEEL_CPU");
  const std::vector<InstructionSet> sets = instruction_sets();
  for (const InstructionSet set : sets)
    if (wanted != nullptr && wanted == name_of(set)) return set;
  return sets.back();
}

const KernelTable& kernels_for(InstructionSet set) {
  if (set == InstructionSet::avx2) return avx2::table();
  if (set == InstructionSet::avx512) return avx512::table();
  static const KernelTable with_pairs = [] {
    KernelTable table = avx512::table();
    table.matmul = avx512_bf16::matmul;
    return table;
  }();
  return with_pairs;
}

}  // namespace cpu

const KernelTable& cpu_kernels() {
  static const KernelTable& table = cpu::kernels_for(cpu::chosen_instruction_set());
  return table;
}

}  // namespace underkeel::kernels
