// In which phase a log's error struck, with ranks that write between one another, and when that cannot be told.

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/log_reader.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

const std::string oom_on_1 =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total "
    "capacity of 39.39 GiB of which 1.00 GiB is free. Of the allocated memory 30.00 GiB is "
    "allocated by PyTorch, and 1.50 GiB is reserved by PyTorch but unallocated.\n";

TEST(LogPlace, IsThatOfTheRankWhoseErrorItIs) {
  const std::string interleaved =
      "[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"trainer.py\", line 1, in _save_checkpoint\n"
      "[rank0]: Traceback (most recent call last):\n"
      "[rank0]:   File \"engine.py\", line 9, in backward\n"
      "[rank1]:   File \"engine.py\", line 2, in save_checkpoint\n"
      "[rank0]:     loss.backward()\n"
      "[rank1]: " +
      oom_on_1 + "[rank0]: KeyboardInterrupt\n";
  EXPECT_EQ(read_log(interleaved).place, Place::save);

  for (const char* mark : {"[default1]:", "node-1: ", "1: ", "(RayTrainWorker pid=71) "}) {
    const std::string log = std::string(mark) + "Traceback (most recent call last):\n" +
                            "other: Traceback (most recent call last):\n" + mark +
                            "  File \"engine.py\", line 9, in _take_model_step\n" +
                            "other:   File \"engine.py\", line 9, in evaluate\n" + mark + oom_on_1;
    EXPECT_EQ(read_log(log).place, Place::update) << log;
  }
}

TEST(LogPlace, IsNotThatOfAnEarlierError) {
  const std::string log =
      "Traceback (most recent call last):\n  File \"t.py\", line 1, in save_model\nValueError: no\n"
      "retrying\n" +
      oom_on_1;
  EXPECT_EQ(read_log(log).place, Place::unknown);
  EXPECT_EQ(traceback_of(log, log.find("CUDA out of memory")), "");
}

TEST(LogPlace, IsFoundBehindBarsThatAreRedrawn) {
  const std::string log =
      "  1%|          | 1/100 [00:01<01:00]\r  2%|          | 2/100 [00:02<01:00]\r"
      "Traceback (most recent call last):\n  File \"m.py\", line 2, in forward\r\n"
      "    return F.cross_entropy(a, b)\r\n" +
      oom_on_1;
  const LogSummary read = read_log(log);
  EXPECT_EQ(read.place, Place::loss);
  EXPECT_EQ(read.last_step, 2);
}

TEST(LogPlace, IsFoundBehindABarOnTheSameLineAndInALogThatWasCut) {
  const std::string bar =
      "  2%|#   | 1/50 [00:12<10:11, 12.48s/it][rank0]: Traceback (most recent call last):\n"
      "[rank1]: Traceback (most recent call last):\n"
      "[rank0]:   File \"deepspeed.py\", line 270, in backward\n[rank1]: ValueError: no\n"
      "[rank0]:     self.engine.step()\n[rank0]: " +
      oom_on_1;
  EXPECT_EQ(read_log(bar).place, Place::update);

  const std::string cut =
      "loss 1\n  File \"m.py\", line 2, in forward\n    return F.cross_entropy(a, b)\n" + oom_on_1;
  EXPECT_EQ(read_log(cut).place, Place::loss);
  EXPECT_TRUE(read_log("    t = torch.empty(n, pin_memory=True)\nRuntimeError: CUDA error: out of "
                       "memory\n")
                  .cuda_refused);
  EXPECT_TRUE(read_log("  File \"p.py\", line 1, in f\n    t = torch.empty(n, pin_memory=True)\n"
                       "RuntimeError: CUDA error: out of memory\n")
                  .failed_lock);
}

TEST(LogPlace, IsSoughtInTimeThatGrowsWithTheLog) {
  std::string killed, tracebacks;
  for (int i = 0; i < 100000; ++i) killed += "Killed";
  for (int i = 0; i < 20000; ++i) tracebacks += "[rank0]: Traceback (most recent call last):\n";

  EXPECT_FALSE(read_log(killed).was_killed);
  EXPECT_EQ(read_log(tracebacks + "[rank1]: " + oom_on_1).place, Place::unknown);
  EXPECT_FALSE(read_log("CUDA out of memory. GPU 9999999999 has").out_of_memory->gpu.has_value());
}

TEST(LogPlace, TakesTheSizesInEverySpelling) {
  const LogSummary log = read_log(
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB. GPU 0 has a "
      "total capacty of 23.65 GiB of which 93.81 MiB is free. Process 1 has 398.00 MiB memory in "
      "use. Of the allocated memory 21.51 GiB is allocated by PyTorch, and 2.30 MiB is reserved by "
      "PyTorch but unallocated.");
  EXPECT_NEAR(*log.out_of_memory->total, 23.65 * 1024 * 1024 * 1024, 1);
  EXPECT_EQ(log.out_of_memory->gpu, 0);
}

struct Sign {
  const char* text;
  const char* id;
  const char* says;
};

TEST(LogPlace, IsToldOfEveryKindOfEnd) {
  const Sign signs[] = {
      {"step 5\n  exitcode  : -9 (pid: 4711)\n", "log-killed", "the log last tells of no phase"},
      {"Loading checkpoint shards:  33%|###  | 1/3\nKilled\n", "log-killed",
       "last tells of loading"},
      {"{'loss': 1.2}\nSaving model checkpoint to out/checkpoint-5\nexited with code 137\n",
       "log-killed", "last tells of a save"},
      {"{'loss': 1.2}\ncontainer train Exited (137) 5 seconds ago\n", "log-killed",
       "last tells of training steps"},
      {"RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.\n", "log-killed",
       "signal 9"},
      {"/bin/bash: 第 1 行: 4121 已杀死  python train.py\n", "log-killed", "signal 9"},
      {"Reason: OOMKilled, exitCode: 137\n", "log-killed", "signal 9"},
      {"RuntimeError: CUDA error: out of memory\n", "log-cuda-refused",
       "at a place that the log does not tell and told no sizes"},
      {"Traceback (most recent call last):\n  File \"m.py\", in backward\nRuntimeError: CUDA "
       "error: "
       "CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n",
       "log-cuda-refused", "in the backward pass"},
      {"ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 'out of "
       "memory'\n",
       "log-cuda-refused", "page-locked memory of the host"},
      {"RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't "
       "allocate memory: you tried to allocate 53900000000 bytes. Error code 12 (Cannot allocate "
       "memory)\n",
       "log-host-refused", "asked for: 53.9 GB"},
      {"OSError: [Errno 12] Cannot allocate memory\n", "log-host-refused", "asked for: unknown"},
      {"RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible "
       "that "
       "dataloader's workers are out of shared memory.\n",
       "log-shared-memory", "/dev/shm"},
      {"RuntimeError: CUDA error: invalid argument\ncudaHostAlloc failed\n", "log-failed-lock",
       "page-locking host memory failed"},
      {"[Rank 3] Some NCCL operations have failed or timed out.\n", "log-timeout", "given up"},
      {"RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total "
       "capacity; 58.11 GiB already allocated; 1.20 GiB free; 59.11 GiB reserved in total by "
       "PyTorch)\n",
       "log-out-of-memory", "GPU 3 ran out of memory at a place"},
  };
  for (const Sign& sign : signs) {
    Files files;
    files.write("run.log", sign.text);
    const Diagnosis diagnosis = files.diagnose();

    EXPECT_NE(says(diagnosis, sign.id).find(sign.says), std::string::npos)
        << sign.text << says(diagnosis, sign.id);
    EXPECT_EQ(exit_code_of(diagnosis, Engine::deepspeed), 2) << sign.text;
  }
}

Files beside_run(const std::string& log, int gpus) {
  Files files;
  files.write("run.log", log);
  files.write("model.json", model_json(llama_7b));
  files.write("train.yaml", "stage: sft\nfinetuning_type: full\nbf16: true\n");
  files.write("ds_config.json", R"({"train_micro_batch_size_per_gpu": "auto",
    "zero_optimization": {"stage": 3}})");
  files.write("hardware.yaml",
              fmt::format("gpus_per_node: {}\ngpu_mem_gib: 40\nhost_ram_gib: 900\n", gpus));
  return files;
}

TEST(LogPlace, IsNotNamedWhereTheLogShowsNone) {
  const Diagnosis diagnosis = beside_run(oom_on_1, 8).diagnose();

  const std::string answer = says(diagnosis, "log-out-of-memory");
  EXPECT_NE(answer.find("at a place that the log does not tell"), std::string::npos) << answer;
  EXPECT_NE(answer.find("so it is placed in none; of all phases"), std::string::npos) << answer;
  EXPECT_EQ(answer.find("compare with"), std::string::npos) << answer;
  double most = 0;
  for (std::size_t p = 0; p < phase_count; ++p)
    if (const auto& each = diagnosis.deepspeed.at(static_cast<Phase>(p), Space::device))
      most = std::max(most, each->low());
  EXPECT_NE(answer.find(amount(most)), std::string::npos) << answer;
}

TEST(LogPlace, IsNoneInARunOfFewerRanks) {
  const std::string logs[] = {
      "Traceback (most recent call last):\n  File \"m.py\", in forward\n" + oom_on_1,
      "[rank7]: Traceback (most recent call last):\n[rank7]:   File \"m.py\", in "
      "forward\n[rank7]: " +
          oom_on_1,
      "world_size=16\n" + oom_on_1};
  const char* ranks[] = {"2 ranks", "8 ranks", "16 ranks"};
  for (std::size_t i = 0; i < 3; ++i) {
    const Diagnosis diagnosis = beside_run(logs[i], 1).diagnose();

    const std::string answer = says(diagnosis, "log-of-other-ranks");
    EXPECT_NE(answer.find(std::string("the log is of ") + ranks[i] +
                          " at least, the other answers "
                          "are for 1"),
              std::string::npos)
        << answer;
    EXPECT_NE(says(diagnosis, "log-out-of-memory").find("no forecast is set beside it"),
              std::string::npos)
        << says(diagnosis, "log-out-of-memory");
  }
  EXPECT_TRUE(found(beside_run(logs[1], 8).diagnose(), "log-of-other-ranks").empty());
}

TEST(LogPlace, OfAKillTakesTheHostMemoryOfThatPhase) {
  const Diagnosis in_save =
      beside_run("{'loss': 1.2}\nSaving model checkpoint to out/checkpoint-5\nKilled\n", 8)
          .diagnose();

  const std::string answer = says(in_save, "log-killed");
  EXPECT_NE(answer.find("on a node during a save, at the least: " +
                        amount(in_save.deepspeed.at(Phase::save, Space::host)->low())),
            std::string::npos)
      << answer;
}

}  // namespace
}  // namespace underkeel::doctor
