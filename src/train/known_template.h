#pragma once
// Which chat template a model folder was made for: what the run that saved it says, or the text that its
// tokenizer brings.

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "data/template.h"
#include "io/file.h"

namespace underkeel::train {

/// The chat template that came with the tokenizer; empty when there is none.
Result<std::string> own_chat_template(io::FileSystem& files, const std::filesystem::path& folder);

/// The template whose own Jinja text is `jinja`, as a folder has it that LLaMA-Factory or this program has
/// saved; null when it is none of them.
Result<const data::Template*> template_that_writes(const std::string& jinja,
                                                   const std::filesystem::path& folder);

/// A template whose marks stand in a chat template that none of ours writes; empty when there is none.
std::string likely_template(const std::string& jinja);

/// How a run laid out conversations.
struct TrainedTemplate {
  std::string name;
  std::optional<std::string> system;           // default_system
  std::optional<bool> enable_thinking = true;  // nullopt: null
};

/// The template of the run of stage sft that saved `folder` (its training_args.json says it). Nothing for other
/// folders, and for stage pt. Errors: io; those of template_that_writes().
Result<std::optional<TrainedTemplate>> template_of_run(io::FileSystem& files,
                                                       const std::filesystem::path& folder);

}  // namespace underkeel::train
