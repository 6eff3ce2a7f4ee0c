// Causes that a log names besides memory of its own run: other processes, other files, the disk, the host's refusals.

#include <gtest/gtest.h>

#include "doctor/case_files.h"
#include "doctor/files.h"
#include "doctor/log_reader.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

/// Llama-2-7B at stage 3 with the optimizer on the host, one card of 80 GiB, and a log.
Diagnosis beside(std::string_view log, std::string_view more = "") {
  Files files;
  files.write("model.json", model_json(llama_7b));
  files.write("train.yaml", fmt::format("stage: sft\nfinetuning_type: full\nbf16: true\n"
                                        "per_device_train_batch_size: 1\ncutoff_len: 2048\n{}",
                                        more));
  files.write("ds_config.json",
              R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}})");
  files.write("hardware.json", R"({"gpus_per_node": 1, "gpu_mem_gib": 80, "host_ram_gib": 256})");
  files.write("run.log", log);
  return files.diagnose();
}

std::string oom(std::string_view allocated, std::string_view more = "") {
  return fmt::format(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
      "capacity of 79.15 GiB of which 1.00 GiB is free. {}Of the allocated memory {} is allocated "
      "by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n",
      more, allocated);
}

TEST(LogCause, NamesOtherProcessesOnTheGpu) {
  const Diagnosis diagnosis =
      beside(oom("10.00 GiB",
                 "Process 1 has 60.00 GiB memory in use. Process 7 has 512.00 MiB "
                 "memory in use. Including non-PyTorch memory, this process has "
                 "18.00 GiB memory in use. "));

  expect_says(diagnosis, "log-other-processes",
              {"other processes hold 65.0 GB of the GPU's 85.0 GB"});
}

TEST(LogCause, SaysWhenTheLogIsOfAnotherRun) {
  const std::string saved = "Saving model checkpoint to out/checkpoint-10\n";
  const Diagnosis other = beside(saved + oom("77.00 GiB"));
  expect_says(other, "log-above-forecast", {"had allocated 82.7 GB"});

  EXPECT_TRUE(found(beside(saved + oom("14.00 GiB")), "log-above-forecast").empty());
}

TEST(LogCause, FindsTheRunsOwnSizesInWhatTheHostRefused) {
  const Diagnosis update = beside(
      "Traceback (most recent call last):\n"
      "  File \"cpu_adam.py\", line 120, in step\n    state['exp_avg'] = torch.zeros_like(p)\n"
      "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate "
      "26953662464 bytes. Error code 12 (Cannot allocate memory)\n");
  expect_says(update, "log-host-refused", {"in the update", "half of Adam's moments, 53.9 GB"});

  const Diagnosis resume = beside(
      "Resuming from checkpoint out/checkpoint-200\nTraceback (most recent call last):\n"
      "  File \"engine.py\", line 2900, in load_checkpoint\n"
      "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate "
      "80864370688 bytes. Error code 12 (Cannot allocate memory)\n");
  expect_says(resume, "log-host-refused",
              {"while a checkpoint was loaded", "as much as optimizer files, read whole, 80.9 GB"});
}

TEST(LogCause, KnowsAKillWhileACheckpointWasLoaded) {
  const Diagnosis diagnosis = beside(
      "Resuming training from checkpoint out/checkpoint-10\n[Torch] Loading checkpoint from "
      "out/checkpoint-10/global_step10/zero_pp_rank_0_mp_rank_00_optim_states.pt...\n"
      "failed (exitcode: -9) local_rank: 0\n");
  expect_says(diagnosis, "log-killed", {"on a resume"});
}

TEST(LogCause, KnowsWhatIsNotMemory) {
  for (const auto& [id, line] :
       {std::pair{"log-disk-full", "OSError: [Errno 28] No space left on device\n"},
        std::pair{"log-paging-file", "OSError: [WinError 1455] The paging file is too small\n"},
        std::pair{"log-segfault", " traceback : Signal 11 (SIGSEGV) received by PID 1\n"}})
    EXPECT_EQ(found(beside(line), id).size(), 1u) << line;
  EXPECT_TRUE(read_log("[1]    4242 killed     python train.py\n").was_killed);
  EXPECT_FALSE(read_log("the worker 4242 killed time\n").was_killed);
}

TEST(LogCause, NamesKeptLogitsAndAPhaseThatTheFilesDoNotHave) {
  const Diagnosis diagnosis = beside(
      "Traceback (most recent call last):\n  File \"trainer.py\", line 4123, in evaluation_loop\n"
      "    all_preds.add(logits)\n" +
      oom("10.00 GiB"));
  EXPECT_EQ(found(diagnosis, "log-kept-logits").size(), 1u);
  expect_says(diagnosis, "log-out-of-memory", {"has no such phase"});
}

TEST(LogCause, PrintsNoPlaceholderOfALogThatIsCut) {
  const std::string whole = oom("10.00 GiB");
  for (std::size_t length = 40; length < whole.size(); length += 7) {
    const Diagnosis diagnosis = beside(whole.substr(0, length));
    for (const Finding& finding : diagnosis.findings)
      for (const Language language : {Language::english, Language::chinese})
        EXPECT_EQ(message_of(finding, language).find('@'), std::string::npos)
            << message_of(finding, language);
  }
}

TEST(LogCause, OfTheFirstStepAfterASaveNeedsThatStep) {
  const std::string step = "{'loss': 0.7, 'epoch': 0.6}\n";
  const std::string saved = "Saving model checkpoint to out/checkpoint-10\n";
  EXPECT_TRUE(read_log(saved + step + oom("1 GiB")).after_save);
  EXPECT_FALSE(read_log(saved + step + step + step + oom("1 GiB")).after_save);
}

}  // namespace
}  // namespace underkeel::doctor
