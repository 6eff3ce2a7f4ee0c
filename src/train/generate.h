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

/// What a plan for generating takes.
struct GenerationMemory {
  std::int64_t device_bytes = 0;  // of the arena that holds the model
  std::int64_t arena_bytes = 0;   // of all memory spaces
  std::int64_t cache_bytes = 0;   // of it, keys and values
  std::int64_t positions = 0;     // prompt and new tokens
  std::int64_t new_tokens = 0;    // the most of them
};

struct GenerateRequest {
  std::filesystem::path model;  // a folder (of an output folder that has no model yet its
                                // newest checkpoint), or a hub name in the local cache
  std::string prompt;
  /// A chat template: the prompt is what a user says, the answer ends where the template's do.
  std::string template_name;
  std::optional<std::string> system;           // with a template; else the template's own
  std::optional<bool> enable_thinking = true;  // of reasoning templates; false: an empty thought
  /// Without a number: 64, or as many as the model's positions leave.
  std::optional<std::int64_t> max_new_tokens;
  Sampling sampling;
  int thread_count = 1;
  /// Keeps the keys and values of all tokens so far. Without it each token computes all of them again:
  /// the same tokens, in less memory and much more time.
  bool keeps_cache = true;
  /// Called once the plan is made and before weights are read; an error ends the call. Empty: never.
  std::function<Result<void>(const GenerationMemory&)> check_memory;
};

struct GenerateReport {
  std::int64_t prompt_tokens = 0;
  std::vector<std::int32_t> tokens;  // the generated ones, without the end token
  bool ended = false;                // by an end token
  GenerationMemory memory;
  double prompt_s = 0;  // until the first new token is known
  double tokens_s = 0;  // for those after it
};

/// The folder that generate() reads: of an output folder whose run has not ended its newest checkpoint.
/// Errors:  not_found.
Result<std::string> folder_to_generate_from(const std::filesystem::path& model);

/// Calls `sink` with each piece of the continuation as it is known; pieces are whole characters.
/// Computes in the type in which the weights are stored. Ends at an end token
/// (generation_config.json, else config.json, else the tokenizer's; with a template also its own) or
/// after max_new_tokens.
/// Errors:  not_found for a template that there is not; bad_config when prompt and continuation are longer than the model's positions or the
///          prompt has no tokens; those of the files.
Result<GenerateReport> generate(const GenerateRequest& request,
                                const std::function<void(std::string_view)>& sink);

}  // namespace underkeel::train
