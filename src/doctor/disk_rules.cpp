// What the saves of a DeepSpeed run take of the disk: one checkpoint, and as many as stand there at once.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "doctor/disk_cures.h"
#include "doctor/memory_rules.h"
#include "io/checkpoint_space.h"

namespace underkeel::doctor {
namespace {

struct CheckpointBytes {
  double state = 0;    // the optimizer's files of all ranks
  double weights = 0;  // the model's files, DeepSpeed's own and the Trainer's
  double total() const { return state + weights; }
};

/// The Trainer writes a weights file beside what DeepSpeed writes, at stage 3 with the gather flag alone; DeepSpeed's own
/// model file holds the weights below stage 3, of an adapter run the adapters.
CheckpointBytes checkpoint_bytes(const MemoryCase& memory) {
  const DeepspeedSettings& s = memory.settings;
  const double element = s.is_16_bit ? 2 : 4;
  const bool has_master = s.is_16_bit || s.stage > 0;
  CheckpointBytes bytes;
  // Asked for weights that it may not gather, the Trainer writes DeepSpeed's whole checkpoint in their place.
  const bool falls_back = !memory.run.is_lora && s.stage == 3 && !s.gathers_on_save;
  if (!memory.run.saves_model_only || falls_back) {
    bytes.state = (has_master ? 12 : 8) * memory.sizes.trainable;
    if (s.stage < 3) bytes.weights += element * memory.sizes.trainable;
  }
  const bool has_file = memory.run.is_lora || s.stage < 3 || s.gathers_on_save;
  if (memory.under_trainer && has_file)
    bytes.weights += element * (memory.run.is_lora ? memory.sizes.trainable : memory.sizes.total());
  return bytes;
}

// No disk has room for more.
constexpr double most_saves = 1e5;

/// Saves of the whole run, the one at its end too; nothing where the files do not say.
std::optional<std::int64_t> save_count(const RunFacts& run) {
  const auto times = [](double count) {
    return static_cast<std::int64_t>(std::ceil(std::clamp(count, 0.0, most_saves)));
  };
  if (run.save_every == "epoch") return std::max<std::int64_t>(1, times(run.epochs));
  if (run.save_steps > 0 && run.save_steps < 1) return times(1 / run.save_steps);
  if (run.max_steps <= 0 || run.save_steps < 1) return std::nullopt;
  return times(run.max_steps / run.save_steps);
}

/// Under the Trainer, which has the key; at stage 3 it has to gather weights that it writes by themselves.
std::optional<WeightsOnly> weights_only(const MemoryCase& memory, io::SpaceNeed need) {
  if (!memory.under_trainer || memory.run.saves_model_only) return std::nullopt;
  MemoryCase other = memory;
  other.run.saves_model_only = true;
  WeightsOnly only{.words = "save_only_model: true"};
  if (memory.settings.stage == 3 && !memory.settings.gathers_on_save && !memory.run.is_lora) {
    other.settings.gathers_on_save = true;
    only.words += ", stage3_gather_16bit_weights_on_model_save: true";
  }
  need.checkpoint_bytes = static_cast<std::int64_t>(checkpoint_bytes(other).total());
  only.need = need;
  return only;
}

}  // namespace

void tell_disk(const MemoryCase& memory, Diagnosis& diagnosis, const Inputs& inputs) {
  if (!memory.run.saves) return;
  const CheckpointBytes bytes = checkpoint_bytes(memory);
  if (bytes.total() <= 0) return;
  const auto each = static_cast<std::int64_t>(bytes.total());
  const std::optional<std::int64_t> saves = save_count(memory.run);
  const auto limit = std::min(memory.run.save_total_limit, static_cast<std::int64_t>(most_saves));
  const auto tell = [&](std::string_view id, Severity severity, std::vector<Slot> slots) {
    slots.push_back({"each", amount(bytes.total())});
    slots.push_back({"state", amount(bytes.state)});
    slots.push_back({"weights", amount(bytes.weights)});
    diagnosis.findings.push_back({.id = std::string(id),
                                  .severity = severity,
                                  .certainty = Certainty::estimate,
                                  .engine = Engine::deepspeed,
                                  .file = inputs.run ? inputs.run->file : inputs.deepspeed->file,
                                  .key = "save_total_limit",
                                  .slots = std::move(slots)});
  };
  const bool is_known = inputs.machine && inputs.machine->out_free_bytes;
  const std::int64_t free = is_known ? *inputs.machine->out_free_bytes : 0;
  const std::string free_text = is_known ? capacity(free) : "@unknown";
  if (limit <= 0 && !saves)
    return tell(
        "deepspeed-disk-unbounded", Severity::info,
        {{"free", free_text}, {"room", is_known ? fmt::format("{}", free / each) : "@unknown"}});
  const io::SpaceNeed need{.checkpoint_bytes = each,
                           .save_count = saves.value_or(limit + 1),
                           .save_total_limit = std::max<std::int64_t>(0, limit)};
  const std::int64_t needed = io::needed_bytes(need);
  const bool fits = !is_known || needed <= free;
  if (!fits) diagnosis.deepspeed.verdict = Verdict::fails;
  tell(!is_known ? "deepspeed-disk"
       : fits    ? "deepspeed-disk-fits"
                 : "deepspeed-disk-does-not-fit",
       fits ? Severity::info : Severity::error,
       {{"needed", amount(static_cast<double>(needed))},
        {"count", fmt::format("{}", io::checkpoints_at_once(need))},
        {"free", free_text},
        {"cure", fits ? "" : disk_cures(need, free, weights_only(memory, need))}});
}

}  // namespace underkeel::doctor
