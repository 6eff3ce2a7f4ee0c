#pragma once
// Which of the matrix library's algorithms products on a GPU take. The algorithm decides how a sum is cut, so it is
// part of a run's bits: what was chosen once can be kept and given again. State of the process, since the library is.

#include <map>
#include <string>

namespace underkeel::kernels {

struct MatmulChoices {
  std::string made_on;  // the library's version and the kind of GPU, for which alone they hold
  /// The library's own description of an algorithm, in hexadecimal, by the product's description.
  std::map<std::string, std::string> algorithms;

  bool operator==(const MatmulChoices&) const = default;
};

/// Products that have not run yet take these. Ones that were made elsewhere or that the library does not accept are
/// passed over; an algorithm that is given twice is the last one.
void cuda_take_matmul_choices(const MatmulChoices& choices);

/// Until `seconds` have gone into it, a product that runs for the first time and that no choice is known for is timed
/// on that call's operands, `c` among them: candidates of the library, under load. Else, and from 0 on, the
/// library's first proposal is taken.
void cuda_time_matmuls(double seconds);

/// Choices of all products that have run so far, however they were made.
MatmulChoices cuda_matmul_choices();

}  // namespace underkeel::kernels
