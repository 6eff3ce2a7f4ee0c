// What makes a text a log, and what doctor says of one beside the files of its run.

#include "doctor/log_content.h"

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

const std::string error_line =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total "
    "capacity of 39.39 GiB of which 1.00 GiB is free. Of the allocated memory 30.00 GiB is "
    "allocated by PyTorch, and 1.50 GiB is reserved by PyTorch but unallocated.\n";

TEST(LogContent, IsWhatProgramsWrite) {
  const std::string logs[] = {
      error_line,
      "[rank3]: " + error_line,
      "[rank0]:[W1130 21:13:43.1 ProcessGroupNCCL.cpp:1250] warning\n",
      "starting\nTraceback (most recent call last):\n",
      "[2026-11-30 21:13:43,100] [INFO] [engine.py:12] ready\n",
      "2026-11-30T21:13:43 started\n",
      "[INFO|trainer.py:2128] 2026-11-30 21:13:43 >> Running training\n",
      "ERROR:torch.distributed.elastic:failed (exitcode: -9) local_rank: 0 (pid: 4711)\n",
      "  exitcode  : 1 (pid: 4711)\n",
      "Root cause: Signal 9 (SIGKILL) received by PID 4711\n",
      "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0\n",
      "kernel: Out of memory: Killed process 4711 (python)\n",
      "Killed\n",
      " 50%|#####     | 501/1000 [10:00<10:00,  1.20s/it]\n",
      "ValueError: mismatch TrainingArguments values\n",
  };
  for (const std::string& log : logs) EXPECT_TRUE(looks_like_log(log)) << log;
}

TEST(LogContent, IsNotWhatPeopleSayOfErrors) {
  const char* texts[] = {
      "If you run out of memory, lower the batch size.",
      "CUDA out of memory? Use ZeRO-3 with offload.",
      "A RuntimeError or an AssertionError means that the config is wrong.",
      "You will see an OutOfMemoryError: then lower cutoff_len.",
      "When the process is Killed, or dies by SIGKILL, the host ran out of memory.",
      "exitcode -9 is the kernel's oom-kill.",
      "The NCCL Watchdog only notices it. Set [INFO] logging.",
      "Errors: a ValueError, a ValidationError.",
      "It Tried to allocate more than there is.",
  };
  for (const char* text : texts) {
    EXPECT_FALSE(looks_like_log(text)) << text;
    Files files;
    files.write("answer.txt", text);
    std::vector<Finding> ignored;
    EXPECT_EQ(open_document(files.at("answer.txt"), ignored).kind, FileKind::advice) << text;
  }
}

TEST(LogContent, OfAFileThatIsNamedALogIsOne) {
  for (const char* name : {"run.log", "job.out", "job.err"}) {
    Files files;
    files.write(name, "loss is 1.2\nloss is 1.1\n");

    const Diagnosis diagnosis = files.diagnose();

    EXPECT_EQ(found(diagnosis, "log-without-error").size(), 1u) << name << messages(diagnosis);
  }
}

Files run_beside(const std::string& log, double gpu_gib) {
  Files files;
  files.write("run.log", log);
  files.write("model.json", model_json({32000, 4096, 32, 11008, 32, 32}));
  files.write("train.yaml", "stage: sft\nfinetuning_type: full\nbf16: true\n");
  files.write("ds_config.json", R"({"train_micro_batch_size_per_gpu": "auto",
    "zero_optimization": {"stage": 3}})");
  files.write("hardware.yaml",
              fmt::format("gpus_per_node: 8\ngpu_mem_gib: {}\nhost_ram_gib: 900\n", gpu_gib));
  return files;
}

TEST(LogBesideFiles, AsksForThoseAloneThatAreMissing) {
  Files log;
  log.write("run.log", error_line);
  EXPECT_NE(says(log.diagnose(), "log-out-of-memory")
                .find("give doctor beside the log: the run file or the DeepSpeed config and the "
                      "model's config.json"),
            std::string::npos)
      << messages(log.diagnose());

  log.write("ds_config.json", R"({"zero_optimization": {"stage": 3}})");
  EXPECT_TRUE(says(log.diagnose(), "log-out-of-memory")
                  .ends_with("give doctor beside the log: the model's config.json"))
      << messages(log.diagnose());

  const Files all = run_beside(
      "Traceback (most recent call last):\n  File \"m.py\", line 1, in forward\n" + error_line, 40);
  const Diagnosis diagnosis = all.diagnose();
  const std::string answer = says(diagnosis, "log-out-of-memory");
  const Holding& step = *diagnosis.deepspeed.at(Phase::step, Space::device);
  EXPECT_EQ(answer.find("give doctor"), std::string::npos) << answer;
  EXPECT_NE(answer.find(fmt::format("foretell on a GPU in forward and backward {} - {}; the log's "
                                    "GPU has 42.3 GB",
                                    amount(step.low()), amount(step.high()))),
            std::string::npos)
      << answer;
}

TEST(LogBesideFiles, ComparesTheMomentThatItFailedIn) {
  const Files files =
      run_beside("Traceback (most recent call last):\n  optimizer.step(\n" + error_line, 40);

  const std::string answer = says(files.diagnose(), "log-out-of-memory");

  EXPECT_NE(answer.find("foretell on a GPU in the update"), std::string::npos) << answer;
}

TEST(LogBesideFiles, SaysWhoseGpuCounts) {
  const Diagnosis diagnosis = run_beside(error_line, 80).diagnose();

  const std::string answer = says(diagnosis, "log-of-another-gpu");
  EXPECT_NE(answer.find("the log's GPU has 42.3 GB (39.4 GiB) and the machine of the other answers "
                        "85.9 GB (80.0 GiB)"),
            std::string::npos)
      << answer;
  EXPECT_TRUE(found(run_beside(error_line, 40).diagnose(), "log-of-another-gpu").empty());
}

TEST(LogBesideFiles, RanksCausesByTheLogsOwnGpu) {
  const std::string saved =
      "Saving model checkpoint to out/checkpoint-500\n 501/1000 [10:00<10:00]\n" + error_line;
  const auto margin_in = [&](double gpu_gib) {
    Files files = run_beside(saved, gpu_gib);
    return says(files.diagnose(), "after-save-allocator");
  };

  EXPECT_NE(margin_in(80).find("left by the sum"), std::string::npos) << margin_in(80);
  EXPECT_EQ(margin_in(80), margin_in(40));
}

TEST(LogBesideFiles, PointsToTheFindingsOnAConfigThatIsThere) {
  const std::pair<const char*, const char*> errors[] = {
      {"log-extra-key", "pydantic.ValidationError: Extra inputs are not permitted\n"},
      {"log-mismatch", "ValueError: mismatch TrainingArguments values\n"},
      {"log-auto-left", "ValueError: 'auto': the truth value is ambiguous\n"},
      {"log-json-comment", "json.decoder.JSONDecodeError: Expecting value\n"}};
  for (const auto& [id, line] : errors) {
    Files alone;
    alone.write("run.log", line);
    EXPECT_NE(says(alone.diagnose(), id).find("/ give doctor"), std::string::npos)
        << messages(alone.diagnose());

    const Diagnosis beside = run_beside(line, 40).diagnose();
    EXPECT_NE(says(beside, id).find("/ see the findings on"), std::string::npos)
        << messages(beside);
  }
}

}  // namespace
}  // namespace underkeel::doctor
