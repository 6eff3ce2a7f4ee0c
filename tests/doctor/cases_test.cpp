// What people reported when they fine-tuned, as files, and what doctor is to say of them. Figures are those of the
// reports and of sums done by hand.

#include <gtest/gtest.h>

#include "doctor/case_files.h"

namespace underkeel::doctor {
namespace {

TEST(Cases, TheFirstUpdateAsksForTheMoments) {
  const std::string run =
      "finetuning_type: full\nbf16: true\ncutoff_len: 128\nper_device_train_batch_size: 1\n";
  const Files files = files_of({llama_8b, R"("stage": 2)", run, {.host_gib = 256}});

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
  EXPECT_EQ(diagnosis.underkeel.verdict, Verdict::fails);
  expect_says(diagnosis, "one-rank-saves-nothing", {"128.5 GB", "offload_optimizer"});
  expect_says(diagnosis, "first-update", {"48.2 GB", "64.2 GB", "176.7 GB"});
  expect_says(diagnosis, "deepspeed-does-not-fit", {"in the update", "offload_optimizer cpu"});

  const Files fixed =
      files_of({llama_8b, R"("stage": 2, )" + offload_optimizer, run, {.host_gib = 256}});
  const Diagnosis cured = fixed.diagnose();
  EXPECT_EQ(cured.deepspeed.verdict, Verdict::runs);
  EXPECT_NEAR(low_gb(cured.deepspeed, Phase::step, Space::device, "staging"), 1.05, 0.01);
  expect_says(cured, "host-phases", {"145.6 GB steadily"});
  expect_says(cured, "own-layout-with-offload", {"16.1 GB", "96.4 GB - 112.4 GB"});
}

// What is said of pin_memory is of the run at hand, with its accumulation, as the finding beside it.
TEST(Cases, PageLockedMemoryHasOneFigure) {
  const std::string run =
      "finetuning_type: full\nbf16: true\ncutoff_len: 128\nper_device_train_batch_size: 1\n";
  for (const std::string more : {"", "gradient_accumulation_steps: 4\n"}) {
    const Diagnosis diagnosis =
        files_of({llama_8b, R"("stage": 2, )" + offload_optimizer, run + more, {.host_gib = 256}})
            .diagnose();
    const auto locked = found(diagnosis, "swap-does-not-help");
    ASSERT_EQ(locked.size(), 1u);
    ASSERT_EQ(locked[0].slots[0].name, "pinned");
    expect_says(diagnosis, "advice-pin-memory-stage-2", {"page-locks " + locked[0].slots[0].text});
  }
}

TEST(Cases, Stage2WithOffloadIsTooBigForItsActivations) {
  const Files files = files_of(
      {qwen_14b,
       R"("stage": 2, )" + offload_optimizer,
       "finetuning_type: full\nbf16: true\ncutoff_len: 4096\nper_device_train_batch_size: 4\n"
       "disable_gradient_checkpointing: true\n",
       {.gpus = 4, .gpu_gib = 40, .host_gib = 512}});

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
  expect_says(
      diagnosis, "deepspeed-does-not-fit",
      {"activations and logits", "weights 29.5 GB", "disable_gradient_checkpointing false"});
  // The two largest terms come first.
  const std::string text =
      message_of(found(diagnosis, "deepspeed-does-not-fit")[0], Language::english);
  EXPECT_LT(text.find("activations"), text.find("weights 29.5"));
  expect_says(diagnosis, "device-state", {"weights 29.5 GB", "staging 1.6 GB"});
  expect_says(diagnosis, "host-phases", {"272.1 GB"});
  expect_says(diagnosis, "logits-whole", {"10.0 GB in fp32"});
  expect_says(diagnosis, "own-layout-with-offload", {"29.5 GB - 36.9 GB", "177.2 GB - 206.8 GB"});

  // Its own proposal is accepted.
  ASSERT_FALSE(diagnosis.alternatives.empty());
  const Alternative& first = diagnosis.alternatives.front();
  ASSERT_EQ(first.verdict, Verdict::runs);
  Files proposed =
      files_of({qwen_14b,
                fmt::format(R"("stage": {}{})", first.stage,
                            first.offload_param != "none"       ? ", " + offload_both
                            : first.offload_optimizer != "none" ? ", " + offload_optimizer
                                                                : ""),
                fmt::format("finetuning_type: full\nbf16: true\ncutoff_len: 4096\n"
                            "per_device_train_batch_size: {}\ngradient_accumulation_steps: {}\n"
                            "disable_gradient_checkpointing: {}\n",
                            first.micro_batch, first.accumulation_steps, !first.recomputes),
                {.gpus = 4, .gpu_gib = 40, .host_gib = 512}});
  EXPECT_EQ(proposed.diagnose().deepspeed.verdict, Verdict::runs);
}

TEST(Cases, A33BWithOffloadNeedsMoreThan600GBOfHost) {
  const Machine machine{
      .gpus = 8, .gpu_gib = 40, .host_gib = 559, .more = R"(, "swap_free_gib": 1024)"};
  const Diagnosis both =
      files_of({llama_33b, R"("stage": 3, )" + offload_both, full_1x2, machine}).diagnose();
  EXPECT_EQ(both.deepspeed.verdict, Verdict::fails);
  expect_says(both, "host-phases", {"650.6 GB - 715"});
  expect_says(both, "own-layout-with-offload", {"455.4 GB - 585.5 GB"});

  const Diagnosis optimizer =
      files_of({llama_33b, R"("stage": 3, )" + offload_optimizer, full_1x2, machine}).diagnose();
  EXPECT_EQ(optimizer.deepspeed.verdict, Verdict::unknown);
  expect_says(optimizer, "host-phases", {"585.5 GB"});
  EXPECT_EQ(found(optimizer, "deepspeed-may-not-fit").size(), 1u);
  expect_says(optimizer, "own-layout-with-offload", {"390.3 GB - 455.4 GB", "weights 8.1 GB"});

  const Diagnosis nvme = files_of({llama_33b,
                                   R"("stage": 3, "offload_optimizer": {"device": "nvme",
                                      "nvme_path": "./swap", "buffer_count": 4})",
                                   full_1x2, machine})
                             .diagnose();
  EXPECT_EQ(nvme.deepspeed.verdict, Verdict::runs);
  expect_says(nvme, "nvme-bytes", {"520.5 GB"});
  EXPECT_NEAR(low_gb(nvme.deepspeed, Phase::step, Space::host, "nvme_buffers") +
                  low_gb(nvme.deepspeed, Phase::step, Space::host, "gradients"),
              193, 4);
}

TEST(Cases, ParameterOffloadDoesNothingAtStage2) {
  const Machine machine{.gpu_gib = 24, .host_gib = 384};
  const std::string run = full_1x2 + "cutoff_len: 256\n";
  const Diagnosis stage2 =
      files_of({llama_13b, R"("stage": 2, )" + offload_both, run, machine}).diagnose();
  EXPECT_EQ(stage2.deepspeed.verdict, Verdict::fails);
  EXPECT_EQ(found(stage2, "offload-without-effect").size(), 1u);
  expect_says(stage2, "weights-stay-whole", {"26.0 GB", "25.8 GB"});
  // What stage 3 would do is DeepSpeed's alone: our engine has no offload.
  const auto at_stage_3 = found(stage2, "parameter-offload-at-stage-3");
  ASSERT_EQ(at_stage_3.size(), 1u);
  EXPECT_EQ(at_stage_3[0].engine, Engine::deepspeed);
  expect_says(stage2, "parameter-offload-at-stage-3", {"runs with DeepSpeed", "\"stage\": 3"});

  const Diagnosis stage3 =
      files_of({llama_13b, R"("stage": 3, )" + offload_both, run, machine}).diagnose();
  EXPECT_EQ(stage3.deepspeed.verdict, Verdict::runs);
  expect_says(stage3, "host-phases", {"260.3 GB - 286.3 GB"});
  expect_says(stage3, "own-layout-with-offload", {"182.2 GB - 234.3 GB"});
  EXPECT_NEAR(low_gb(stage3.deepspeed, Phase::step, Space::device, "bucket"), 1.0, 0.01);
}

TEST(Cases, AHigherStageMayNeedMore) {
  const std::string run =
      "finetuning_type: full\nbf16: true\ncutoff_len: 512\nper_device_train_batch_size: 8\n"
      "gradient_accumulation_steps: 2\n";
  const Machine machine{.gpus = 2, .gpu_gib = 15, .host_gib = 64};
  const auto says = [&](const std::string& zero, const std::vector<std::string>& parts) {
    expect_says(files_of({qwen_half, zero, run, machine}).diagnose(), "device-state", parts);
  };
  says(R"("stage": 0)", {"8.9 GB in forward", "11.9 GB in the update"});
  says(R"("stage": 1)", {"7.4 GB in forward"});
  says(R"("stage": 2, "overlap_comm": true)", {"7.9 GB in forward"});
  const std::string small = R"("stage": 2, "reduce_bucket_size": 10000000,
    "allgather_bucket_size": 10000000, "overlap_comm": false, "contiguous_gradients": false)";
  says(small, {"5.0 GB in forward", "5.9 GB in the update"});
  const Diagnosis two = files_of({qwen_half, small, run, machine}).diagnose();
  EXPECT_EQ(found(two, "key-practically-dead").size(), 1u);
  expect_says(two, "bucket-bytes", {"802816 elements", "1.6 MB"});
  const Diagnosis overlapping =
      files_of({qwen_half, R"("stage": 2, "overlap_comm": true)", run, machine}).diagnose();
  expect_says(overlapping, "bucket-bytes", {"3.0 GB together"});
  expect_says(overlapping, "own-layout", {"4.4 GB"});
  expect_says(files_of({qwen_half, R"("stage": 1)", run, machine}).diagnose(), "own-layout",
              {"4.9 GB"});
}

/// The plan's own line for communication: a bucket that is as large as the config lets it be costs what the plan is larger.
TEST(Cases, WhatOurPlanHoldsForCommunicationIsTold) {
  const auto answer = [](int gpus, const std::string& bucket) {
    return files_of({qwen_half,
                     R"("stage": 2, "reduce_bucket_size": )" + bucket,
                     "model_name_or_path: m\noutput_dir: out\ntemplate: empty\n"
                     "finetuning_type: full\nbf16: true\ncutoff_len: 512\n"
                     "per_device_train_batch_size: 8\n",
                     {.gpus = gpus, .gpu_gib = 15, .host_gib = 64}})
        .diagnose();
  };

  const Diagnosis large = answer(2, "500000000");
  expect_says(large, "underkeel-communication",
              {"up to 545 MB of staging", "up to 0 B of gathered"});
  const double device = large.underkeel.at(Phase::step, Space::device)->high();
  expect_says(large, "underkeel-communication", {"of the " + amount(device)});
  EXPECT_EQ(says(answer(2, "10000000"), "underkeel-communication").find("545 MB"),
            std::string::npos);
  EXPECT_TRUE(found(answer(1, "500000000"), "underkeel-communication").empty());
}

TEST(Cases, AWholeModelIsLargerThanOneCard) {
  constexpr Shape model_9b = {151552, 4096, 40, 13696, 32, 2};
  const Diagnosis diagnosis = files_of({model_9b,
                                        R"("stage": 3, )" + offload_optimizer,
                                        "finetuning_type: full\nbf16: true\ncutoff_len: 512\n"
                                        "per_device_train_batch_size: 1\n",
                                        {.gpus = 8, .gpu_gib = 16, .host_gib = 256}})
                                  .diagnose();

  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::runs);
  expect_says(diagnosis, "whole-model-above-one-card", {"17.2 GB"});
  expect_says(diagnosis, "save-without-weights", {"resumable", "underkeel export"});
  EXPECT_NEAR(low_gb(diagnosis.deepspeed, Phase::step, Space::device, "bucket"), 1.0, 0.01);
}

TEST(Cases, ASaveWithoutTheGatherFlagHasNoWeights) {
  const Diagnosis diagnosis =
      files_of({llama_7b,
                R"("stage": 3, "stage3_gather_16bit_weights_on_model_save": false)",
                "finetuning_type: full\nbf16: true\ncutoff_len: 256\nsave_steps: 100\n"
                "per_device_train_batch_size: 2\n",
                {.gpus = 8}})
          .diagnose();

  expect_says(diagnosis, "save-without-weights",
              {"interval 100", "sharded state, resumable", "Final output: no weights file"});
}

TEST(Cases, AnAdapterSaveMayCollectTheBase) {
  const std::string run =
      "finetuning_type: lora\nbf16: true\nlora_rank: 16\nlora_target: q_proj,v_proj\n"
      "per_device_train_batch_size: 1\ncutoff_len: 256\nsave_steps: 5\n";
  const Diagnosis diagnosis = files_of({qwen_32b,
                                        R"("stage": 3, )" + offload_both,
                                        run,
                                        {.gpus = 4, .gpu_gib = 80, .host_gib = 256}})
                                  .diagnose();

  expect_says(diagnosis, "adapter-sizes", {"16777216 parameters", "65.0 GB"});
  expect_says(diagnosis, "host-phases", {"page cache is not counted"});
  expect_says(diagnosis, "adapter-save-collects-base", {"65.0 GB"});

  // Two cards and 64 GiB of host memory: the base does not fit beside anything.
  const Diagnosis small = files_of({qwen_32b,
                                    R"("stage": 3)",
                                    "finetuning_type: lora\nbf16: true\nlora_rank: 8\n"
                                    "per_device_train_batch_size: 1\ncutoff_len: 256\n",
                                    {.gpus = 2, .gpu_gib = 48, .host_gib = 64}})
                              .diagnose();
  expect_says(small, "adapter-save-may-end-the-run", {"65.0 GB", "68.7 GB"});
}

TEST(Cases, LoadingBeforeSplittingMakesACopyARank) {
  const std::string run =
      "finetuning_type: full\nbf16: true\ncutoff_len: 256\n"
      "per_device_train_batch_size: 1\n";
  const Diagnosis eight =
      files_of({llama_13b, R"("stage": 3)", run, {.gpus = 8, .host_gib = 64}}).diagnose();
  expect_says(eight, "load-needs-zero-init", {"208.3 GB", "416.5 GB", "68.7 GB"});
  for (const auto& [gpus, copies] : {std::pair{2, "130.0 GB"}, std::pair{8, "520.2 GB"}})
    expect_says(
        files_of({qwen_32b, R"("stage": 3)", run, {.gpus = gpus, .gpu_gib = 180, .host_gib = 482}})
            .diagnose(),
        "load-needs-zero-init", {copies});
}

TEST(Cases, AResumeReadsItsOptimizerFileWhole) {
  constexpr Shape model_600m = {50257, 1280, 24, 4096, 20, 20, 0, false, true};
  Files files = files_of({model_600m,
                          R"("stage": 2, )" + offload_optimizer,
                          "finetuning_type: full\nbf16: true\ncutoff_len: 256\n"
                          "per_device_train_batch_size: 2\ngradient_accumulation_steps: 2\n",
                          {.gpu_gib = 24, .host_gib = 16}});
  const Diagnosis fresh = files.diagnose();
  EXPECT_EQ(fresh.deepspeed.verdict, Verdict::runs);
  expect_says(fresh, "host-phases", {"12.1 GB steadily"});
  expect_says(fresh, "resume-host-short", {"7.2 GB", "19.3 GB", "17.2 GB"});
  EXPECT_EQ(found(fresh, "rounding-may-not-fit").size(), 1u);
  expect_says(fresh, "own-layout-with-offload", {"7.2 GB - 8.4 GB"});

  files.question.resumes = true;
  const Diagnosis resumed = files.diagnose();
  EXPECT_EQ(resumed.deepspeed.verdict, Verdict::fails);
  expect_says(resumed, "deepspeed-does-not-fit", {"host memory", "on a resume"});
}

TEST(Cases, AResumeIsHeldAgainstTheNodeWithItsProcesses) {
  const auto of_600m = [](double host_gib) {
    constexpr Shape model_600m = {50257, 1280, 24, 4096, 20, 20, 0, false, true};
    return files_of({model_600m,
                     R"("stage": 2, )" + offload_optimizer,
                     "finetuning_type: full\nbf16: true\ncutoff_len: 256\n"
                     "per_device_train_batch_size: 2\ngradient_accumulation_steps: 2\n",
                     {.gpu_gib = 24, .host_gib = host_gib}})
        .diagnose();
  };
  // 19.3 GB and a process of 1 to 3 GB; a model file of 1.2 GB may be there too.
  expect_says(of_600m(18), "resume-host-short", {"19.3 GB", "1.0 GB - 3.0 GB", "(18.0 GiB)"});
  for (const double host_gib : {20.0, 21.0})
    expect_says(of_600m(host_gib), "resume-host-may-be-short", {"19.3 GB", "up to 23.5 GB"});
  EXPECT_EQ(found(of_600m(22), "resume-host").size(), 1u);
}

TEST(Cases, AResumeAtStage0ReadsOneFileAndAStateOnNvmeIsCopied) {
  const std::string run =
      "finetuning_type: full\nbf16: true\ncutoff_len: 256\nper_device_train_batch_size: 1\n";
  const Diagnosis whole =
      files_of({llama_7b, R"("stage": 0)", run, {.gpus = 2, .gpu_gib = 180}}).diagnose();
  // 12 bytes a parameter of state and 2 of weights, which each of two ranks reads.
  expect_says(whole, "resume-host", {"188.7 GB on a node"});

  const Diagnosis swapped =
      files_of({llama_33b,
                R"("stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "./swap",
                   "pin_memory": true, "buffer_count": 4})",
                full_1x2,
                {.gpus = 8, .gpu_gib = 40, .host_gib = 559, .more = R"(, "swap_free_gib": 1024)"}})
          .diagnose();
  expect_says(swapped, "resume-copies-swap-files", {"390.3 GB", "stays at 193"});
  EXPECT_EQ(term_bytes(swapped.deepspeed, Phase::resume, Space::host, "optimizer_file"), 0);
}

TEST(Cases, PageLockedBlocksAreRoundedUp) {
  const Diagnosis diagnosis =
      files_of({llama_33b,
                R"("stage": 3, )" + offload_both,
                full_1x2,
                {.gpus = 8, .host_gib = 1024, .more = R"(, "memlock_gib": 700)"}})
          .diagnose();

  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::runs);
  expect_says(diagnosis, "page-locked", {"260.2 GB - 325", "751.6 GB"});
}

TEST(Cases, NvmeNeedsRoomForGradientsToo) {
  const Diagnosis diagnosis = files_of({llama_7b,
                                        R"("stage": 3, "offload_optimizer": {"device": "nvme",
                  "nvme_path": "./swap"})",
                                        full_1x2,
                                        {.gpus = 1, .more = R"(, "swap_free_gib": 40)"}})
                                  .diagnose();

  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
  expect_says(diagnosis, "nvme-bytes", {"107.8 GB", "42.9 GB"});
}

TEST(Cases, AFourBitBaseIsNotSplit) {
  const Diagnosis diagnosis =
      files_of({llama_70b,
                R"("stage": 3)",
                "finetuning_type: lora\nbf16: true\nquantization_bit: 4\nlora_rank: 16\n"
                "per_device_train_batch_size: 1\ngradient_accumulation_steps: 2\n",
                {.gpus = 4, .gpu_gib = 24, .host_gib = 256}})
          .diagnose();

  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
  expect_says(diagnosis, "quantised-base-is-whole",
              {"34.2 GB", "1.1 GB", "4.2 GB", "39.5 GB", "25.8 GB", "141.1 GB", "48 GiB"});
}

TEST(Cases, LogitsOfALargeVocabularyDecide) {
  const Diagnosis small = files_of({{151936, 2048, 36, 11008, 16, 2, 128, true, true},
                                    R"("stage": 3)",
                                    "finetuning_type: full\nbf16: true\ncutoff_len: 4096\n"
                                    "per_device_train_batch_size: 1\n",
                                    {.gpus = 8}})
                              .diagnose();
  expect_says(small, "logits-whole", {"2.5 GB in fp32"});

  constexpr Shape model_11b = {248320, 4096, 36, 16384, 32, 8};
  const Diagnosis large = files_of({model_11b,
                                    R"("stage": 3)",
                                    "finetuning_type: full\nbf16: true\ncutoff_len: 16384\n"
                                    "per_device_train_batch_size: 3\n",
                                    {.gpus = 8}})
                              .diagnose();
  expect_says(large, "logits-whole", {"48.8 GB in fp32", "24.4 GB"});
  EXPECT_EQ(large.deepspeed.verdict, Verdict::fails);
}

TEST(Cases, AnEvaluationIsOfOneBatch) {
  Files files = files_of({{30522, 768, 12, 3072, 12, 12},
                          "",
                          "finetuning_type: full\nbf16: true\ncutoff_len: 512\n"
                          "per_device_train_batch_size: 2\nper_device_eval_batch_size: 2\n"
                          "eval_strategy: steps\neval_steps: 10\neval_dataset: eval\n",
                          {}});
  files.write("data-shape.json", R"({"eval": {"samples": 1000, "tokens": 512}})");
  expect_says(files.diagnose(), "evaluation-of-all-samples", {"125 MB", "62.5 GB"});
  // A batch is padded to a multiple of 8.
  files.write("data-shape.json", R"({"eval": {"samples": 1000, "tokens": 505}})");
  files.question.paths.pop_back();
  expect_says(files.diagnose(), "evaluation-of-all-samples", {"125 MB", "62.5 GB"});

  Files metric = files_of({{50432, 4096, 32, 11008, 32, 32},
                           R"("stage": 3)",
                           "finetuning_type: full\nbf16: true\ncutoff_len: 512\n"
                           "per_device_train_batch_size: 2\ncompute_accuracy: true\n"
                           "eval_strategy: steps\neval_steps: 500\neval_dataset: eval\n",
                           {.gpus = 8, .host_gib = 894}});
  metric.write("data-shape.json", R"({"eval": {"samples": 15000, "tokens": 512}})");
  expect_says(metric.diagnose(), "evaluation-keeps-logits",
              {"1549.3 GB", "774.6 GB", "959.9 GB", "30.7 MB at 4 bytes or 61.4 MB at 8"});
}

TEST(Cases, Bf16WeightsOverflowInFp16) {
  const Diagnosis diagnosis =
      files_of({{256000, 2048, 18, 8192, 16, 2},
                R"("stage": 1)",
                "finetuning_type: full\nfp16: true\ncutoff_len: 256\n"
                "per_device_train_batch_size: 1\n",
                {.gpus = 4, .gpu_gib = 32, .more = R"(, "compute_capability": "7.0")"},
                "fp16"})
          .diagnose();
  expect_says(diagnosis, "bf16-weights-in-fp16", {"65504", "no bf16"});
  const Diagnosis bf16 = files_of({llama_7b,
                                   R"("stage": 3)",
                                   "finetuning_type: full\nbf16: true\n",
                                   {.gpus = 8, .more = R"(, "compute_capability": "7.5")"}})
                             .diagnose();
  expect_says(bf16, "no-bf16-on-this-gpu", {"7.5", "8.0"});
}

TEST(Cases, AMergeOrExportHasAForecastOfItsOwn) {
  Files merge;
  merge.write("model.json", model_json(qwen_72b));
  merge.write("adapter_config.json",
              R"({"peft_type": "LORA", "r": 4, "target_modules": ["q_proj"]})");
  merge.write(
      "hardware.json",
      machine_json({.gpus = 0, .gpu_gib = 0, .host_gib = 128, .more = R"(, "out_free_gib": 300)"}));
  const Diagnosis merged = merge.diagnose();
  EXPECT_EQ(merged.underkeel.verdict, Verdict::fails);
  EXPECT_EQ(merged.deepspeed.verdict, Verdict::fails);
  expect_says(merged, "merge-not-built", {"not built yet", "PEFT", "145.4 GB of host memory"});
  merge.question.paths[0] = merge.write("model.json", model_json({256, 64, 2, 128, 4, 2}));
  merge.question.paths.pop_back();
  const std::string tiny = says(merge.diagnose(), "export-sizes");
  EXPECT_EQ(tiny.find("5.0 GB"), std::string::npos) << tiny;
  expect_says(merged, "export-sizes", {"145.4 GB", "322.1 GB", "5.0 GB", "2.5 GB"});
  expect_says(merged, "merge-holds-the-whole-model", {"145.4 GB", "137.4 GB"});

  Files files = files_of({llama_7b,
                          R"("stage": 3)",
                          "finetuning_type: lora\nbf16: true\nlora_rank: 8\nlora_target: all\n"
                          "cutoff_len: 256\nper_device_train_batch_size: 2\n",
                          {.gpu_gib = 24, .host_gib = 64, .more = R"(, "out_free_gib": 6)"}});
  files.write("export.yaml", "finetuning_type: lora\nexport_dir: merged\nexport_size: 5\n");
  const Diagnosis exported = files.diagnose();
  expect_says(exported, "export-fills-the-disk", {"13.5 GB", "6.4 GB"});
  expect_says(exported, "adapter-sizes", {"19988480 parameters", "280 MB"});
  EXPECT_EQ(exit_code_of(exported, Engine::underkeel), 2);
  EXPECT_EQ(exit_code_of(exported, Engine::deepspeed), 2);
}

TEST(Cases, AMixtureOfExpertsIsRefusedByName) {
  Files files;
  files.write("model.json", R"({"model_type": "mixtral", "vocab_size": 256, "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_local_experts": 8, "num_experts_per_tok": 2})");
  files.write("train.yaml", run_yaml("finetuning_type: full\nbf16: true\n"));

  const Diagnosis diagnosis = files.diagnose();

  expect_says(diagnosis, "model-unsupported", {"mixtral"});
  expect_says(diagnosis, "memory-of-unknown-model", {"model.json is not judged"});
  EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 2);
}

TEST(Cases, AModelFarBeyondTheHostIsRefusedByItsState) {
  const Diagnosis diagnosis = files_of({qwen_72b,
                                        "",
                                        "model_name_or_path: m\nfinetuning_type: full\nbf16: true\n"
                                        "per_device_train_batch_size: 1\n",
                                        {.gpus = 0, .gpu_gib = 0, .host_gib = 128}})
                                  .diagnose();

  EXPECT_EQ(diagnosis.underkeel.verdict, Verdict::fails);
  expect_says(diagnosis, "underkeel-state-does-not-fit", {"1163", "137.4 GB"});
  EXPECT_EQ(found(diagnosis, "no-deepspeed-config").size(), 1u);
}

TEST(Cases, ChangesThatOurEngineProposesAreAccepted) {
  Files files = files_of({llama_7b,
                          R"("stage": 0)",
                          "finetuning_type: full\nbf16: true\ncutoff_len: 2048\n"
                          "per_device_train_batch_size: 8\ngradient_accumulation_steps: 2\n",
                          {.gpus = 8, .gpu_gib = 40}});
  const Diagnosis diagnosis = files.diagnose();
  ASSERT_EQ(diagnosis.underkeel.verdict, Verdict::fails);
  const auto row = std::find_if(
      diagnosis.alternatives.begin(), diagnosis.alternatives.end(), [](const Alternative& each) {
        return each.engine == Engine::underkeel && each.verdict == Verdict::runs;
      });
  ASSERT_NE(row, diagnosis.alternatives.end());

  std::string word;
  for (const char c : row->words + " ") {
    if (c != ' ') {
      word += c;
      continue;
    }
    files.question.changes.push_back(word);
    word.clear();
  }
  EXPECT_EQ(files.diagnose().underkeel.verdict, Verdict::runs) << row->words;
}

}  // namespace
}  // namespace underkeel::doctor
