#pragma once
// Where state comes from and goes to, as the executor sees it. `train` supplies the real ones.

#include <cstdint>

#include "base/result.h"
#include "plan/schedule.h"

namespace underkeel::exec {

/// Gives elements [begin, end) of one tensor's part, in row-major order, as f32. Called from one lane.
class StateSource {
 public:
  virtual ~StateSource() = default;
  virtual Result<void> read(const plan::UnitTensor& tensor, plan::StatePart part,
                            std::int64_t begin, std::int64_t end, float* into) = 0;
};

/// Takes elements [begin, end) of one tensor's part, in `type`. Called from one lane, in the order of the
/// plan; may still be called after run() has returned, until the save's entry has ended.
class StateSink {
 public:
  virtual ~StateSink() = default;
  virtual Result<void> write(const plan::UnitTensor& tensor, plan::StatePart part,
                             std::int64_t begin, std::int64_t end, DType type,
                             const void* from) = 0;
};

}  // namespace underkeel::exec
