// A checkpoint of ours, given by its own folder: manifest, files, checksums, and every part of every tensor's state.
// Not here: which of several checkpoints is the newest (folder_rules.cpp).

#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "doctor/folder_rules.h"
#include "doctor/run_facts.h"
#include "io/checkpoint.h"
#include "plan/stored_name.h"
#include "spec/json_reader.h"

namespace underkeel::doctor {
namespace {

using plan::StatePart;

struct PartLook {
  std::int64_t missing = 0, wrong = 0, expected = 0;
  std::string first_missing, first_wrong, shape, wanted;

  bool is_absent() const { return missing == expected; }
};

PartLook look_at(const io::Manifest& manifest, const spec::ModelSpec& model, StatePart part) {
  std::map<std::string_view, const io::CheckpointTensor*> found;
  for (const io::CheckpointTensor& tensor : manifest.tensors) found[tensor.name] = &tensor;
  PartLook look;
  for (const spec::Parameter& parameter : spec::parameters_of(model)) {
    ++look.expected;
    const std::string name = plan::stored_name(part, parameter.name);
    const auto at = found.find(name);
    if (at == found.end()) {
      if (look.missing++ == 0) look.first_missing = name;
    } else if (at->second->shape != parameter.shape() && look.wrong++ == 0) {
      look.first_wrong = name;
      look.shape = io::shape_text(at->second->shape);
      look.wanted = io::shape_text(parameter.shape());
    }
  }
  return look;
}

class CheckpointLook {
 public:
  CheckpointLook(io::FileSystem& files, const std::string& folder, Diagnosis& diagnosis)
      : files_(files),
        folder_(folder),
        name_(std::filesystem::path(folder).filename().string()),
        diagnosis_(diagnosis) {}

  void run(const Inputs& inputs) {
    const std::optional<spec::ModelSpec>& model = inputs.model;
    const auto manifest = io::read_manifest(files_, folder_);
    if (!manifest) return tell_broken(io::manifest_file, {&manifest.error(), 1});
    if (inputs.run) check_batch(*manifest, run_facts(inputs.run->root), inputs);
    bool sound = check_bytes(*manifest);
    std::vector<std::string> parts;
    if (model) sound = check_parts(*manifest, *model, parts) && sound;
    if (!sound) return;
    tell("checkpoint-state-whole", Severity::info, "",
         {{"step", fmt::format("{}", manifest->step)},
          {"tensors", fmt::format("{}", manifest->tensors.size())},
          {"parts", fmt::format("{}", fmt::join(parts, ", "))}});
  }

 private:
  void tell(std::string_view id, Severity severity, std::string_view key, std::vector<Slot> slots) {
    diagnosis_.findings.push_back({.id = std::string(id),
                                   .severity = severity,
                                   .engine = Engine::underkeel,
                                   .file = name_,
                                   .key = std::string(key),
                                   .slots = std::move(slots)});
  }
  /// Its weights are offered where none of the files that they are read from is among the damaged ones.
  void tell_broken(std::string_view key, std::span<const Error> damaged) {
    const auto read = files_of_weights(files_, folder_);
    bool are_whole = read.has_value();
    if (read)
      for (const std::string& file : *read)
        for (const Error& error : damaged)
          are_whole = are_whole && error.where.find(file) == std::string::npos;
    for (const Error& error : damaged)
      tell("checkpoint-broken", Severity::error, key,
           {{"what", error.what},
            {"where", error.where},
            {"cure", are_whole
                         ? fmt::format("@[broken.or-weights] {} @[broken.weights-key]", folder_)
                         : std::string("@broken.earlier")}});
  }

  /// The sequences of a step when it was saved, and those of the run at hand.
  void check_batch(const io::Manifest& manifest, const RunFacts& run, const Inputs& inputs) {
    const auto state =
        spec::read_json(manifest.state, io::manifest_file, spec::JsonDialect::strict);
    const std::int64_t before = state ? whole_at(state->root, "sequences_per_step").value_or(0) : 0;
    constexpr std::int64_t most = 1 << 20;
    const bool is_sensible = run.micro_batch > 0 && run.micro_batch <= most &&
                             run.accumulation_steps > 0 && run.accumulation_steps <= most;
    if (before <= 0 || !is_sensible) return;
    const std::int64_t round = run.micro_batch * inputs.ranks.count;
    if (round * run.accumulation_steps == before) return;
    tell("checkpoint-of-other-batch", Severity::warning, "gradient_accumulation_steps",
         {{"before", fmt::format("{}", before)},
          {"micro", fmt::format("{}", run.micro_batch)},
          {"steps", fmt::format("{}", run.accumulation_steps)},
          {"ranks", fmt::format("{}", inputs.ranks.count)},
          {"now", fmt::format("{}", round * run.accumulation_steps)},
          {"cure", before % round == 0
                       ? fmt::format("gradient_accumulation_steps: {}", before / round)
                       : std::string("@batch.other-split")}});
  }

  /// Every file's header, and as many checksums as an answer has time for.
  bool check_bytes(const io::Manifest& manifest) {
    std::int64_t total = 0;
    for (const io::CheckpointFile& file : manifest.files) total += file.size_bytes;
    const std::int64_t shares = std::max<std::int64_t>(1, ceil_div(total, most_value_bytes));
    std::vector<std::byte> buffer(static_cast<std::size_t>(mebibyte));
    const auto damaged = io::verify_checkpoint(files_, {folder_, manifest}, buffer,
                                               {.rank = 0, .world_size = shares});
    if (!damaged) {
      tell_broken("", {&damaged.error(), 1});
      return false;
    }
    tell_broken("", *damaged);
    tell("checkpoint-checksums", Severity::info, "",
         {{"how", shares == 1 ? "@look.whole" : "@look.sampled"},
          {"total", amount(static_cast<double>(total))},
          {"folder", folder_}});
    return damaged->empty();
  }

  bool check_parts(const io::Manifest& manifest, const spec::ModelSpec& model,
                   std::vector<std::string>& whole) {
    const auto look = [&](StatePart part) { return look_at(manifest, model, part); };
    const PartLook moments[] = {look(StatePart::moment1), look(StatePart::moment2)};
    bool sound = true;
    // f32 weights are their own masters, and a run may export none.
    for (const StatePart part : {StatePart::weights, StatePart::master})
      if (const PartLook seen = look(part); seen.missing < seen.expected) {
        whole.emplace_back(name_of(part));
        sound = check_part(seen, part) && sound;
      }
    if (moments[0].is_absent() && moments[1].is_absent() && !whole.empty()) {
      tell("checkpoint-without-optimizer", Severity::warning, "", {});
      return sound;
    }
    for (const StatePart part : {StatePart::moment1, StatePart::moment2}) {
      whole.emplace_back(name_of(part));
      sound = check_part(moments[part == StatePart::moment2], part) && sound;
    }
    return sound;
  }

  bool check_part(const PartLook& look, StatePart part) {
    if (look.missing > 0)
      tell("checkpoint-state-lacks", Severity::error, look.first_missing,
           {{"part", std::string(name_of(part))},
            {"count", fmt::format("{}", look.missing)},
            {"expected", fmt::format("{}", look.expected)},
            {"tensor", look.first_missing}});
    if (look.wrong > 0)
      tell("checkpoint-state-other-shape", Severity::error, look.first_wrong,
           {{"part", std::string(name_of(part))},
            {"count", fmt::format("{}", look.wrong)},
            {"tensor", look.first_wrong},
            {"shape", look.shape},
            {"wanted", look.wanted}});
    return look.missing == 0 && look.wrong == 0;
  }

  io::FileSystem& files_;
  const std::string& folder_;
  std::string name_;
  Diagnosis& diagnosis_;
};

}  // namespace

void check_own_checkpoint(io::FileSystem& files, const Inputs& inputs, const std::string& folder,
                          Diagnosis& diagnosis) {
  CheckpointLook(files, folder, diagnosis).run(inputs);
}

}  // namespace underkeel::doctor
