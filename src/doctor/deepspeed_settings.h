#pragma once
// A DeepSpeed config as the numbers that its memory depends on, with DeepSpeed's own defaults and what "auto" becomes.

#include <cstdint>
#include <optional>
#include <string>

#include "doctor/run_facts.h"
#include "spec/value.h"

namespace underkeel::doctor {

enum class Offload { none, cpu, nvme };
std::string_view name_of(Offload offload);

struct DeepspeedSettings {
  int stage = 0;
  Offload optimizer = Offload::none;
  Offload parameters = Offload::none;  // stage 3
  bool is_16_bit = true;
  bool is_bf16 = true;
  double reduce_bucket = 5e8;  // elements, as all below
  bool overlap_comm = false;
  bool contiguous_gradients = true;
  bool reduce_scatter = true;
  double prefetch_bucket = 5e7;
  double param_persistence = 1e5;
  double model_persistence = 9.2e18;
  double max_live = 1e9;
  double max_reuse_distance = 1e9;
  double sub_group = 1e9;
  double gradient_bytes = 2;                  // of grad_accum_dtype
  double master_bytes = 4;                    // and of the gradients that its update takes
  double moments_bytes = 8;                   // of both
  std::optional<double> communication_bytes;  // of communication_data_type; none: as the gradients
  double buffer_count = 4;                    // of the optimizer on NVMe
  double parameter_buffer_count = 5;
  double parameter_buffer = 1e8;
  bool pins_memory = true;
  bool gathers_on_save = false;
  bool is_trainers_loop = false;     // no DeepSpeed: the HF Trainer's own loop, at "stage 0"
  bool is_pure_bf16 = false;         // of that loop
  bool uses_bf16_optimizer = false;  // BF16_Optimizer: a gradient buffer of the whole model in f32
};

/// Of an element of a gradient as it is sent.
double sent_bytes(const DeepspeedSettings& settings);
/// Of a trained element in the optimizer's files of a checkpoint.
double optimizer_file_bytes(const DeepspeedSettings& settings);
/// `width` is the model's hidden size, for "auto"; 0 when it is not known. `run` says what bf16 and fp16 "auto" become.
DeepspeedSettings settings_of(const spec::Value& config, const std::optional<RunFacts>& run,
                              std::int64_t width);

}  // namespace underkeel::doctor
