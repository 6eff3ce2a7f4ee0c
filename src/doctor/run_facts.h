#pragma once
// What a LLaMA-Factory run file asks for, read leniently with the defaults of LLaMA-Factory and the Trainer.
// Not here: what our own engine makes of it, which is spec::examine_run_text().

#include <cstdint>
#include <string>
#include <vector>

#include "spec/value.h"

namespace underkeel::doctor {

struct RunFacts {
  std::int64_t micro_batch = 8;
  std::int64_t evaluation_batch = 8;
  std::int64_t accumulation_steps = 1;
  std::int64_t cutoff_tokens = 2048;
  double learning_rate = 5e-5;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double max_grad_norm = 1;
  double warmup_steps = 0;
  double warmup_ratio = 0;
  bool bf16 = false;
  bool fp16 = false;
  bool pure_bf16 = false;
  bool recomputes = true;  // disable_gradient_checkpointing: false
  bool is_lora = true;
  std::int64_t lora_rank = 8;
  std::vector<std::string> lora_targets = {"all"};
  double lora_dropout = 0;
  bool has_eager_attention = false;    // flash_attn: disabled
  bool has_fused_kernels = false;      // enable_liger_kernel or use_unsloth
  std::int64_t quantization_bits = 0;  // 0: none
  bool double_quantization = true;
  bool evaluates = false;
  bool keeps_logits = false;    // compute_accuracy or predict_with_generate
  bool reduces_logits = false;  // compute_accuracy: each batch becomes token ids first
  bool saves = true;
  std::string save_every;   // "100", "epoch", "best"
  double save_steps = 500;  // below 1: a share of the run
  double max_steps = 0;     // 0: not given
  double epochs = 3;
  std::int64_t save_total_limit = 0;  // 0: all are kept
  bool saves_model_only = false;
  bool keeps_best = false;  // the checkpoint of the best evaluation, which need not be the newest
  bool resumes = false;
  std::string template_name;
};

RunFacts run_facts(const spec::Value& root);

}  // namespace underkeel::doctor
