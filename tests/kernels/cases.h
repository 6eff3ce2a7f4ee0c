#pragma once
// The one table of cases.

#include "kernels/attention_cases.h"
#include "kernels/element_cases.h"
#include "kernels/matmul_cases.h"
#include "kernels/row_cases.h"

namespace underkeel::kernels::cases {

inline std::vector<Case> all_cases() {
  std::vector<Case> all;
  add_matmul_cases(all);
  add_attention_cases(all);
  add_row_cases(all);
  add_element_cases(all);
  return all;
}

/// Those small enough for the reference.
inline std::vector<Case> unit_cases() {
  std::vector<Case> all = all_cases();
  std::erase_if(all, [](const Case& item) { return item.benchmark; });
  return all;
}

}  // namespace underkeel::kernels::cases
