#pragma once
// What every backend's conformance test asks of a case: within its bound, inputs untouched.

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/cases.h"

namespace underkeel::kernels::cases {

/// "" when `got` is within `bound` of `want`, else the worst offence.
inline std::string difference(const TensorView& got, const TensorView& want, const Bound& bound) {
  if (bound.same_bits) return bytes_of_view(got) == bytes_of_view(want) ? "" : "bits differ";
  const double rounded = bound.roundings * rounding(want.type);
  double squares = 0;
  double error_squares = 0;
  for (std::int64_t row = 0; row < want.rows; ++row) {
    for (std::int64_t column = 0; column < want.columns; ++column) {
      const double a = reference::load(got, row, column);
      const double b = reference::load(want, row, column);
      const double allowed = (bound.relative + rounded) * std::abs(b) + bound.absolute +
                             bound.roundings * smallest_step(want.type);
      if (!(std::abs(a - b) <= allowed))
        return fmt::format("({}, {}) is {} where {} is right within {}", row, column, a, b,
                           allowed);
      squares += b * b;
      error_squares += (a - b) * (a - b);
    }
  }
  const double error = std::sqrt(error_squares);
  const double norm = std::sqrt(squares);
  // Where terms cancel to less than their own error, the bound of each element is all there is.
  const auto count = static_cast<double>(want.element_count());
  if (norm <= (bound.absolute + smallest_step(want.type)) * std::sqrt(count)) return "";
  const double allowed = (bound.relative_l2 + rounded / 2) * norm;
  if (error > allowed) return fmt::format("L2 error {} where {} is allowed", error, allowed);
  return "";
}

/// The cases for unit tests, by operation.
inline std::vector<std::pair<std::string, std::vector<Case>>> cases_by_operation() {
  std::vector<std::pair<std::string, std::vector<Case>>> groups;
  for (Case& item : unit_cases()) {
    if (groups.empty() || groups.back().first != item.operation) {
      const auto same = [&](const auto& group) { return group.first == item.operation; };
      const auto found = std::find_if(groups.begin(), groups.end(), same);
      if (found != groups.end()) {
        found->second.push_back(std::move(item));
        continue;
      }
      groups.emplace_back(item.operation, std::vector<Case>{});
    }
    groups.back().second.push_back(std::move(item));
  }
  return groups;
}

inline const auto& groups() {
  static const auto all = cases_by_operation();
  return all;
}

inline bool is_result(const Operand& operand) {
  return operand.role == Role::output || operand.role == Role::in_out;
}

inline void expect_inputs_untouched(const Case& item, const Instance& before,
                                    const Instance& after) {
  for (std::size_t i = 0; i < item.operands.size(); ++i) {
    if (item.operands[i].role != Role::input) continue;
    // An input that an output shares memory with may change.
    bool shared = false;
    for (const Operand& other : item.operands) shared |= other.alias_of == static_cast<int>(i);
    if (!shared) {
      EXPECT_EQ(bytes_of_view(before.view(static_cast<int>(i))),
                bytes_of_view(after.view(static_cast<int>(i))))
          << item.operands[i].name << " is an input and changed";
    }
  }
}

}  // namespace underkeel::kernels::cases
