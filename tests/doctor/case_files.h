#pragma once
// A model, a config, a run and a machine as files, of which only what matters in a test is given.

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {

struct Machine {
  int nodes = 1;
  int gpus = 1;
  double gpu_gib = 80;
  double host_gib = 512;
  std::string_view more = {};  // further keys
};

inline std::string machine_json(const Machine& machine) {
  return fmt::format(
      R"({{"nodes": {}, "gpus_per_node": {}, "gpu_mem_gib": {}, "host_ram_gib": {}{}}})",
      machine.nodes, machine.gpus, machine.gpu_gib, machine.host_gib, machine.more);
}

/// A run file of LLaMA-Factory with `more` lines.
inline std::string run_yaml(std::string_view more) {
  return "stage: sft\ndo_train: true\ndataset: data\nlogging_steps: 1\nlearning_rate: 1.0e-4\n" +
         std::string(more);
}

/// A config that leaves to the run file what it can, with `zero` in zero_optimization.
inline std::string config_json(std::string_view zero, std::string_view mode = "bf16") {
  return fmt::format(
      R"({{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
          "train_batch_size": "auto", "{}": {{"enabled": true}}, "zero_optimization": {{{}}}}})",
      mode, zero);
}

struct Case {
  Shape shape;
  std::string zero;  // empty: no DeepSpeed config
  std::string run;
  Machine machine;
  std::string_view mode = "bf16";
};

inline Files files_of(const Case& input) {
  Files files;
  files.write("model.json", model_json(input.shape));
  if (!input.zero.empty()) files.write("ds_config.json", config_json(input.zero, input.mode));
  files.write("train.yaml", run_yaml(input.run));
  files.write("hardware.json", machine_json(input.machine));
  return files;
}

inline void expect_says(const Diagnosis& diagnosis, std::string_view id,
                        const std::vector<std::string>& parts) {
  const auto all = found(diagnosis, id);
  ASSERT_FALSE(all.empty()) << id << "\n" << messages(diagnosis);
  const std::string text =
      message_of(all[0], Language::english) + " / " + fix_of(all[0], Language::english);
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

inline double low_gb(const Forecast& forecast, Phase phase, Space space, std::string_view term) {
  double bytes = 0;
  for (const Term& each : forecast.at(phase, space)->terms)
    if (each.name == term) bytes += each.low_bytes;
  return bytes / 1e9;
}

inline const std::string offload_optimizer =
    R"("offload_optimizer": {"device": "cpu", "pin_memory": true})";
inline const std::string offload_both =
    offload_optimizer + R"(, "offload_param": {"device": "cpu", "pin_memory": true})";
inline const std::string full_1x2 =
    "finetuning_type: full\nbf16: true\nper_device_train_batch_size: 1\n"
    "gradient_accumulation_steps: 2\n";

}  // namespace underkeel::doctor
