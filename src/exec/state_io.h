#pragma once
// Where state comes from and goes to, as the executor sees it. `train` supplies the real ones.

#include <cstdint>

#include "base/check.h"
#include "base/result.h"
#include "plan/schedule.h"

namespace underkeel::exec {

/// Gives elements [begin, end) of one tensor's part, in row-major order. Called from one lane.
class StateSource {
 public:
  virtual ~StateSource() = default;
  /// As f32.
  virtual Result<void> read(const plan::UnitTensor& tensor, plan::StatePart part,
                            std::int64_t begin, std::int64_t end, float* into) = 0;

  /// The type that read_held() gives the tensor's part in, as it is kept; f32 where it must be asked for with read().
  virtual DType held_type(const plan::UnitTensor& /*tensor*/, plan::StatePart /*part*/) const {
    return DType::f32;
  }
  virtual Result<void> read_held(const plan::UnitTensor& /*tensor*/, plan::StatePart /*part*/,
                                 std::int64_t /*begin*/, std::int64_t /*end*/,
                                 std::byte* /*into*/) {
    UK_CHECK(false, "a source that holds another type than f32 reads it");
    return {};
  }
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
