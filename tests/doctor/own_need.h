#pragma once
// What a run of ours wants of its disk, as large as its figures say: 14 bytes a parameter, or 2.

#include "doctor/disk.h"

namespace underkeel::doctor {

inline Result<io::SpaceNeed> need_of(const spec::ModelSpec& model, const spec::RunConfig& run) {
  const std::int64_t count = spec::parameter_count(model);
  return io::SpaceNeed{.checkpoint_bytes = (run.save.weights_only ? 2 : 14) * count,
                       .save_count = run.save.strategy == spec::Cadence::no ? 0 : 10,
                       .save_total_limit = run.save.total_limit.value_or(0),
                       .export_bytes = 2 * count};
}

}  // namespace underkeel::doctor
