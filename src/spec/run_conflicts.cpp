// Keys that LLaMA-Factory refuses together, besides those of the data (run_data.cpp). Those that stem from its launcher or its libraries alone
// are no conflicts here; docs/guide/run-files.md lists them.

#include <array>

#include "spec/run_keys.h"
#include "spec/run_sections.h"

namespace underkeel::spec {
namespace {

constexpr std::string_view is_off = "null|false";

/// `key` may not be set while `other` is.
struct Conflict {
  std::string_view key;
  std::string_view neutral;  // values of `key` that ask for nothing
  std::string_view other;
  std::string_view other_neutral;
  std::string_view fix;
};

constexpr std::array conflicts = {
    Conflict{"max_samples", "null", "streaming", is_off, "a stream has no first samples to count"},
    Conflict{"use_galore", is_off, "deepspeed", "null",
             "GaLore and a DeepSpeed config exclude each other"},
    Conflict{"use_apollo", is_off, "deepspeed", "null",
             "APOLLO and a DeepSpeed config exclude each other"},
    Conflict{"resize_vocab", is_off, "quantization_bit", "null",
             "embeddings of a quantised base cannot be resized"},
    Conflict{"fp8", is_off, "quantization_bit", "null", "keep one of the two"}};

/// Keys that mean something for one stage or kind of training alone.
struct Belonging {
  std::string_view key;
  std::string_view neutral;
  std::string_view owner;   // a key
  std::string_view wanted;  // its value
};
constexpr std::array belongings = {
    Belonging{"predict_with_generate", is_off, "stage", "sft"},
    Belonging{"adapter_name_or_path", "null", "finetuning_type", "lora"},
    Belonging{"quantization_bit", "null", "finetuning_type", "lora"},
    Belonging{"use_rslora", is_off, "finetuning_type", "lora"},
    Belonging{"use_dora", is_off, "finetuning_type", "lora"},
    Belonging{"loraplus_lr_ratio", "null", "finetuning_type", "lora"},
    Belonging{"pissa_init", is_off, "finetuning_type", "lora"}};

}  // namespace

void check_conflicts(RunReading& reading) {
  const auto is_set = [&](std::string_view key, std::string_view neutral) {
    const Value* value = reading.root.find(key);
    return value != nullptr && !is_neutral(*value, neutral);
  };
  for (const Conflict& conflict : conflicts) {
    if (is_set(conflict.key, conflict.neutral) && is_set(conflict.other, conflict.other_neutral))
      reading.fields.problem(conflict.key, fmt::format("it excludes {}", conflict.other),
                             std::string(conflict.fix));
  }
  for (const Belonging& belonging : belongings) {
    const Value* owner = reading.root.find(belonging.owner);
    const bool fits = owner != nullptr && owner->text == belonging.wanted;
    if (owner != nullptr && !fits && is_set(belonging.key, belonging.neutral))
      reading.fields.problem(belonging.key,
                             fmt::format("it belongs to {}: {}, not to {}", belonging.owner,
                                         belonging.wanted, shown(*owner)),
                             "remove it");
  }
  const double held_out = reading.run.evaluation.validation_size;
  if (is_set("streaming", is_off) && held_out > 1e-6 && held_out < 1)
    reading.fields.problem("val_size",
                           fmt::format("{} of a stream is unknown: it has no length", held_out),
                           "write a number of records above 1");
  if (is_set("streaming", is_off) && reading.run.max_steps <= 0)
    reading.fields.problem("streaming", "a stream has no end: max_steps is wanted",
                           "write max_steps");
}

}  // namespace underkeel::spec
