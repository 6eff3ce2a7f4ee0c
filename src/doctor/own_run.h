#pragma once
// The run of the files at hand as our engine would be started with it: a run file's text and the words behind it.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/inputs.h"
#include "spec/problems.h"

namespace underkeel::doctor {

struct OwnRun {
  std::string text;
  std::filesystem::path file;
  std::vector<std::string> changes;
};
/// A config alone makes a run file in its own words. None where a file was not read, or there is neither.
std::optional<OwnRun> own_run(const Question& question, const Inputs& inputs);

/// Where a config alone has what stands in its run file as `run_key`; "" where it stands for nothing of the config.
std::string_view config_key_of(std::string_view run_key);

/// Problems of a run file that LLaMA-Factory or the Trainer behind it stops on as well: keys that it has not, sizes that
/// are no sizes, combinations that it refuses. `key` is the problem's, without its file and line.
bool trainer_stops_on(const spec::Problem& problem, std::string_view key, const spec::Value& run);

}  // namespace underkeel::doctor
