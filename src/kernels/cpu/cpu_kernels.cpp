#include <cstdlib>
#include <string_view>

#include "kernels/cpu/instruction_set.h"

namespace underkeel::kernels {

namespace cpu {

namespace avx2 {
void matmul(const MatmulArgs& args, device::Queue& queue);
}
namespace avx512 {
void matmul(const MatmulArgs& args, device::Queue& queue);
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

// Operations without a vectorised version yet run the reference one.
const KernelTable& kernels_for(InstructionSet set) {
  static const auto with = [](auto change) {
    KernelTable table = reference_kernels();
    change(table);
    return table;
  };
  static const KernelTable narrow = with([](KernelTable& table) { table.matmul = avx2::matmul; });
  static const KernelTable wide = with([](KernelTable& table) { table.matmul = avx512::matmul; });
  return set == InstructionSet::avx512 ? wide : narrow;
}

}  // namespace cpu

const KernelTable& cpu_kernels() {
  static const KernelTable& table = cpu::kernels_for(cpu::chosen_instruction_set());
  return table;
}

}  // namespace underkeel::kernels
