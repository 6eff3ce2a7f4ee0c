#pragma once
// A run file with everything that is wrong in it, for those who explain instead of running.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/problems.h"
#include "spec/run_config.h"

namespace underkeel::spec {

struct RunReadout {
  RunConfig run;      // with defaults in place of what could not be read
  Problems problems;  // of the run file and its DeepSpeed JSON, in the order in which they were met
};

/// As read_run_file(), of a run file's text; `file` names it.
/// Errors:  bad_file when the text is no YAML mapping. All else is in the readout.
Result<RunReadout> examine_run_text(std::string_view text, const std::filesystem::path& file,
                                    const std::vector<std::string>& overrides,
                                    const std::optional<WorldSize>& world = std::nullopt);

}  // namespace underkeel::spec
