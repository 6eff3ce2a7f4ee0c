// Checkpoints that DeepSpeed wrote: which ranks' files are there, and on how many ranks they can be resumed.

#include <fmt/format.h>

#include "doctor/checkpoint_look.h"
#include "doctor/config_rules.h"
#include "doctor/folder_rules.h"
#include "doctor/run_facts.h"
#include "io/checkpoint.h"

namespace underkeel::doctor {
namespace {

namespace fs = std::filesystem;

bool loads_universal(const Inputs& inputs) {
  return inputs.deepspeed &&
         truth_at(inputs.deepspeed->root, "checkpoint.load_universal").value_or(false);
}

/// Beside DeepSpeed's files the Trainer leaves its own.
bool is_of_trainer(const std::string& folder) {
  std::error_code status;
  return fs::exists(fs::path(folder) / "trainer_state.json", status);
}

std::string whole_text(std::int64_t count) {
  return fmt::format("{}", count);
}

}  // namespace

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
  const ShardLook look = look_at_shards(path);
  const bool is_stage_0 = inputs.deepspeed && stage_in(inputs.deepspeed->root) == 0;
  bool goes_on = true;
  for (Lack& lack : lacks_of_shards(look, is_stage_0)) {
    // Who calls DeepSpeed may name the tag; the Trainer names none.
    const bool is_open = lack.id == "checkpoint-without-latest" && !is_of_trainer(path);
    goes_on = goes_on && lack.id == "checkpoint-without-latest";
    tell(lack.id, lack.stops && !is_open ? Severity::error : Severity::warning,
         lack.id.find("latest") != std::string::npos ? "latest" : "", std::move(lack.slots));
  }
  if (!goes_on) return;
  const std::string universal_key = "checkpoint.load_universal";
  const bool wants_universal = loads_universal(inputs);
  if (look.is_universal)
    return tell(wants_universal ? "checkpoint-universal" : "checkpoint-universal-unasked",
                wants_universal || !inputs.deepspeed ? Severity::info : Severity::error,
                universal_key, {}, Engine::deepspeed);
  const std::int64_t count = look.world();
  if (count == 0) return;  // stage 0: any number of ranks has the same
  if (wants_universal)
    return tell("checkpoint-not-universal", Severity::error, universal_key,
                {{"count", whole_text(count)}}, Engine::deepspeed);
  const bool is_known = !inputs.ranks.source.starts_with('@');
  if (!is_known || count == inputs.ranks.count)
    return tell("checkpoint-whole", Severity::info, "", {{"count", whole_text(count)}});
  tell("checkpoint-of-other-ranks", Severity::error, "",
       {{"count", whole_text(count)},
        {"ranks", whole_text(inputs.ranks.count)},
        {"source", inputs.ranks.source}},
       Engine::deepspeed);
}

void tell_ranks_of_resume(const Question& question, const Inputs& inputs, Diagnosis& diagnosis) {
  const bool resumes = question.resumes || !resumed_by_itself(inputs).empty() ||
                       (inputs.run && run_facts(inputs.run->root).resumes);
  if (!resumes || !inputs.deepspeed || stage_in(inputs.deepspeed->root) == 0 ||
      loads_universal(inputs))
    return;
  diagnosis.findings.push_back(
      {.id = "resume-wants-as-many-ranks",
       .engine = Engine::deepspeed,
       .file = inputs.deepspeed->file,
       .slots = {{"ranks", whole_text(inputs.ranks.count)}, {"source", inputs.ranks.source}}});
}

std::string resumed_by_itself(const Inputs& inputs) {
  if (!inputs.run) return {};
  const spec::Value& root = inputs.run->root;
  const auto output = text_at(root, "output_dir");
  if (!output || run_facts(root).resumes || !truth_at(root, "do_train").value_or(false) ||
      truth_at(root, "overwrite_output_dir").value_or(false))
    return {};
  std::error_code status;
  fs::path folder = *output;
  if (!fs::is_directory(folder, status)) folder = fs::path(inputs.run->path).parent_path() / folder;
  std::int64_t newest = -1;
  std::string found;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    const std::int64_t step = step_of_name(entry.path().filename().string());
    if (step <= newest || !entry.is_directory(status)) continue;
    newest = step;
    found = entry.path().string();
  }
  // Ours are told of where our engine is looked at.
  return fs::exists(fs::path(found) / io::manifest_file, status) ? std::string() : found;
}

void check_resume_by_itself(io::FileSystem& files, const Inputs& inputs, Diagnosis& diagnosis) {
  const std::string folder = resumed_by_itself(inputs);
  if (folder.empty()) return;
  const std::string name = fs::path(folder).filename().string();
  diagnosis.findings.push_back({.id = "resume-by-itself",
                                .engine = Engine::deepspeed,
                                .file = inputs.run->file,
                                .key = "output_dir",
                                .line = line_of(inputs.run->root, "output_dir"),
                                .slots = {{"name", name}}});
  const auto tell = [&](const std::string& id, Severity severity, std::vector<Slot> slots) {
    diagnosis.findings.push_back({.id = id,
                                  .severity = severity,
                                  .engine = Engine::deepspeed,
                                  .file = name,
                                  .slots = std::move(slots)});
  };
  std::int64_t header_bytes = most_header_bytes;
  const bool is_stage_0 = inputs.deepspeed && stage_in(inputs.deepspeed->root) == 0;
  std::vector<Lack> lacks = lacks_of_checkpoint(
      files, {.folder = folder, .step = step_of_name(name), .is_stage_0 = is_stage_0},
      header_bytes);
  for (Lack& lack : lacks)
    tell(lack.id, lack.stops ? Severity::error : Severity::warning, std::move(lack.slots));
  if (inputs.deepspeed && !holds_deepspeed_state(folder))
    tell("checkpoint-of-no-deepspeed", Severity::error, {{"folder", folder}});
  const std::int64_t count = look_at_shards(folder).world();
  const bool is_known = !inputs.ranks.source.starts_with('@');
  if (lacks.empty() && is_known && count > 0 && count != inputs.ranks.count &&
      !loads_universal(inputs))
    tell("checkpoint-of-other-ranks", Severity::error,
         {{"count", whole_text(count)},
          {"ranks", whole_text(inputs.ranks.count)},
          {"source", inputs.ranks.source}});
}

}  // namespace underkeel::doctor
