// What the saves of a DeepSpeed run take of the disk: one checkpoint, and as many as stand there at once.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "doctor/disk_cures.h"
#include "doctor/memory_rules.h"
#include "doctor/trainer_loop.h"
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
  CheckpointBytes bytes;
  if (s.is_trainers_loop) {
    const LoopBytes each = loop_bytes(s);
    if (!memory.run.saves_model_only) bytes.state = each.moments * memory.sizes.trainable;
    bytes.weights = each.weight * memory.sizes.trainable;
    if (!memory.run.is_lora) bytes.weights += element * memory.sizes.frozen;
    return bytes;
  }
  // Asked for weights that it may not gather, the Trainer writes DeepSpeed's whole checkpoint in their place.
  const bool falls_back = !memory.run.is_lora && s.stage == 3 && !s.gathers_on_save;
  if (!memory.run.saves_model_only || falls_back) {
    bytes.state = optimizer_file_bytes(s) * memory.sizes.trainable;
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
  if (!run.saves) return 0;
  if (run.save_every == "best") return std::nullopt;
  if (run.save_every == "epoch" && run.max_steps > 0) return std::nullopt;
  if (run.save_every == "epoch") return std::max<std::int64_t>(1, times(run.epochs));
  if (run.save_steps > 0 && run.save_steps < 1) return times(1 / run.save_steps);
  if (run.max_steps <= 0 || run.save_steps < 1) return std::nullopt;
  return times(run.max_steps / run.save_steps);
}

/// Of the model that the Trainer writes into the output folder at the end; where it may not gather the weights that is a
/// whole checkpoint again.
std::int64_t final_bytes(MemoryCase memory) {
  if (!memory.under_trainer) return 0;
  memory.run.saves_model_only = true;
  return static_cast<std::int64_t>(checkpoint_bytes(memory).total());
}

std::string words_of(const SavingChange& change) {
  std::string words;
  if (change.saving == Saving::weights_only) words = "save_only_model: true";
  if (change.saving == Saving::nothing) words = "save_strategy: \"no\"";
  if (change.gathers_weights)
    words +=
        fmt::format("{}stage3_gather_16bit_weights_on_model_save: true", words.empty() ? "" : ", ");
  return words;
}

}  // namespace

io::SpaceNeed disk_need_of(const MemoryCase& memory, const Inputs& inputs) {
  const std::optional<std::int64_t> saves = save_count(memory.run);
  const std::int64_t limit = std::clamp(memory.run.save_total_limit, std::int64_t{0},
                                        static_cast<std::int64_t>(most_saves));
  io::SpaceNeed need{
      .checkpoint_bytes = static_cast<std::int64_t>(checkpoint_bytes(memory).total()),
      .save_total_limit = limit,
      .spared_count = memory.under_trainer && memory.run.keeps_best ? 1 : 0,
      .export_bytes = final_bytes(memory),
      .afterwards_bytes = exported_bytes(inputs)};
  // How many there will be is not always known, but the last step is saved.
  need.save_count = saves.value_or(io::most_at_once(need));
  need.is_least = !saves && limit == 0;
  return need;
}

std::vector<SavingChange> saving_changes(const MemoryCase& memory) {
  // The keys are the Trainer's; of adapters it writes no whole model.
  if (!memory.under_trainer) return {};
  const bool may_gather =
      memory.settings.stage == 3 && !memory.settings.gathers_on_save && !memory.run.is_lora;
  std::vector<SavingChange> changes;
  if (may_gather) changes.push_back({.gathers_weights = true});
  // The best checkpoint is read at the end, its state too.
  if (memory.run.keeps_best || !memory.run.saves) return changes;
  // Weights that are written by themselves have to be gathered at stage 3.
  if (!memory.run.saves_model_only)
    changes.push_back({.gathers_weights = may_gather, .saving = Saving::weights_only});
  changes.push_back({.gathers_weights = may_gather, .saving = Saving::nothing});
  return changes;
}

MemoryCase with_saving(MemoryCase memory, const SavingChange& change) {
  if (change.gathers_weights) memory.settings.gathers_on_save = true;
  if (change.saving == Saving::weights_only) memory.run.saves_model_only = true;
  if (change.saving == Saving::nothing) memory.run.saves = false;
  return memory;
}

void tell_disk(const MemoryCase& memory, Diagnosis& diagnosis, const Inputs& inputs) {
  const CheckpointBytes bytes = checkpoint_bytes(memory);
  const io::SpaceNeed need = disk_need_of(memory, inputs);
  if (io::needed_bytes(need) <= 0) return;
  std::optional<std::int64_t> free;
  if (inputs.machine) free = inputs.machine->out_free_bytes;
  std::vector<DiskChange> changes;
  for (const SavingChange& change : saving_changes(memory))
    changes.push_back({.need = disk_need_of(with_saving(memory, change), inputs),
                       .words = words_of(change),
                       .leaves_state = change.saving == Saving::as_it_is});
  DiskAnswer answer = judge_disk("deepspeed", need, free, changes);
  if (need.is_least && answer.fits) {
    const std::int64_t last = need.export_bytes + need.afterwards_bytes;
    answer.id = "deepspeed-disk-unbounded";
    answer.slots.push_back({"tail", disk_tail(need)});
    answer.slots.push_back(
        {"room", free ? fmt::format("{}", (*free - last) / need.checkpoint_bytes) : "@unknown"});
  }
  if (!answer.fits) diagnosis.deepspeed.verdict = Verdict::fails;
  answer.slots.push_back({"state", amount(bytes.state)});
  answer.slots.push_back({"weights", amount(bytes.weights)});
  diagnosis.findings.push_back({.id = std::move(answer.id),
                                .severity = answer.severity,
                                .certainty = Certainty::estimate,
                                .engine = Engine::deepspeed,
                                .file = inputs.run ? inputs.run->file : inputs.deepspeed->file,
                                .key = need.save_count > 0 ? "save_total_limit" : "output_dir",
                                .slots = std::move(answer.slots)});
}

}  // namespace underkeel::doctor
