// Claims of people on Llama-2-7B at stage 3 with the optimizer on the host, one 80 GiB card and a host of 256 GiB, or on
// another machine: which are right.

#include <gtest/gtest.h>

#include "doctor/sayings.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

/// Files of a run that offloads its optimizer, or does not, and the machine it runs on.
struct Bench {
  int gpus = 1;
  int gpu_gib = 80;
  int host_gib = 256;
  bool offloads = true;
};

Diagnosis diagnosis_of(const Bench& bench, std::string_view says) {
  Files files;
  files.write("model.json", model_json(llama_7b));
  files.write("train.yaml",
              "finetuning_type: full\nbf16: true\ncutoff_len: 2048\n"
              "per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\n");
  files.write(
      "ds.json",
      fmt::format(R"({{"zero_optimization": {{"stage": 3, "reduce_bucket_size": "auto"{}}},)"
                  R"( "bf16": {{"enabled": true}}}})",
                  bench.offloads ? R"(, "offload_optimizer": {"device": "cpu"})" : ""));
  files.write("hw.yaml",
              fmt::format("nodes: 1\ngpus_per_node: {}\ngpu_mem_gib: {}\nhost_ram_gib: {}\n",
                          bench.gpus, bench.gpu_gib, bench.host_gib));
  files.write("answer.txt", says);
  return files.diagnose();
}

struct Claim {
  const char* id;
  const char* says;
  const char* answer;  // what the answer holds; its verdict, where that begins it
};

void expect_answer(const Bench& bench, const Claim& claim) {
  const Diagnosis diagnosis = diagnosis_of(bench, claim.says);
  const auto all = found(diagnosis, claim.id);

  ASSERT_EQ(all.size(), 1u) << claim.says << ": " << claim.id << "\n" << messages(diagnosis);
  const std::string message = message_of(all[0], Language::english);
  EXPECT_NE(message.find(claim.answer), std::string::npos) << claim.says << ": " << message;
}

TEST(AdviceAsAClaim, IsReadForWhatItSays) {
  const Claim claims[] = {
      {"advice-gather-needed-for-checkpoint",
       "Without stage3_gather_16bit_weights_on_model_save the checkpoint is incomplete.",
       "false: stage3_gather"},
      {"advice-gather-needed-for-checkpoint",
       "不设置 stage3_gather_16bit_weights_on_model_save，checkpoint 就不完整",
       "false: stage3_gather"},
      {"advice-gather-needed-for-checkpoint",
       "Without stage3_gather_16bit_weights_on_model_save the checkpoint is complete.",
       "true: stage3_gather"},
      {"advice-gather-needed-for-checkpoint",
       "stage3_gather_16bit_weights_on_model_save 默认是 false", "true: stage3_gather"},
      {"advice-gather-needed-for-checkpoint",
       "stage3_gather_16bit_weights_on_model_save 默认是 true", "false: stage3_gather"},
      {"advice-drop-optimizer-offload",
       "Disable optimizer offload and keep only parameter offload.", "false: bandwidth"},
      {"advice-drop-optimizer-offload", "禁用优化器卸载，只保留参数卸载", "101.4 GB"},
      {"advice-drop-optimizer-offload", "Offload the parameters, not the optimizer.",
       "false: bandwidth"},
      {"advice-drop-optimizer-offload", "Turn off offload_optimizer but keep offload_param.",
       "false: bandwidth"},
      {"advice-pin-off", "Set pin_memory to false to lower the host memory use.", "true: page-"},
      {"advice-pin-off", "Set pin_memory to false to lower GPU memory.", "false: page-"},
      {"advice-lower-cutoff", "Reducing cutoff_len does nothing.", "false: activations"},
      {"advice-lower-cutoff", "降低 cutoff_len 没有任何作用", "false: activations"},
      {"advice-zero-init", "You have to call zero.Init yourself.", "false: zero.Init"},
      {"advice-zero-init", "你必须自己调用 zero.Init", "false: zero.Init"},
      {"advice-zero-init", "You do not need to call zero.Init yourself.", "true: zero.Init"},
      {"advice-stage-3-fits", "单卡 80GB 不卸载的 ZeRO-3 放不下 7B 全参微调", "true: stage 3"},
      {"advice-stage-3-fits", "ZeRO-3 without offload OOMs here.", "true: stage 3"},
      {"advice-no-such-key-opt-offload", "zero_force_opt_offload 这个键根本不存在",
       "true: `zero_force"},
      {"advice-no-such-key-opt-offload", "不存在 zero_force_opt_offload 这个键",
       "true: `zero_force"},
      {"advice-force-cpu-optimizer", "zero_force_ds_cpu_optimizer is irrelevant for memory",
       "true: zero_force"},
      {"advice-force-cpu-optimizer", "zero_force_ds_cpu_optimizer 与显存无关", "true: zero_force"},
      {"advice-checkpoint-collects",
       "Contrary to popular belief, save_checkpoint gathers nothing on rank 0.",
       "true: save_checkpoint"},
      {"advice-checkpoint-collects", "有人说 save_checkpoint 会在 rank 0 上收集完整参数，这是错的",
       "true: save_checkpoint"},
      {"advice-stage-3-fits", "I doubt that ZeRO-3 fits without offload.", "true: stage 3"},
      {"advice-offload-parameters", "offload_param works with ZeRO-2.", "false: offload_param"},
      {"advice-offload-parameters", "offload_param does not work with ZeRO-2.",
       "true: offload_param"},
  };
  for (const Claim& claim : claims) expect_answer({}, claim);
}

TEST(AdviceAsAClaim, HasNoAnswerOfWhatItOnlyNames) {
  for (const auto& [id, says] :
       {std::pair("advice-more-gpus", "dataloader_num_workers=8 uses GPU memory"),
        std::pair("advice-offload-optimizer",
                  "Disable optimizer offload and keep only parameter offload."),
        std::pair("advice-stage-2-offload-enough", "offload_param works with ZeRO-2.")})
    EXPECT_TRUE(found(diagnosis_of({}, says), id).empty()) << says;
}

TEST(AdviceAsAClaim, ComparesBothWays) {
  const Claim claims[] = {
      {"advice-explicit-bucket", "reduce_bucket_size of 5e8 is worse than auto.", "true: an"},
      {"advice-explicit-bucket", "For reduce_bucket_size auto is better than 5e8.", "true: an"},
      {"advice-explicit-bucket", "reduce_bucket_size 5e8 比 auto 差", "true: an"},
      {"advice-explicit-bucket", "reduce_bucket_size of 5e8 is better than auto.", "false: an"},
      {"advice-stage-2-faster", "ZeRO-2 加 offload 比 ZeRO-3 加 offload 快", "true: stage 2"},
      {"advice-stage-2-faster", "ZeRO-2 加 offload 比 ZeRO-3 加 offload 慢", "false: stage 2"},
      {"advice-stage-2-faster", "ZeRO-3 with offload is faster than ZeRO-2 with offload.",
       "false: stage 2"},
      {"advice-stage-2-faster", "ZeRO-3 with offload is slower than ZeRO-2 with offload.",
       "true: stage 2"},
  };
  for (const Claim& claim : claims) expect_answer({}, claim);
  const Claim on_eight[] = {
      {"advice-stage-3-uses-more", "ZeRO-2 uses more memory than ZeRO-3.", "true: without"},
      {"advice-stage-3-uses-more", "ZeRO-3 needs less memory than ZeRO-2.", "true: without"},
      {"advice-stage-3-uses-more", "与 ZeRO-2 相比，ZeRO-3 更占显存", "false: without"},
      {"advice-stage-3-uses-more", "ZeRO-3 uses more memory than ZeRO-2.", "false: without"}};
  for (const Claim& claim : on_eight)
    expect_answer({.gpus = 8, .host_gib = 1024, .offloads = false}, claim);
}

TEST(AdviceAsAClaim, IsDecidedByTheRunInEverySpace) {
  const Claim enough = {"advice-stage-2-offload-enough", "ZeRO-2 with offload is enough.",
                        "true: stage 2"};
  expect_answer({}, enough);
  expect_answer({.gpu_gib = 24, .host_gib = 64}, {enough.id, enough.says, "false: stage 2"});
  expect_answer({.gpus = 8, .host_gib = 1024, .offloads = false},
                {"advice-stage-3-fits", "ZeRO-3 fits here without offload.", "true: stage 3"});
  // A resume is another run: both answers name what this one needs.
  const Bench bench = {.host_gib = 160};
  expect_answer(bench, {"advice-offload-optimizer", "Offload the optimizer to the CPU.",
                        "of host memory in forward and backward (available"});
  // A shorter batch of which the rest may not fit is half a help.
  expect_answer({.gpu_gib = 14},
                {"advice-lower-cutoff", "Use cutoff_len 1024.", "half true: activations"});
}

TEST(AdviceAsAClaim, IsAnsweredForTheMachineThatItNames) {
  const Claim claims[] = {
      {"advice-stage-3-fits", "With 8 GPUs ZeRO-3 fits without offload.", "true: stage 3"},
      {"advice-stage-3-fits", "On 8x A100 ZeRO-3 fits without offload.", "on 8 ranks"},
      {"advice-stage-3-fits", "两张 80GB 卡，不卸载的 ZeRO-3 放得下", "on 2 ranks"},
      {"advice-stage-2-offload-enough",
       "If you have only 64 GB RAM, ZeRO-2 with offload is not enough.", "true: stage 2"},
      {"advice-stage-2-offload-enough", "ZeRO-2 with offload is enough for a 7B on a 16 GB card.",
       "17.2 GB (16.0 GiB)"},
      {"advice-lora-fits", "LoRA fits on a 24 GB card.", "true: LoRA of rank 8"},
      {"advice-lora-fits", "LoRA fits on an 8 GB card.", "false: LoRA of rank 8"},
  };
  for (const Claim& claim : claims) expect_answer({}, claim);
  expect_answer({.gpus = 8, .host_gib = 1024, .offloads = false},
                {"advice-stage-3-fits", "On a single GPU ZeRO-3 fits without offload.", "false: "});
}

TEST(AdviceAsAClaim, IsHeldAgainstItsNumberOrNotAnswered) {
  const Claim claims[] = {
      {"advice-qlora", "QLoRA on 7B needs less than 3 GB.", "false: the 4-bit base"},
      {"advice-qlora", "QLoRA on 7B needs more than 40 GB.", "false: the 4-bit base"},
      {"advice-offload-optimizer", "ZeRO-2 with offload needs about 80 GB of host RAM.",
       "false: with the optimizer"},
      {"advice-recompute", "With gradient checkpointing it needs 20 GB.",
       "not answered for this number: "},
      {"advice-evaluation-batch", "per_device_eval_batch_size 设为 2",
       "with per_device_eval_batch_size 2"},
      {"advice-evaluation-accumulation", "Set eval_accumulation_steps=1.", "half true: eval_"},
  };
  for (const Claim& claim : claims) expect_answer({}, claim);
}

TEST(AdviceAsAClaim, ComparesAStageWithAnotherOne) {
  expect_answer({}, {"advice-switch-stage", "Switch to ZeRO-3.", "at stage 2, on 1 rank"});
}

TEST(AdviceAsAClaim, IsNoQuestion) {
  for (const std::string_view says : {"Do you really need ZeRO-3?", "需要 ZeRO-3 吗？"})
    EXPECT_TRUE(found(diagnosis_of({}, says), "advice-switch-stage").empty()) << says;
  expect_answer({}, {"advice-lora-instead", "Have you tried LoRA?", "LoRA of rank 8"});
}

}  // namespace
}  // namespace underkeel::doctor
