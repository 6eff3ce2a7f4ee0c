// Checkpoints that DeepSpeed wrote: which ranks' files are there, and on how many ranks they can be resumed.

#include <set>

#include <fmt/format.h>

#include "doctor/config_rules.h"
#include "doctor/folder_rules.h"
#include "doctor/run_facts.h"
#include "io/checkpoint.h"
#include "spec/fields.h"
#include "spec/text_file.h"

namespace underkeel::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view tag_prefix = "global_step";
constexpr std::string_view rank_prefix = "zero_pp_rank_";

bool is_rank_file(std::string_view name) {
  return name.starts_with(rank_prefix) || name.starts_with("bf16_zero_pp_rank_") ||
         name.starts_with("mp_rank_");
}

/// What `latest` says, without line ends; nothing where it is not there.
std::optional<std::string> latest_in(const fs::path& folder) {
  const auto latest = spec::read_text_file(folder / "latest");
  if (!latest) return std::nullopt;
  std::string name = *latest;
  while (!name.empty() && (name.back() == '\n' || name.back() == ' ')) name.pop_back();
  return name;
}

/// Our engine names its newest checkpoint in a file of that name too.
bool is_latest_of_ours(const fs::path& folder) {
  const auto name = latest_in(folder);
  std::error_code status;
  return name && !name->empty() && fs::exists(folder / *name / io::manifest_file, status);
}

/// The folder of the tag's own files.
struct Tag {
  fs::path folder;
  std::string missing;  // what `latest` names and is not there
};

Tag tag_of(const fs::path& folder) {
  std::error_code status;
  if (const auto name = latest_in(folder)) {
    const bool is_plain = !name->empty() && name->find('/') == std::string::npos && name != "..";
    if (!is_plain || !fs::is_directory(folder / *name, status))
      return {folder, name->substr(0, 80)};
    return {folder / *name, ""};
  }
  // Without `latest` the newest tag is meant.
  std::int64_t newest = -1;
  Tag tag{folder, ""};
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(tag_prefix)) continue;
    const auto step = spec::parse_integer(name.substr(tag_prefix.size()));
    if (!step || *step <= newest) continue;
    newest = *step;
    tag.folder = entry.path();
  }
  return tag;
}

/// Ranks that have an optimizer file.
std::set<std::int64_t> ranks_in(const fs::path& folder) {
  std::set<std::int64_t> ranks;
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    const std::string name = entry.path().filename().string();
    const std::size_t at = name.find(rank_prefix);
    if (at == std::string::npos || name.find("optim_states") == std::string::npos) continue;
    const std::size_t begin = at + rank_prefix.size();
    const auto rank = spec::parse_integer(name.substr(begin, name.find('_', begin) - begin));
    if (rank && *rank >= 0 && *rank <= 1 << 20) ranks.insert(*rank);
  }
  return ranks;
}

bool loads_universal(const Inputs& inputs) {
  return inputs.deepspeed &&
         truth_at(inputs.deepspeed->root, "checkpoint.load_universal").value_or(false);
}

std::string count_text(std::int64_t count) {
  return fmt::format("{}", count);
}

}  // namespace

bool holds_deepspeed_state(const std::string& folder) {
  std::error_code status;
  if (fs::exists(fs::path(folder) / "latest", status) && !is_latest_of_ours(folder)) return true;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(tag_prefix) || is_rank_file(name)) return true;
  }
  return false;
}

void check_deepspeed_checkpoint(const Inputs& inputs, const std::string& path,
                                Diagnosis& diagnosis) {
  const auto tell = [&](std::string_view id, Severity severity, std::string key,
                        std::vector<Slot> slots, Engine engine = Engine::both) {
    diagnosis.findings.push_back({.id = std::string(id),
                                  .severity = severity,
                                  .engine = engine,
                                  .file = fs::path(path).filename().string(),
                                  .key = std::move(key),
                                  .slots = std::move(slots)});
  };
  std::error_code status;
  const Tag tag = tag_of(path);
  if (!tag.missing.empty())
    return tell("checkpoint-latest-is-gone", Severity::error, "latest", {{"tag", tag.missing}});
  const std::string universal_key = "checkpoint.load_universal";
  const bool wants_universal = loads_universal(inputs);
  if (fs::is_directory(tag.folder / "zero", status))
    return tell(wants_universal ? "checkpoint-universal" : "checkpoint-universal-unasked",
                wants_universal || !inputs.deepspeed ? Severity::info : Severity::error,
                universal_key, {}, Engine::deepspeed);
  const std::set<std::int64_t> ranks = ranks_in(tag.folder);
  if (ranks.empty()) {
    // Stage 0 keeps the optimizer in the model's file.
    const bool is_stage_0 = inputs.deepspeed && stage_in(inputs.deepspeed->root) == 0;
    if (!is_stage_0) tell("checkpoint-without-optimizer", Severity::warning, "", {});
    return;
  }
  const auto count = static_cast<std::int64_t>(ranks.size());
  const std::int64_t expected = *ranks.rbegin() + 1;
  if (count != expected)
    return tell("checkpoint-lacks-ranks", Severity::error, "",
                {{"count", count_text(count)}, {"expected", count_text(expected)}});
  if (wants_universal)
    return tell("checkpoint-not-universal", Severity::error, universal_key,
                {{"count", count_text(count)}}, Engine::deepspeed);
  const bool is_known = !inputs.ranks.source.starts_with('@');
  if (!is_known || count == inputs.ranks.count)
    return tell("checkpoint-whole", Severity::info, "", {{"count", count_text(count)}});
  tell("checkpoint-of-other-ranks", Severity::error, "",
       {{"count", count_text(count)},
        {"ranks", count_text(inputs.ranks.count)},
        {"source", inputs.ranks.source}},
       Engine::deepspeed);
}

void tell_ranks_of_resume(const Question& question, const Inputs& inputs, Diagnosis& diagnosis) {
  const bool resumes = question.resumes || (inputs.run && run_facts(inputs.run->root).resumes);
  if (!resumes || !inputs.deepspeed || stage_in(inputs.deepspeed->root) == 0 ||
      loads_universal(inputs))
    return;
  diagnosis.findings.push_back(
      {.id = "resume-wants-as-many-ranks",
       .engine = Engine::deepspeed,
       .file = inputs.deepspeed->file,
       .slots = {{"ranks", count_text(inputs.ranks.count)}, {"source", inputs.ranks.source}}});
}

}  // namespace underkeel::doctor
