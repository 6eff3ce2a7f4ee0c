// Advice on another method, precision, optimizer, stage or machine: as somebody says it, and its figures on two models and
// two machines, each from its formula.

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "doctor/advice_rules.h"
#include "doctor/deepspeed_memory.h"
#include "doctor/sayings.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

constexpr Saying method_sayings[] = {
    {"advice-switch-stage", "Switch to ZeRO stage 1.", "at stage 1"},
    {"advice-ddp", "Use plain DDP instead.", "keeps the whole state on each GPU"},
    {"advice-16-bit", "Use bf16.", "the run trains in mixed precision"},
    {"advice-pure-bf16", "Set pure_bf16: true.", "53.9 GB instead of 107.8 GB"},
    {"advice-8-bit-adam", "Take 8-bit Adam, or paged_adamw_8bit.", "53.9 GB"},
    {"advice-paged-adam-32", "Use paged_adamw_32bit.", "keeps both moments as they are, 53.9 GB"},
    {"advice-other-optimizer", "Use Adafactor instead of AdamW.", "keep one, 27.0 GB"},
    {"advice-unknown-optimizer", "Try GaLore.", "not known"},
    {"advice-load-quantised", "Load it in 4bit.", "a base in 4 bits takes"},
    {"advice-lora-rank", "Lower lora_rank to 4.", "at rank 4"},
    {"advice-lora-targets", "Only target q_proj and v_proj with LoRA, target_modules.", "alone"},
    {"advice-more-gpus", "Use 4 GPUs.", "on 1 rank and"},
    {"advice-larger-gpu", "Get a bigger GPU.", "85.9 GB"},
    {"advice-more-ram", "Buy more RAM.", "only through offload"},
    {"advice-other-processes", "Kill all other processes on the card.", "nvidia-smi tells"},
    {"advice-fsdp", "Use FSDP instead.", "splits what stage 3 splits"},
    {"advice-other-program", "Just use unsloth.", "107.8 GB"},
    {"advice-fused-loss", "Use the liger kernel.", "786 MB"},
    {"advice-use-cache", "Set use_cache=False.", "1.1 GB"},
    {"advice-accumulation", "Increase gradient_accumulation_steps to 16.", "as with 16"},
    {"advice-evaluation-batch", "Reduce per_device_eval_batch_size to 1.", "does not evaluate"},
    {"advice-evaluation-accumulation", "Set eval_accumulation_steps=1.", "either way"},
    {"advice-offload-optimizer", "Use CPU offload.", "available: unknown"},
    {"advice-offload-parameters", "Set offload_param to cpu.", "acts at stage 3 alone"},
    {"advice-offload-nvme", "Offload to NVMe.", "reads and writes the optimizer state"},
    {"advice-smaller-model", "Use a smaller model.", "5.4e9"},
    {"advice-freeze", "Freeze the embedding layer.", "1.8 GB"},
    {"advice-memlock", "Run ulimit -l unlimited.", "67.6 GB"},
    {"advice-workers", "Set dataloader_num_workers to 0.", "49.2 KB"},
    {"advice-fewer-samples", "Train with less data, lower max_samples.", "not what a step holds"},
    {"advice-save-model-only", "Set save_only_model: true.", "13.5 GB instead of 94.3 GB"},
    {"advice-fewer-checkpoints", "Set save_total_limit to 2.", "at most 242.6 GB"},
    {"advice-optimizer-on-nvme", "Offload the optimizer to NVMe.", "with the optimizer on NVMe"},
    {"advice-half-for-half", "Use fp16 instead of bf16.", "both take 2 bytes"},
    {"advice-16-bit-master", "Set bf16_master_weights_and_grads.",
     "13.5 GB a rank instead of 27.0 GB"},
    {"advice-speed-only", "Enable torch.compile.", "not memory"},
};

TEST(AdviceOnTheMethod, IsRecognisedAndAnsweredRowByRow) {
  std::set<std::string_view> answered = {
      "advice-swap"};  // a row of the other table, in other words
  for (const Saying& saying : method_sayings) {
    Files files;
    files.write("answer.txt", saying.says);

    const std::string answer = answer_to(saying, files.diagnose());

    EXPECT_NE(answer.find(saying.answer), std::string::npos) << saying.says << "\n" << answer;
    answered.insert(saying.id);
  }
  for (const AdviceRule& rule : method_advice())
    EXPECT_TRUE(answered.count(rule.id)) << rule.id << " has no saying";
}

struct Surroundings {
  Shape shape;
  int gpus;
  double gpu_gib;
};
constexpr Surroundings machines[] = {
    {llama_7b, 1, 80}, {llama_7b, 8, 40}, {qwen_half, 1, 80}, {qwen_half, 8, 40}};
constexpr double run_tokens = 4096, run_sequences = 4;

/// Beside a run of full fine-tuning with micro-batch 4 and 4,096 tokens at stage 3.
std::string answer_at(const Surroundings& machine, const Saying& saying,
                      std::string_view zero = "") {
  Files files;
  files.write("answer.txt", saying.says);
  files.write("model.json", model_json(machine.shape));
  files.write("train.yaml",
              fmt::format("stage: sft\nfinetuning_type: full\nbf16: true\ncutoff_len: {:.0f}\n"
                          "per_device_train_batch_size: {:.0f}\n",
                          run_tokens, run_sequences));
  files.write("ds_config.json", fmt::format(R"({{"train_micro_batch_size_per_gpu": "auto",
    "zero_optimization": {{"stage": 3{}}}}})",
                                            zero));
  files.write("hardware.json",
              fmt::format(R"({{"gpus_per_node": {}, "gpu_mem_gib": {}, "host_ram_gib": 900}})",
                          machine.gpus, machine.gpu_gib));
  return answer_to(saying, files.diagnose());
}

void expect_figure(const Surroundings& machine, const Saying& saying, double bytes) {
  const std::string answer = answer_at(machine, saying);
  EXPECT_NE(answer.find(amount(bytes)), std::string::npos)
      << saying.says << ": " << amount(bytes) << "\n"
      << answer;
}

double state_at(const ModelSizes& sizes, int stage, double ranks) {
  DeepspeedSettings settings;
  settings.stage = stage;
  settings.overlap_comm = stage == 3;
  const Forecast state = deepspeed_memory({.sizes = sizes,
                                           .settings = settings,
                                           .ranks = ranks,
                                           .ranks_on_node = ranks,
                                           .has_process = false,
                                           .device_limit = {}});
  return std::max(state.at(Phase::step, Space::device)->low(),
                  state.at(Phase::update, Space::device)->low());
}

TEST(AdviceOnTheMethod, CountsWithTheModelAndTheMachine) {
  for (const Surroundings& machine : machines) {
    const spec::ModelSpec model = model_of(machine.shape);
    const ModelSizes sizes = sizes_of(model);
    const auto number = [](std::int64_t value) { return static_cast<double>(value); };
    const double psi = number(spec::parameter_count(model)), ranks = machine.gpus;
    const double share = psi / ranks, rows = run_sequences * run_tokens;

    expect_figure(machine, {"advice-switch-stage", "Switch to ZeRO-2.", ""},
                  state_at(sizes, 2, ranks));
    expect_figure(machine, {"advice-switch-stage", "Switch to stage 0.", ""},
                  state_at(sizes, 0, ranks));
    expect_figure(machine, {"advice-ddp", "Use DDP.", ""}, state_at(sizes, 0, ranks));
    expect_figure(machine, {"advice-fsdp", "Use FSDP.", ""}, state_at(sizes, 3, ranks));
    expect_figure(machine, {"advice-more-gpus", "Use 16 GPUs.", ""}, state_at(sizes, 3, 16));
    expect_figure(machine, {"advice-pure-bf16", "Set pure_bf16.", ""}, 8 * psi);
    expect_figure(machine, {"advice-8-bit-adam", "Use 8-bit Adam.", ""}, 8 * share);
    expect_figure(machine, {"advice-8-bit-adam", "Use 8-bit Adam.", ""}, 2 * share);
    expect_figure(machine, {"advice-paged-adam-32", "Use paged_adamw_32bit.", ""}, 8 * share);
    expect_figure(machine, {"advice-other-optimizer", "Use Lion.", ""}, 4 * share);
    expect_figure(machine, {"advice-unknown-optimizer", "Use GaLore.", ""}, 8 * share);
    expect_figure(machine, {"advice-other-program", "Use unsloth.", ""}, 16 * psi);
    expect_figure(machine, {"advice-fused-loss", "Use liger.", ""},
                  12 * rows * number(model.vocabulary));
    expect_figure(machine, {"advice-use-cache", "Set use_cache to false.", ""},
                  4 * rows * number(model.layers * model.key_heads * model.head_width));
    expect_figure(machine, {"advice-save-model-only", "Set save_only_model.", ""}, 14 * psi);
    expect_figure(machine, {"advice-freeze", "Freeze the embedding layers.", ""},
                  14 * number(model.vocabulary * model.width));
    expect_figure(machine, {"advice-workers", "Set num_workers to 0.", ""}, 24 * rows);
    RunFacts eight_bits;
    eight_bits.quantization_bits = 8;
    const ModelSizes quantised = sizes_of(model, eight_bits);
    expect_figure(machine, {"advice-load-quantised", "Use load_in_8bit.", ""},
                  quantised.quantised + 2 * (quantised.frozen - quantised.quantised));
    RunFacts two;
    two.lora_targets = {"q_proj", "v_proj"};
    expect_figure(machine, {"advice-lora-targets", "LoRA target_modules: only q_proj.", ""},
                  16 * sizes_of(model, two).trainable);
  }
}

TEST(AdviceOnTheMethod, SavesNoMomentsThatLieOnTheHost) {
  const std::string offloaded = R"(, "offload_optimizer": {"device": "cpu"})";
  for (const Saying& saying : {Saying{"advice-8-bit-adam", "Use 8-bit Adam.", ""},
                               Saying{"advice-other-optimizer", "Use Lion.", ""},
                               Saying{"advice-paged-adam-32", "Use paged_adamw_32bit.", ""}}) {
    const std::string answer = answer_at(machines[0], saying, offloaded);
    EXPECT_TRUE(answer.starts_with("false")) << answer;
    EXPECT_NE(answer.find(" 0 B"), std::string::npos) << answer;
  }
}

TEST(AdviceOnTheMethod, JudgesAShareOfMemoryByTheRun) {
  // The state of one card hides what recomputation spares; on eight it is a small part.
  const Saying said = {"advice-recompute-share", "Gradient checkpointing halves memory.", ""};
  const Saying more = {"advice-recompute-share", "Gradient checkpointing saves 30% of memory.", ""};

  EXPECT_TRUE(answer_at(machines[0], said).starts_with("half true"))
      << answer_at(machines[0], said);
  EXPECT_TRUE(answer_at(machines[1], said).starts_with("true")) << answer_at(machines[1], said);
  EXPECT_NE(answer_at(machines[0], more).find("30% were said"), std::string::npos)
      << answer_at(machines[0], more);
}

}  // namespace
}  // namespace underkeel::doctor
