#pragma once
// Continues a text with a model folder: through the planner and the executor, as everything runs.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/sampling.h"

namespace underkeel::train {

struct GenerateRequest {
  std::filesystem::path model;  // a folder (of an output folder that has no model yet its
                                // newest checkpoint), or a hub name in the local cache
  std::string prompt;
  /// A chat template: the prompt is what a user says, the answer ends where the template's do.
  std::string template_name;
  std::optional<std::string> system;  // with a template; else the template's own
  /// Without a number: 64, or as many as the model's positions leave.
  std::optional<std::int64_t> max_new_tokens;
  Sampling sampling;
  int thread_count = 1;
  /// Called once the plan is made and before weights are read; an error ends the call. Empty: never.
  std::function<Result<void>(std::int64_t arena_bytes)> check_memory;
};

struct GenerateReport {
  std::int64_t prompt_tokens = 0;
  std::vector<std::int32_t> tokens;  // the generated ones, without the end token
  bool ended = false;                // by an end token
  std::int64_t arena_bytes = 0;      // of all memory spaces
};

/// Calls `sink` with each piece of the continuation as it is known; pieces are whole characters.
/// Computes in the type in which the weights are stored. Ends at an end token
/// (generation_config.json, else config.json, else the tokenizer's; with a template also its own) or
/// after max_new_tokens.
/// Errors:  not_found for a template that there is not; bad_config when prompt and continuation are longer than the model's positions or the
///          prompt has no tokens; those of the files.
Result<GenerateReport> generate(const GenerateRequest& request,
                                const std::function<void(std::string_view)>& sink);

}  // namespace underkeel::train
