#pragma once
// Weights on their way into an fp16 run: values that f16 cannot hold are refused by name.

#include <string>

#include "exec/state_io.h"

namespace underkeel::train {

/// Hands on what another source reads.
/// Errors:  bad_file for a weight that would become infinite in f16, or that is not finite, with its tensor and
///          place; those of the other source.
class F16RangeSource : public exec::StateSource {
 public:
  /// `where` names the folder in messages; `inner` must outlive this.
  F16RangeSource(exec::StateSource& inner, std::string where);
  Result<void> read(const plan::UnitTensor& tensor, plan::StatePart part, std::int64_t begin,
                    std::int64_t end, float* into) override;

 private:
  exec::StateSource& inner_;
  std::string where_;
};

}  // namespace underkeel::train
