// What doctor says adds up: parts are the whole that they are said to be parts of, and a thing has one figure.

#include <cmath>

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

/// A figure as it is told, and by how much it may be rounded.
struct Told {
  double low = 0, high = 0, slack = 0;
};

double unit_of(std::string_view name) {
  if (name.starts_with("GB")) return 1e9;
  if (name.starts_with("MB")) return 1e6;
  return name.starts_with("KB") ? 1e3 : 1;
}

/// Every amount of a text, "12.1 GB" or "0 B - 14.0 GB".
std::vector<Told> amounts_in(const std::string& text) {
  std::vector<Told> all;
  const char* at = text.c_str();
  bool joins = false;
  while (*at != '\0') {
    if (std::isdigit(static_cast<unsigned char>(*at)) == 0) {
      joins = joins && (*at == ' ' || *at == '-');
      ++at;
      continue;
    }
    char* end = nullptr;
    const double number = std::strtod(at, &end);
    const double unit = unit_of(end + 1);
    // Three digits stand without a fraction.
    const double slack = (number >= 100 && unit < 1e9 ? 0.5 : 0.05) * unit;
    if (joins) {
      all.back().high = number * unit;
      all.back().slack += slack;
    } else {
      all.push_back({number * unit, number * unit, slack});
    }
    at = end + (unit == 1 ? 2 : 3);
    joins = !joins && *at == ' ' && at[1] == '-';
  }
  return all;
}

Told sum_of(const std::string& text) {
  Told sum;
  for (const Told& each : amounts_in(text)) {
    sum.low += each.low;
    sum.high += each.high;
    sum.slack += each.slack;
  }
  return sum;
}

std::string slot_of(const Diagnosis& diagnosis, std::string_view id, std::string_view name) {
  for (const Finding& finding : found(diagnosis, id))
    for (const Slot& slot : finding.slots)
      if (slot.name == name) return slot.text;
  return "";
}

/// The parts in slot `parts` are the range in slot `whole`, or where `is_most` its upper end.
void expect_parts(const Diagnosis& diagnosis, std::string_view id, std::string_view whole,
                  std::string_view parts, bool is_most = false) {
  const std::string all = slot_of(diagnosis, id, whole), terms = slot_of(diagnosis, id, parts);
  if (all.empty() || terms.starts_with("@nothing")) return;
  const Told total = sum_of(all), sum = sum_of(terms);
  EXPECT_NEAR(total.high, sum.high, total.slack + sum.slack) << id << ": " << all << " = " << terms;
  if (is_most) return;
  EXPECT_NEAR(total.low, sum.low, total.slack + sum.slack) << id << ": " << all << " = " << terms;
}

struct Given {
  Shape shape;
  std::string zero, run, machine;
};

std::string machine_of(int gpus, int gpu_gib, int host_gib) {
  return fmt::format(R"({{"gpus_per_node": {}, "gpu_mem_gib": {}, "host_ram_gib": {}}})", gpus,
                     gpu_gib, host_gib);
}

Diagnosis diagnose(const Given& given) {
  Files files;
  files.write("model.json", model_json(given.shape));
  files.write("ds_config.json",
              fmt::format(R"({{"train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto",
                  "gradient_accumulation_steps": "auto", "bf16": {{"enabled": true}},
                  "zero_optimization": {}}})",
                          given.zero));
  files.write("train.yaml",
              "stage: sft\ndo_train: true\ndataset: data\nbf16: true\nlearning_rate: 1.0e-4\n"
              "per_device_train_batch_size: 2\ngradient_accumulation_steps: 2\ncutoff_len: 512\n" +
                  given.run);
  files.write("hardware.json", given.machine);
  return files.diagnose();
}

const std::string full = "finetuning_type: full\n";
const std::string adapters = "finetuning_type: lora\nlora_rank: 16\n";
const std::string offload_both =
    R"("offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"})";

std::vector<Given> all_given() {
  std::vector<Given> all;
  for (const int gpus : {1, 2, 8})
    for (const std::string zero :
         {R"({"stage": 0})", R"({"stage": 1})", R"({"stage": 2, "overlap_comm": true})",
          R"({"stage": 2, "contiguous_gradients": false, "reduce_bucket_size": 1e7})",
          R"({"stage": 2, "offload_optimizer": {"device": "cpu"}})", R"({"stage": 3})"})
      all.push_back({qwen_half, zero, full, machine_of(gpus, 15, 64)});
  all.push_back({llama_33b, fmt::format(R"({{"stage": 3, {}}})", offload_both), full,
                 machine_of(8, 40, 559)});
  all.push_back({qwen_32b, fmt::format(R"({{"stage": 3, {}}})", offload_both), adapters,
                 machine_of(4, 80, 256)});
  all.push_back({llama_7b, R"({"stage": 3})", adapters, machine_of(1, 24, 64)});
  all.push_back(
      {llama_70b, R"({"stage": 3})", adapters + "quantization_bit: 4\n", machine_of(4, 24, 256)});
  return all;
}

TEST(Sums, PartsAreTheWhole) {
  for (const Given& given : all_given()) {
    SCOPED_TRACE(given.zero + given.run + given.machine);
    const Diagnosis diagnosis = diagnose(given);
    expect_parts(diagnosis, "device-state", "step", "terms", true);
    expect_parts(diagnosis, "host-phases", "steady", "terms");
    expect_parts(diagnosis, "own-layout", "device", "terms");
    expect_parts(diagnosis, "own-layout-with-offload", "device", "terms");
    expect_parts(diagnosis, "own-layout-with-offload", "host", "host_terms");
    for (const char* id : {"deepspeed-fits", "deepspeed-may-not-fit"})
      expect_parts(diagnosis, id, "high", "terms", true);
    for (const char* id : {"deepspeed-fits", "deepspeed-may-not-fit", "deepspeed-does-not-fit"}) {
      const Told least = sum_of(slot_of(diagnosis, id, "low"));
      const Told terms = sum_of(slot_of(diagnosis, id, "terms"));
      EXPECT_NEAR(least.low, terms.low, least.slack + terms.slack) << id;
    }
  }
}

TEST(Sums, AnUpdateIsWhatWasThereAndWhatItAsksFor) {
  for (const Given& given : all_given()) {
    SCOPED_TRACE(given.zero + given.run + given.machine);
    const Diagnosis diagnosis = diagnose(given);
    const auto of = [&](std::string_view name) {
      return sum_of(slot_of(diagnosis, "first-update", name)).high;
    };
    if (found(diagnosis, "first-update").empty()) continue;
    const double sum = of("backward") + of("moments") + of("copies");
    EXPECT_NEAR(sum, of("peak"), 0.2e9);
    EXPECT_LE(of("set_up"), of("backward"));
    // The same update, told beside it.
    EXPECT_EQ(slot_of(diagnosis, "first-update", "peak"),
              slot_of(diagnosis, "device-state", "update"));
  }
}

TEST(Sums, ASaveOfAdaptersHasOneFigure) {
  for (const std::string quantised : {"", "quantization_bit: 4\n", "quantization_bit: 8\n"}) {
    const Diagnosis diagnosis =
        diagnose({llama_70b, R"({"stage": 3})", adapters + quantised, machine_of(8, 180, 900)});
    const auto ids = found(diagnosis, "adapter-save-collects-base");
    ASSERT_EQ(ids.size(), 1u);
    const Told most = sum_of(slot_of(diagnosis, ids[0].id, "adapters"));
    const Told base = sum_of(slot_of(diagnosis, ids[0].id, "base"));
    const Told saving = sum_of(slot_of(diagnosis, "host-phases", "saving"));
    const Told steady = sum_of(slot_of(diagnosis, "host-phases", "steady"));
    // Beside it each rank serialises a storage of its own state.
    const Holding& save = *diagnosis.deepspeed.at(Phase::save, Space::host);
    double serialised = 0;
    for (const Term& term : save.terms)
      if (term.name == "serialised") serialised += term.high_bytes;
    EXPECT_NEAR(saving.high, steady.high + most.high + base.high + serialised, 0.3e9) << quantised;
    EXPECT_NEAR(saving.low, steady.low + most.low, 1e7) << quantised;
    EXPECT_EQ(slot_of(diagnosis, "adapter-sizes", "base"), slot_of(diagnosis, ids[0].id, "base"));
  }
}

TEST(Sums, TheStateOnOneCardIsTheOneOfOurLayout) {
  for (const std::string& run : {full, adapters}) {
    const Diagnosis diagnosis = diagnose({llama_7b, R"({"stage": 3})", run, machine_of(1, 24, 64)});
    EXPECT_EQ(slot_of(diagnosis, "one-rank-saves-nothing", "state"),
              slot_of(diagnosis, "own-layout", "device"));
  }
}

TEST(Sums, ACheckpointOfAdaptersIsWhatIsSaidOfTheDisk) {
  const Diagnosis diagnosis =
      diagnose({llama_7b, R"({"stage": 3})", adapters, machine_of(1, 24, 64)});

  EXPECT_EQ(slot_of(diagnosis, "adapter-sizes", "checkpoint"),
            slot_of(diagnosis, "deepspeed-disk-unbounded", "each"));
}

TEST(Sums, AQuantisedBaseIsNeitherGatheredNorLoadedAsSixteenBit) {
  const Diagnosis diagnosis = diagnose(
      {llama_70b, R"({"stage": 3})", adapters + "quantization_bit: 4\n", machine_of(4, 24, 256)});

  EXPECT_TRUE(found(diagnosis, "load-needs-zero-init").empty());
  const Holding& load = *diagnosis.deepspeed.at(Phase::load, Space::device);
  double base = 0;
  for (const Term& term : load.terms)
    if (term.name == "weights" || term.name == "quantised") base += term.high_bytes;
  // 39.5 GB of base, 0.4 GB of adapters.
  EXPECT_NEAR(base, 39.5e9 + 0.41e9, 0.1e9);
  // Embedding and head are what passes through.
  EXPECT_LE(sum_of(slot_of(diagnosis, "live-window", "live")).high, 2 * 4.7e9);
  EXPECT_TRUE(says(diagnosis, "live-window").starts_with("besides ")) << messages(diagnosis);
}

TEST(Sums, TheTruthValueOfAStageIsStage1) {
  const auto says_of = [](const std::string& zero) {
    return slot_of(diagnose({qwen_half, zero, full, machine_of(2, 15, 64)}), "device-state",
                   "step");
  };
  EXPECT_EQ(says_of(R"({"stage": true})"), says_of(R"({"stage": 1})"));
  EXPECT_EQ(says_of("true"), says_of(R"({"stage": 1})"));
  EXPECT_EQ(says_of(R"({"stage": false})"), says_of(R"({"stage": 0})"));

  const Diagnosis diagnosis =
      diagnose({qwen_half, R"({"stage": true})", full, machine_of(2, 15, 64)});
  const auto told = found(diagnosis, "value-boolean");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(fix_of(told[0], Language::english), "write 1");
}

TEST(Sums, NothingIsForetoldOfAStageThatDeepspeedRefuses) {
  for (const std::string zero :
       {R"({"stage": 7})", R"({"stage": "x"})", R"({"stage": null})", R"({"stage ": 3})"}) {
    const Diagnosis diagnosis = diagnose({qwen_half, zero, full, machine_of(2, 15, 64)});
    EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails) << zero;
    EXPECT_EQ(found(diagnosis, "memory-not-judged").size(), 1u) << zero;
    EXPECT_TRUE(found(diagnosis, "device-state").empty()) << zero;
    for (const Alternative& row : diagnosis.alternatives)
      EXPECT_NE(row.engine, Engine::deepspeed) << zero;
  }
}

TEST(Sums, AtStage0NoBucketIsToldOf) {
  const Diagnosis diagnosis = diagnose(
      {qwen_half, R"({"stage": 0, "reduce_bucket_size": 5e8})", full, machine_of(2, 15, 64)});

  EXPECT_TRUE(found(diagnosis, "bucket-bytes").empty());
  EXPECT_NE(says(diagnosis, "all-reduce-copy").find("988 MB"), std::string::npos);
  EXPECT_TRUE(found(diagnosis, "advice-explicit-bucket").empty()) << messages(diagnosis);
}

}  // namespace
}  // namespace underkeel::doctor
