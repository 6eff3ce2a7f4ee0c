// Advice in the words of forums and issues, English and Chinese: what is recognised, what is denied, which number is
// answered for, and what is said of the rest of a text.

#include <gtest/gtest.h>

#include "doctor/advice_clauses.h"
#include "doctor/advice_numbers.h"
#include "doctor/advice_rules.h"
#include "doctor/sayings.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

struct Phrasing {
  const char* id;
  const char* says;
};

constexpr Phrasing phrasings[] = {
    {"advice-lora-instead", "LoRA is enough."},
    {"advice-lora-instead", "用LoRA就够了"},
    {"advice-recompute-share", "gradient checkpointing halves memory"},
    {"advice-recompute-share", "Gradient checkpointing cuts memory by 60%."},
    {"advice-switch-stage", "switch to ZeRO stage 1"},
    {"advice-switch-stage", "Just switch from ZeRO-3 to ZeRO-2."},
    {"advice-batch-of-one", "use a batch size of 2"},
    {"advice-8-bit-adam", "use 8-bit Adam"},
    {"advice-16-bit", "use bf16"},
    {"advice-lower-cutoff", "lower max length to 512"},
    {"advice-more-ram", "buy more RAM"},
    {"advice-swap", "add more swap"},
    {"advice-allocator-setting", "export PYTORCH_CUDA_ALLOC_CONF"},
    {"advice-empty-cache-diagnosis", "torch.cuda.empty_cache()"},
    {"advice-more-gpus", "use more gpus"},
    {"advice-flash-attention", "use flash attention"},
    {"advice-fsdp", "use fsdp instead"},
    {"advice-load-quantised", "load in 4bit"},
    {"advice-empty-cache-diagnosis", "gc.collect"},
    {"advice-pin-off", "set pin_memory false"},
    {"advice-batch-of-one", "把batch size调小"},
    {"advice-recompute", "开梯度检查点"},
    {"advice-switch-stage", "换成ZeRO-2"},
    {"advice-more-ram", "加内存就行"},
    {"advice-recompute", "显存不够就开梯度检查点"},
    {"advice-lower-cutoff", "降低 cutoff_len 到 1024"},
    {"advice-more-gpus", "用8张卡"},
    {"advice-8-bit-adam", "上8bit优化器"},
    {"advice-load-quantised", "用 QLoRA 4bit 量化加载"},
    {"advice-batch-of-one", "把 per_device_train_batch_size 改成 1"},
    {"advice-offload-optimizer", "把优化器卸载到CPU"},
    {"advice-offload-optimizer", "开启 offload"},
    {"advice-pin-off", "关闭 pin_memory"},
    {"advice-more-gpus", "多加几张显卡"},
    {"advice-expandable-segments", "设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
    {"advice-empty-cache-steps", "定期清空显存缓存"},
    {"advice-flash-attention", "用 flash attention 2"},
    {"advice-16-bit", "试试 bf16"},
    {"advice-smaller-model", "换个小模型"},
    {"advice-lower-cutoff", "把序列长度缩短到512"},
    {"advice-accumulation", "增大梯度累积步数"},
    {"advice-other-processes", "杀掉其他进程"},
    {"advice-swap", "加大 swap"},
    {"advice-batch-of-one",
     "Reduce per_device_train_batch_size to 1 and increase gradient_accumulation_steps to 16."},
    {"advice-stage-3-offload", "Try ZeRO-3 with CPU offload."},
    {"advice-offload-optimizer", "Use ZeRO Stage 2 with CPU offload of the optimizer."},
    {"advice-offload-optimizer", "Enable optimizer offload to CPU."},
    {"advice-offload-nvme", "Try offloading parameters to NVMe."},
    {"advice-offload-parameters", "Offload params to CPU with offload_param."},
    {"advice-other-optimizer", "Use Adafactor instead of AdamW."},
    {"advice-unknown-optimizer", "Try GaLore."},
    {"advice-paged-adam-32", "Use paged_adamw_32bit."},
    {"advice-use-cache", "Set use_cache=False."},
    {"advice-other-program", "Try unsloth, it uses less VRAM."},
    {"advice-fused-loss", "Use liger kernel."},
    {"advice-evaluation-batch", "Reduce eval batch size to 1."},
    {"advice-evaluation-accumulation", "Set eval_accumulation_steps=1."},
    {"advice-evaluation-batch", "Disable evaluation."},
    {"advice-lora-rank", "Lower lora_rank to 4."},
    {"advice-lora-targets", "Only target q_proj and v_proj."},
    {"advice-freeze", "Freeze the embedding layers."},
    {"advice-workers", "Set dataloader_num_workers to 0."},
    {"advice-workers", "Increase --shm-size to 64g in docker."},
    {"advice-memlock", "ulimit -l unlimited fixes it."},
    {"advice-other-processes", "Restart the kernel."},
    {"advice-other-processes", "Check nvidia-smi for other processes and kill them."},
    {"advice-larger-gpu", "Get a bigger GPU."},
    {"advice-smaller-model", "Use a smaller model."},
    {"advice-group-by-length", "Use group_by_length."},
    {"advice-max-split-size", "Set max_split_size_mb to 128."},
    {"advice-16-bit", "Use mixed precision training."},
    {"advice-pure-bf16", "Set pure_bf16: true."},
    {"advice-speed-only", "Use torch.compile."},
    {"advice-version-mismatch", "Upgrade deepspeed, it is a version mismatch."},
    {"advice-ddp", "Use DDP instead."},
    {"advice-recompute", "Enable gradient_checkpointing_kwargs use_reentrant False"},
    {"advice-other-optimizer", "Use SGD"},
    {"advice-save-model-only", "Set save_only_model: true"},
    {"advice-fewer-samples", "Reduce the dataset size / max_samples."},
    {"advice-smaller-bucket-no-overlap",
     "Reduce reduce_bucket_size and allgather_bucket_size to 2e8."},
    {"advice-overlap-is-default", "Set overlap_comm to false."},
    {"advice-switch-stage", "Use ZeRO-2 instead of ZeRO-3."},
    {"advice-batch-of-one", "Decrease batch size."},
    {"advice-batch-of-one", "Halve the batch size."},
    {"advice-lower-cutoff", "set model_max_length to 2k"},
    {"advice-more-gpus", "Train with 8x A100."},
    {"advice-more-gpus", "use multiple GPUs"},
    {"advice-more-gpus", "单卡放不下，用多卡"},
    {"advice-batch-of-one", "显存不足可以减小batch_size"},
    {"advice-stage-3-offload", "建议使用 DeepSpeed ZeRO3 + offload"},
    {"advice-stage-3-offload", "用zero3 offload"},
    {"advice-larger-gpu", "换 A100 80G"},
    {"advice-16-bit", "开启混合精度训练 fp16"},
    {"advice-load-quantised", "使用量化 quantization_bit: 4"},
    {"advice-empty-cache-diagnosis", "torch.cuda.empty_cache() 清一下显存"},
    {"advice-accumulation", "把 gradient_accumulation_steps 调大"},
    {"advice-batch-of-one", "batch size设为1"},
    {"advice-recompute-share", "梯度检查点能省一半显存"},
    {"advice-lower-cutoff", "cutoff_len 从 4096 改成 2048"},
    {"advice-switch-stage", "用 deepspeed zero stage 2 就行"},
    {"advice-batch-of-one",
     "Lower the per-device batch size, and restore the effective batch with gradient "
     "accumulation."},
    {"advice-accumulation", "Simulate larger batch sizes with gradient accumulation."},
    {"advice-recompute", "model.gradient_checkpointing_enable()"},
    {"advice-lower-cutoff", "Reduce max_seq_length if your data allows."},
    {"advice-lora-instead", "Switch to LoRA if you were full fine-tuning."},
    {"advice-load-quantised", "Use QLoRA (4-bit quantized base)."},
    {"advice-load-quantised", "Apply 4-bit quantization with bitsandbytes."},
    {"advice-offload-optimizer", "offload parts of the model to the CPU"},
    {"advice-switch-stage", "使用 DeepSpeed zero3"},
    {"advice-fsdp", "Maybe you want to try using fsdp."},
    {"advice-switch-stage", "换stage3之后就跑起来了"},
    {"advice-batch-of-one", "减小 batch_size 和 cutoff_len"},
    {"advice-flash-attention", "开启 flash_attn: fa2"},
    {"advice-lora-instead", "用 lora 微调"},
    {"advice-recompute", "可以考虑使用梯度检查点技术"},
    {"advice-use-cache", "Add model.config.use_cache = False"},
    {"advice-max-split-size", "try setting max_split_size_mb"},
    {"advice-recompute", "Turn on gradient checkpointing and use a per-device batch of 1"},
    {"advice-stage-3-offload", "use deepspeed stage 3 with cpu offload"},
    {"advice-offload-optimizer", "set offload_optimizer device to cpu"},
    {"advice-stage-3-offload", "Use ds_z3_offload_config.json"},
    {"advice-switch-stage", "显存不够用，建议上 zero3"},
    {"advice-lora-rank", "把 LoRA rank 降到 8"},
    {"advice-lora-rank", "Set lora_r to 16"},
    {"advice-8-bit-adam", "use adamw_bnb_8bit"},
    {"advice-8-bit-adam", "optim: adamw_8bit"},
    {"advice-8-bit-adam", "Use optim=\"paged_adamw_8bit\""},
    {"advice-16-bit", "Use half precision"},
    {"advice-offload-optimizer", "Use cpu offload for the optimizer states and parameters."},
    {"advice-other-processes", "Just reboot."},
    {"advice-batch-of-one", "The batch size is too large."},
    {"advice-batch-of-one", "batch size 太大了"},
    {"advice-lower-cutoff", "序列太长了，截断到1024"},
    {"advice-accumulation", "Do gradient accumulation."},
    {"advice-batch-of-one", "per_device_train_batch_size=1"},
    {"advice-lora-instead", "Don't run out of memory: use LoRA."},
    {"advice-batch-of-one", "bs=1"},
    {"advice-batch-of-one", "把batchsize改小点"},
    {"advice-more-gpus", "加显卡"},
    {"advice-swap", "加虚拟内存"},
    {"advice-larger-gpu", "换个大点的卡"},
    {"advice-empty-cache-diagnosis", "清理显存"},
    {"advice-offload-parameters", "把参数也卸载到 CPU"},
    {"advice-lower-cutoff", "减少 max_length"},
    {"advice-evaluation-batch", "关掉评估"},
    {"advice-version-mismatch", "升级一下 transformers 版本"},
    {"advice-offload-optimizer", "Enable CPU offloading"},
    {"advice-speed-only", "Set NCCL_P2P_DISABLE=1"},
};

TEST(AdviceInFewWords, IsRecognisedAsPeopleSayIt) {
  for (const Phrasing& each : phrasings) {
    Files files;
    files.write("answer.txt", each.says);
    const Diagnosis diagnosis = files.diagnose();

    const auto all = found(diagnosis, each.id);

    ASSERT_EQ(all.size(), 1u) << each.says << ": " << each.id << "\n" << messages(diagnosis);
    EXPECT_EQ(all[0].line, 1) << each.says;
    const bool is_against =
        message_of(all[0], Language::english).starts_with("this speaks against");
    const bool switches_off = std::string_view(each.says) == "Set overlap_comm to false.";
    EXPECT_EQ(is_against, switches_off)
        << each.says << ": " << message_of(all[0], Language::english);
  }
}

struct Denial {
  const char* id;
  const char* says;
  const char* begins;  // "": not as if it spoke against it
};

constexpr Denial denials[] = {
    {"advice-stage-3-offload", "You do not need ZeRO-3 offload.", "this speaks against it"},
    {"advice-offload-optimizer", "Don't use cpu offload.", "this speaks against it"},
    {"advice-recompute", "不需要梯度检查点", "this speaks against it"},
    {"advice-offload-optimizer", "不要用 offload", "this speaks against it"},
    {"advice-recompute", "Disable gradient checkpointing instead of enabling it.",
     "this speaks against it"},
    {"advice-recompute", "Don't forget to enable gradient checkpointing.", ""},
    {"advice-lora-instead", "LoRA is not enough.", "this speaks against it"},
    {"advice-recompute", "It will not fit without gradient checkpointing.", ""},
    {"advice-recompute", "Without gradient checkpointing it will OOM.", ""},
    {"advice-recompute", "不仅要开梯度检查点，还要用LoRA", ""},
    {"advice-lora-instead", "Use not only LoRA but also gradient checkpointing.", ""},
    {"advice-stage-3-fits", "ZeRO-3 without offload does not fit.", "true:"},
    {"advice-stage-3-uses-more", "ZeRO-3 does not use more memory than ZeRO-2.", "true:"},
    {"advice-swap", "You never need swap for offload.", "true:"},
    {"advice-lora-instead", "Use LoRA instead of full fine-tuning.", ""},
    {"advice-lora-instead", "Use LoRA, not full fine-tuning.", ""},
    {"advice-flash-attention", "Do not use LoRA, gradient checkpointing or flash attention.",
     "this speaks against it"},
    {"advice-recompute", "If you don't use gradient checkpointing, you will run out of memory.",
     ""},
    {"advice-lora-instead", "Why not use LoRA?", ""},
    {"advice-stage-3-offload", "别用 ZeRO-3 offload", "this speaks against it"},
    {"advice-recompute", "别忘了开梯度检查点", ""},
    {"advice-recompute", "没必要开梯度检查点", "this speaks against it"},
    {"advice-recompute", "不开梯度检查点就会爆显存", ""},
    {"advice-lora-instead", "用LoRA而不是全参", ""},
    {"advice-recompute", "disable_gradient_checkpointing: true", "this speaks against it"},
    {"advice-recompute", "disable_gradient_checkpointing: false", ""},
    {"advice-no-such-key-opt-offload", "zero_force_opt_offload is not a real key", "true:"},
    {"advice-device-map", "Don't use device_map with ZeRO-3.", "true:"},
    {"advice-device-map", "不要用 device_map 加 ZeRO-3", "true:"},
    {"advice-swap", "It is a myth that swap is needed for offload.", "true:"},
    {"advice-8-bit-adam", "There is no need for 8-bit Adam.", "this speaks against it"},
    {"advice-batch-of-one", "I wouldn't lower the batch size.", "this speaks against it"},
    {"advice-stage-2-fits", "You can't fit ZeRO-2 without offload.", "true:"},
    {"advice-pin-off", "pin_memory off does not cure the OOM.", "true:"},
    {"advice-pin-off", "Don't turn pin_memory off.", "true:"},
    {"advice-batch-of-one", "不要把 batch size 调到 1", "this speaks against it"},
    {"advice-lora-instead", "I don't think LoRA helps.", "this speaks against it"},
    {"advice-lora-instead", "LoRA won't help here.", "this speaks against it"},
    {"advice-lora-instead", "There is nothing wrong with using LoRA.", ""},
    {"advice-switch-stage", "ZeRO-3 is not needed", "this speaks against it"},
    {"advice-recompute", "You cannot avoid gradient checkpointing.", ""},
    {"advice-stage-3-offload", "你不需要用 ZeRO-3 offload", "this speaks against it"},
    {"advice-offload-optimizer", "千万别用 offload", "this speaks against it"},
    {"advice-lora-instead", "我觉得没有必要用LoRA", "this speaks against it"},
    {"advice-lora-instead", "不是不能用LoRA", ""},
    {"advice-lora-instead", "为什么不用 LoRA", ""},
    {"advice-flash-attention", "Never use flash attention.", "this speaks against it"},
    {"advice-flash-attention", "Flash attention is unnecessary.", "this speaks against it"},
    {"advice-more-gpus", "You should not need more GPUs; use LoRA.", "this speaks against it"},
    {"advice-lora-instead", "You should not need more GPUs; use LoRA.", ""},
    {"advice-lora-instead", "Instead of offloading to the CPU, use LoRA.", ""},
    {"advice-offload-optimizer", "Instead of offloading to the CPU, use LoRA.",
     "this speaks against it"},
    {"advice-batch-of-one", "Offloading isn't going to help, so lower the batch size to 1.", ""},
    {"advice-recompute", "Use gradient checkpointing even if you don't think you need it.", ""},
    {"advice-lora-instead", "It doesn't matter whether you use LoRA.", ""},
    {"advice-lora-instead", "LoRA is not the problem.", ""},
    {"advice-lower-cutoff", "You do not have to lower cutoff_len.", "this speaks against it"},
    {"advice-8-bit-adam", "Nobody needs 8-bit Adam.", "this speaks against it"},
    {"advice-offload-optimizer", "Stop using offload.", "this speaks against it"},
    {"advice-recompute", "I would avoid gradient checkpointing.", "this speaks against it"},
    {"advice-recompute", "To avoid OOM, use gradient checkpointing.", ""},
    {"advice-recompute", "Use gradient checkpointing to avoid OOM.", ""},
    {"advice-recompute", "显存不足时不要关闭梯度检查点", ""},
    {"advice-recompute", "不要关闭梯度检查点", ""},
    {"advice-recompute", "关掉梯度检查点", "this speaks against it"},
    {"advice-lora-instead", "与其用offload不如用LoRA", ""},
    {"advice-lora-instead", "LoRA 并不能解决问题", "this speaks against it"},
    {"advice-recompute", "gradient_checkpointing: false", "this speaks against it"},
    {"advice-recompute", "Turn gradient checkpointing off.", "this speaks against it"},
    {"advice-recompute", "Keep gradient checkpointing on.", ""},
    {"advice-recompute", "You can't do without gradient checkpointing.", ""},
    {"advice-lora-instead", "No, use LoRA.", ""},
    {"advice-more-ram", "No need to buy more RAM.", "this speaks against it"},
    {"advice-lora-instead", "Not sure, but try LoRA.", ""},
    {"advice-lora-instead", "LoRA不行，要用全参", "this speaks against it"},
    {"advice-lower-cutoff", "不必把 cutoff_len 降到 512", "this speaks against it"},
    {"advice-lora-instead", "既不用LoRA也不用offload", "this speaks against it"},
    {"advice-lora-instead", "不是显存的问题，用 LoRA 就行", ""},
    {"advice-recompute", "Neither LoRA nor gradient checkpointing is needed.",
     "this speaks against it"},
    {"advice-batch-of-one", "Cutting the batch size in half won't fix it.",
     "this speaks against it"},
    {"advice-recompute", "It only works with gradient checkpointing, not without.", ""},
    {"advice-evaluation-batch", "Turn off evaluation.", ""},
    {"advice-lora-instead", "用LoRA会不会好一点", ""},
    {"advice-device-map", "The docs say \"do not use device_map with ZeRO-3\".", "true:"},
    {"advice-offload-optimizer", "你不需要 offload", "this speaks against it"},
    {"advice-switch-stage", "没必要 ZeRO-3", "this speaks against it"},
    {"advice-16-bit", "不需要 bf16", "this speaks against it"},
};

TEST(AdviceThatIsDenied, IsAnsweredForWhatItSays) {
  for (const Denial& each : denials) {
    Files files;
    files.write("answer.txt", each.says);
    const Diagnosis diagnosis = files.diagnose();

    const auto all = found(diagnosis, each.id);

    ASSERT_EQ(all.size(), 1u) << each.says << ": " << each.id << "\n" << messages(diagnosis);
    const std::string answer = message_of(all[0], Language::english);
    if (*each.begins == '\0')
      EXPECT_FALSE(answer.starts_with("this speaks against it")) << each.says << ": " << answer;
    else
      EXPECT_TRUE(answer.starts_with(each.begins)) << each.says << ": " << answer;
  }
}

TEST(AdviceThatIsDenied, TurnsAVerdictOfFiguresRound) {
  // What fits on the small model does not on the large one.
  for (const bool is_small : {true, false})
    for (const std::string_view text :
         {"Pure ZeRO-3 without offload fits.", "Pure ZeRO-3 without offload does not fit.",
          "不卸载的 ZeRO-3 放得下", "不卸载的 ZeRO-3 并不够"}) {
      Files files;
      files.write("answer.txt", text);
      files.write("model.json", model_json(is_small ? qwen_half : llama_7b));
      const bool is_denied = text.find("not fit") != std::string_view::npos ||
                             text.find("并不") != std::string_view::npos;

      const std::string answer = says(files.diagnose(), "advice-stage-3-fits");

      EXPECT_TRUE(answer.starts_with(is_small != is_denied ? "true" : "false")) << text << answer;
    }
}

struct NumberOf {
  const char* says;
  const char* subject;
  Quantity quantity;
  double value;  // 0: none
};

TEST(AdviceWithANumber, IsAnsweredForThatNumber) {
  const NumberOf examples[] = {
      {"lower cutoff_len to 512", "cutoff_len", Quantity::tokens, 512},
      {"set cutoff_len: 1,024 please", "cutoff_len", Quantity::tokens, 1024},
      {"max length 2k is plenty", "max length", Quantity::tokens, 2048},
      {"lower cutoff_len from 4096 to 2048", "cutoff_len", Quantity::tokens, 2048},
      {"cutoff_len 从 4096 改成 2048", "cutoff_len", Quantity::tokens, 2048},
      {"use 512 as the cutoff_len", "cutoff_len", Quantity::tokens, 512},
      {"cutoff_len on an a100 with 80 gb", "cutoff_len", Quantity::tokens, 0},
      {"use a batch size of two", "batch size", Quantity::batch, 2},
      {"batch size 8 -> 1", "batch size", Quantity::batch, 1},
      {"batch size设为四", "batch size", Quantity::batch, 4},
      {"batch size of the llama-7b", "batch size", Quantity::batch, 0},
      {"from z3 to z2", "z3", Quantity::stage, 2},
      {"use z1", "z1", Quantity::stage, 1},
      {"use 8 gpus", "gpus", Quantity::gpus, 8},
      {"用8张卡", "卡", Quantity::gpus, 8},
      {"train with 4x a100", "a100", Quantity::gpus, 4},
      {"saves 60% of memory", "saves", Quantity::percent, 60},
      {"halves memory", "halves", Quantity::percent, 50},
      {"load_in_8bit", "load_in", Quantity::bits, 8},
      {"lora_rank=4", "lora_rank", Quantity::rank, 4},
      {"gradient_accumulation_steps: 16", "gradient_accumulation_steps", Quantity::accumulation,
       16},
      {"cutoff_len 99999999999999999999", "cutoff_len", Quantity::tokens, 0},
      {"batch size 0", "batch size", Quantity::batch, 0},
  };
  for (const NumberOf& each : examples) {
    const std::string_view sentence = each.says;
    const std::size_t at = sentence.find(each.subject);
    const auto said = number_said(sentence, {0, sentence.size()},
                                  {at, at + std::string_view(each.subject).size()}, each.quantity);
    EXPECT_EQ(said.value_or(Said{}).value, each.value) << each.says;
  }
}

TEST(AdviceWithANumber, HalvesWhatThereIs) {
  Files files;
  files.write("answer.txt", "Halve the batch size.");
  files.write("model.json", model_json(llama_7b));
  files.write("train.yaml", "finetuning_type: full\nbf16: true\nper_device_train_batch_size: 16\n");

  const std::string answer = says(files.diagnose(), "advice-batch-of-one");

  EXPECT_NE(answer.find("with micro-batch 16 and"), std::string::npos) << answer;
  EXPECT_NE(answer.find("with 8; gradient_accumulation_steps 2"), std::string::npos) << answer;
}

TEST(AdviceWithANumber, IsToldOncePerNumberAndFourTimesAtMost) {
  std::string text =
      "Lower cutoff_len to 512.\nLower cutoff_len to 512.\nLower cutoff_len to 1024.\n";
  Files few;
  few.write("answer.txt", text);
  EXPECT_EQ(found(few.diagnose(), "advice-lower-cutoff").size(), 2u);

  for (int length = 100; length < 200; ++length)
    text += fmt::format("Lower cutoff_len to {}.\n", length);
  Files many;
  many.write("answer.txt", text);
  EXPECT_EQ(found(many.diagnose(), "advice-lower-cutoff").size(), 4u);
}

TEST(AdviceOfATextInPart, SaysWhatWasPassedOver) {
  Files files;
  files.write(
      "answer.txt",
      "Hello, I had `that` too.\n\n1. Use LoRA.\n2. The moon is round!\n---\n今天天气不错。");

  const Diagnosis diagnosis = files.diagnose();

  const auto all = found(diagnosis, "advice-passed-over");
  ASSERT_EQ(all.size(), 1u) << messages(diagnosis);
  EXPECT_EQ(message_of(all[0], Language::english),
            "passed over, for want of advice that doctor knows: 3 of 4 sentences; the first is "
            "`Hello, I had 'that' too`");
  EXPECT_EQ(message_of(all[0], Language::chinese),
            "因没有 doctor 认得的建议而略过：4 句话中的 3 句；第一句是 `Hello, I had 'that' too`");
  EXPECT_EQ(all[0].line, 1);
  EXPECT_EQ(found(diagnosis, "advice-lora-instead").at(0).line, 3);

  Files whole;
  whole.write("answer.txt", "Use LoRA.");
  EXPECT_TRUE(found(whole.diagnose(), "advice-passed-over").empty());
}

TEST(AdviceOfATextInPart, SaysWhenNothingIsKnown) {
  Files files;
  files.write("answer.txt", "The weather is nice. Buy a bigger ship.");

  const Diagnosis diagnosis = files.diagnose();

  const auto all = found(diagnosis, "advice-not-recognised");
  ASSERT_EQ(all.size(), 1u) << messages(diagnosis);
  EXPECT_EQ(all[0].severity, Severity::warning);
  EXPECT_EQ(all[0].file, "answer.txt");
  const std::string message = message_of(all[0], Language::english);
  EXPECT_NE(message.find("of 2 sentences none was judged, the first is `The weather is nice`"),
            std::string::npos)
      << message;
  for (const Engine engine : {Engine::deepspeed, Engine::underkeel})
    EXPECT_EQ(exit_code_of(diagnosis, engine), 0);
  files.write("other.txt", "Use flash attention.");
  EXPECT_EQ(found(files.diagnose(), "advice-not-recognised").size(), 1u);
}

TEST(AdviceOfATextInPart, GoesOnInTheNextLineOfProse) {
  const auto sentences = sentences_of(
      "If all of that did not help in your case you may want to enable gradient\n"
      "checkpointing as well.\n- short\n- item\nZeRO 2.5 is e.g. nothing；好的！\r\nend");
  std::string all;
  for (const Sentence& each : sentences) all += fmt::format("{}:{}|", each.line, each.text);

  EXPECT_EQ(all,
            "1:If all of that did not help in your case you may want to enable gradient "
            "checkpointing as well|3:- short|4:- item|5:ZeRO 2.5 is e.g|5:nothing|5:好的|6:end|");
}

TEST(AdviceOfHostileText, IsShownWithoutItsControls) {
  Files files;
  files.write("answer.txt", "\x1b[31mRed \xff\xfe \xe2\x80\xae text\x07 here\nUse LoRA\x1b[0m.\n");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(found(diagnosis, "advice-lora-instead").size(), 1u) << messages(diagnosis);
  const std::string shown = says(diagnosis, "advice-passed-over");
  for (const char c : shown) EXPECT_FALSE(std::iscntrl(static_cast<unsigned char>(c))) << shown;
  EXPECT_NE(shown.find("\\x1b[31mRed \\xff\\xfe"), std::string::npos) << shown;
}

TEST(AdviceOfHostileText, IsCutIntoSentencesThatEnd) {
  for (const std::string& text :
       {std::string(300000, 'a'), std::string(300000, '\xe4'), std::string(100000, '.'),
        std::string(100000, '\xff') + " use lora", std::string(5000, '\r')}) {
    std::size_t total = 0;
    for (const Sentence& each : sentences_of(text)) {
      EXPECT_LE(each.text.size(), 2500u);
      total += each.text.size();
    }
    EXPECT_LE(total, text.size());
  }
}

}  // namespace
}  // namespace underkeel::doctor
