#pragma once
// Whether a run is still the one that a checkpoint was made by.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"
#include "train/resume.h"

namespace underkeel::train {

/// This run, as it is compared with a checkpoint.
struct ResumedRun {
  const spec::RunConfig& run;
  const spec::ModelSpec& model;
  DataIdentity data;
  std::int64_t sequences_per_step = 0;
  std::string evaluation;
};

/// Whether losses of evaluations compare with those of the checkpoint.
bool is_same_evaluation(const Progress& before, const ResumedRun& now);

/// Refuses to go on with another model or in another order of samples than those the checkpoint was made
/// with: the state would be read into shapes that happen to fit, samples come twice or never.
/// Returns notes for the user: values that differ and may do so.
/// Errors: bad_config, naming what differs.
Result<std::vector<std::string>> check_same_run(io::FileSystem& files, const Resume& resume,
                                                const ResumedRun& now);

}  // namespace underkeel::train
