#pragma once
// Cases of tests/cases/ completed into folders that can be run.
//
// A case holds only what makes it a case: train.yaml with LLaMA-Factory's keys, and where it
// matters model.json, hardware.yaml, data sets. complete_case() adds the rest: a model folder, a
// tokenizer, the data sets with their dataset_info.json, a DeepSpeed JSON and the run-file keys that
// depend on where things lie.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "support/temporary_folder.h"

namespace underkeel::test {

struct CaseOptions {
  std::string run_file = "train.yaml";
  std::string model_file = "model.json";  // without one: tests/cases/tiny_model.json
  bool with_weights = true;               // false: config.json and tokenizer only, to plan
  // Writes ds_config.json with it and names it in the run file; without one the case's own, if any.
  std::optional<int> zero_stage = {};
  std::string type;  // "float32": overrides the model's stored type; and bf16 goes
  std::uint64_t seed = 1;
};

/// Everything lies under one temporary folder, which goes with it.
struct RunnableCase {
  TemporaryFolder folder;
  std::filesystem::path run_file;  // train.yaml
  std::filesystem::path model;     // model folder
  std::filesystem::path data;      // dataset_info.json and the data sets
  std::filesystem::path output;    // not there yet
  std::optional<std::filesystem::path> hardware_file;
};

/// Completes tests/cases/`name`. Throws with a sentence when the case cannot be completed.
RunnableCase complete_case(std::string_view name, const CaseOptions& options = {});

}  // namespace underkeel::test
