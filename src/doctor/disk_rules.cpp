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
  need.export_bytes = final_bytes(other);
  only.need = need;
  return only;
}

}  // namespace

void tell_disk(const MemoryCase& memory, Diagnosis& diagnosis, const Inputs& inputs) {
  const CheckpointBytes bytes = checkpoint_bytes(memory);
  const std::optional<std::int64_t> saves = save_count(memory.run);
  const std::int64_t limit = std::clamp(memory.run.save_total_limit, std::int64_t{0},
                                        static_cast<std::int64_t>(most_saves));
  io::SpaceNeed need{.checkpoint_bytes = static_cast<std::int64_t>(bytes.total()),
                     .save_total_limit = limit,
                     .spared_count = memory.under_trainer && memory.run.keeps_best ? 1 : 0,
                     .export_bytes = final_bytes(memory),
                     .afterwards_bytes = exported_bytes(inputs)};
  // How many there will be is not always known, but the last step is saved.
  need.save_count = saves.value_or(io::most_at_once(need));
  need.is_least = !saves && limit == 0;
  if (io::needed_bytes(need) <= 0) return;
  std::optional<std::int64_t> free;
  if (inputs.machine) free = inputs.machine->out_free_bytes;
  DiskAnswer answer = judge_disk("deepspeed", need, free, weights_only(memory, need));
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
