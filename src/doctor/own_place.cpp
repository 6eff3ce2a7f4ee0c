#include "doctor/own_place.h"

#include <cstdlib>
#include <string_view>

#include "doctor/own_run.h"

namespace underkeel::doctor {
namespace {

/// Takes "deepspeed.train_batch_size", told of the whole run, for what it is: a key of the config.
constexpr std::string_view of_config = "deepspeed.";

}  // namespace

ProblemPlace place_of(const spec::Problem& problem, const Inputs& inputs) {
  ProblemPlace place{.file = inputs.run ? inputs.run->file : inputs.deepspeed->file,
                     .key = problem.key};
  std::string& key = place.key;
  bool is_of_config = false;
  if (inputs.deepspeed && key.starts_with(inputs.deepspeed->file + ": ")) {
    is_of_config = true;
    place.file = inputs.deepspeed->file;
    key.erase(0, place.file.size() + 2);
  }
  if (inputs.deepspeed && key.starts_with(of_config)) {
    is_of_config = true;
    place.file = inputs.deepspeed->file;
    key.erase(0, of_config.size());
    place.line = line_of(inputs.deepspeed->root, key);
  }
  // "path/ds_config.json, line 1, column 36": it could not be read.
  if (inputs.deepspeed && key.starts_with(inputs.deepspeed->path + ", line ")) {
    place.file = inputs.deepspeed->file;
    place.line = std::atoi(key.c_str() + inputs.deepspeed->path.size() + 7);
    key.clear();
    return place;
  }
  if (const std::size_t at = key.rfind(" (line "); at != std::string::npos) {
    place.line = std::atoi(key.c_str() + at + 7);
    key.erase(at);
  }
  if (const std::size_t at = key.rfind(" (command line)"); at != std::string::npos) {
    key.erase(at);
    return place;
  }
  if (inputs.run || key.empty()) return place;
  // A config alone: what its run file says stands there under another name, or nowhere.
  if (!is_of_config) key = config_key_of(key);
  place.is_given = !key.empty() && value_at(inputs.deepspeed->root, key) != nullptr;
  if (!is_of_config) place.line = line_of(inputs.deepspeed->root, key);
  return place;
}

}  // namespace underkeel::doctor
