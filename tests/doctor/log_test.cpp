// Logs with a traceback: numbers, phase, cause; and the ranking for "on the first step after a save".

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/log_rules.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

const std::string new_wording =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.50 GiB. GPU 3 has a total "
    "capacity of 79.15 GiB of which 1.25 GiB is free. Process 4711 has 77.89 GiB memory in use. Of "
    "the allocated memory 70.10 GiB is allocated by PyTorch, and 954.00 MiB is reserved by PyTorch "
    "but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n";
const std::string old_wording =
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total "
    "capacity; "
    "60.11 GiB already allocated; 1.20 GiB free; 74.11 GiB reserved in total by PyTorch)\n";

std::string traceback(std::string_view lines, std::string_view error) {
  return "Traceback (most recent call last):\n" + std::string(lines) + std::string(error);
}

TEST(Log, GivesTheNumbersOfBothWordings) {
  const LogSummary now = read_log(traceback("  File \"a.py\", line 1, in forward\n", new_wording));
  ASSERT_TRUE(now.out_of_memory.has_value());
  EXPECT_EQ(now.out_of_memory->gpu, 3);
  EXPECT_NEAR(*now.out_of_memory->tried, 6.5 * gib, 1);
  EXPECT_NEAR(*now.out_of_memory->total, 79.15 * gib, 1);
  EXPECT_NEAR(*now.out_of_memory->free, 1.25 * gib, 1);
  EXPECT_NEAR(*now.out_of_memory->allocated, 70.1 * gib, 1);
  EXPECT_NEAR(*now.out_of_memory->reserved_unused, 954.0 * 1024 * 1024, 1);
  EXPECT_EQ(now.place, Place::forward);

  const LogSummary old = read_log(traceback("  loss.backward()\n", old_wording));
  ASSERT_TRUE(old.out_of_memory.has_value());
  EXPECT_NEAR(*old.out_of_memory->tried, 2.0 * gib, 1);
  EXPECT_NEAR(*old.out_of_memory->total, 79.15 * gib, 1);
  EXPECT_NEAR(*old.out_of_memory->free, 1.2 * gib, 1);
  EXPECT_NEAR(*old.out_of_memory->allocated, 60.11 * gib, 1);
  EXPECT_NEAR(*old.out_of_memory->reserved_unused, 14.0 * gib, 1e6);
  EXPECT_EQ(old.place, Place::backward);
}

TEST(Log, KnowsTheMomentFromTheTraceback) {
  const std::pair<const char*, Place> examples[] = {
      {"  File \"engine.py\", line 9, in _take_model_step\n    self.optimizer.step()\n",
       Place::update},
      {"  File \"trainer.py\", line 5, in save_model\n", Place::save},
      {"  File \"trainer.py\", line 5, in evaluation_loop\n  File \"m.py\", in forward\n",
       Place::evaluation},
      {"  File \"engine.py\", line 5, in load_checkpoint\n", Place::resume},
      {"  File \"modeling_utils.py\", line 5, in from_pretrained\n", Place::load},
      {"  File \"engine.py\", in _configure_zero_optimizer\n    self.optimizer.step()\n",
       Place::load},
      {"  File \"deepspeed.py\", line 5, in backward\n    self.engine.step()\n", Place::update},
      {"  File \"checkpoint.py\", line 5, in backward\n  File \"m.py\", in forward\n",
       Place::backward},
      {"  File \"m.py\", line 5, in forward\n    loss = F.cross_entropy(a, b)\n", Place::loss},
      {"  File \"x.py\", line 5, in g\n", Place::unknown},
  };
  for (const auto& [lines, place] : examples)
    EXPECT_EQ(read_log(traceback(lines, new_wording)).place, place) << lines;
}

TEST(Log, SurvivesAnything) {
  for (const std::string& text :
       {std::string("CUDA out of memory"),
        std::string("CUDA out of memory. Tried to allocate GiB of"),
        std::string("/ [ 5/ /5 [ 1/2 ["),
        std::string("checkpoint-99999999999999999999999 CUDA out of memory"),
        std::string("Timeout(ms)=OpType="), std::string(3, '\0') + "is free total capacity"}) {
    read_log(text);
    Files files;
    files.write("run.log", text + "\nRuntimeError: x\n");
    EXPECT_FALSE(to_json(files.diagnose(), Language::english).empty());
  }
}

TEST(Log, TellsFragmentationFromShortfall) {
  Files fragmented;
  fragmented.write("run.log", traceback("", old_wording));
  EXPECT_NE(says(fragmented.diagnose(), "log-fragmented").find("15.0 GB"), std::string::npos);

  Files real;
  real.write("run.log", traceback("", new_wording));
  const Diagnosis diagnosis = real.diagnose();
  EXPECT_NE(says(diagnosis, "log-not-fragmented").find("1.0 GB"), std::string::npos);
  EXPECT_NE(says(diagnosis, "log-out-of-memory").find("asked for 7.0 GB"), std::string::npos);
}

TEST(Log, ReadsTheErrorsThatWordsAloneTell) {
  struct LogExample {
    const char* text;
    const char* id;
    const char* says;
  };
  const LogExample examples[] = {
      {"RuntimeError: CUDA error: out of memory\n", "", ""},
      {"Traceback (most recent call last):\n  x = t.pin_memory()\nRuntimeError: CUDA error: out of "
       "memory\n",
       "log-failed-lock", "page-locking host memory failed"},
      {"torch.distributed.elastic: failed (exitcode: -9) local_rank: 0\n", "log-killed",
       "signal 9"},
      {"step 12\nKilled\n", "log-killed", "signal 9"},
      {"/usr/bin/bash: line 1: 4121 Killed   python train.py\n", "log-killed", "signal 9"},
      {"python train.py died with <Signals.SIGKILL: 9>.\n", "log-killed", "signal 9"},
      {"slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch.\n", "log-killed",
       "signal 9"},
      {"[812.3] Memory cgroup out of memory: Killed process 4121 (python)\n", "log-killed",
       "signal 9"},
      {"[INFO] the run was Killed by nobody\n", "", ""},
      {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
       "capacity of 79.15 GiB of which 1.50 GiB is free. Of the allocated memory 37.00 GiB is "
       "allocated by PyTorch, and 1.10 GiB is reserved by PyTorch but unallocated.\n",
       "log-fragmented", "1.2 GB are reserved by torch and not allocated and 1.6 GB are free"},
      {"[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=57, "
       "OpType=_ALLGATHER_BASE, NumelIn=1, Timeout(ms)=1800000) ran for 1800123 ms\nRuntimeError\n",
       "log-timeout", "(_ALLGATHER_BASE) was given up (time limit: 1800 s)"},
      {"Watchdog caught collective operation timeout\nSignal 9 (SIGKILL)\n",
       "log-timeout-after-kill", "the kill is the cause"},
      {"AssertionError: Check batch related parameters. train_batch_size is not equal to "
       "micro_batch_per_gpu * gradient_acc_step * world_size 256 != 8 * 1 * 8\n",
       "log-batch-equation", "256 != 8 * 1 * 8"},
      {"pydantic_core.ValidationError: Extra inputs are not permitted\n", "log-extra-key",
       "ds_config"},
      {"ValueError: Please correct the following DeepSpeed config values that mismatch "
       "TrainingArguments values:\n",
       "log-mismatch", "every difference"},
      {"AssertionError: You are using an untested ZeRO Optimizer.\n", "log-untested-optimizer",
       "zero_allow_untested_optimizer"},
      {"Exception: Current loss scale already at minimum - cannot decrease scale anymore. "
       "RuntimeError\n",
       "log-scale-at-minimum", "bf16"},
      {"AssertionError: x.swp buffer nbytes != file bytes 8 != 4\n", "log-swap-file-short",
       "disk is full"},
      {"ZeRORuntimeException: The checkpoint being loaded used a DP world size of 4 but the "
       "current "
       "world size is 8. RuntimeError\n",
       "log-other-world-size", "universal"},
      {"RuntimeError: size mismatch for a: copying a param with shape torch.Size([0])\n",
       "log-empty-tensor", "zero_to_fp32.py"},
      {"ValueError: Please use `FORCE_TORCHRUN=1` to launch DeepSpeed training.\n", "log-torchrun",
       "FORCE_TORCHRUN=1"},
      {"ValueError: DeepSpeed Zero-3 is not compatible with `low_cpu_mem_usage=True` or with "
       "passing a "
       "`device_map`.\n",
       "log-device-map", "remove both"},
      {"RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn\n",
       "log-no-gradient", "enable_input_require_grads"},
      {"json.decoder.JSONDecodeError: Expecting value\nValueError\n", "log-json-comment", "hjson"},
      {"RuntimeError: tracing error at step 12\n", "log-trace-order", "leaf_module"},
  };
  for (const LogExample& example : examples) {
    Files files;
    files.write("run.log", example.text);
    const Diagnosis diagnosis = files.diagnose();
    if (std::string_view(example.id).empty()) {
      EXPECT_TRUE(found(diagnosis, "log-failed-lock").empty());
      continue;
    }
    EXPECT_NE(says(diagnosis, example.id).find(example.says), std::string::npos)
        << says(diagnosis, example.id);
    EXPECT_EQ(exit_code_of(diagnosis, Engine::deepspeed), 2);
    EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 0);
  }
}

constexpr Shape llama_7b = {32000, 4096, 32, 11008, 32, 32};

Files seven_billion_on_eight(std::string_view zero, std::string_view run = "") {
  Files files;
  files.write("model.json", model_json(llama_7b));
  files.write("ds_config.json", fmt::format(R"({{"train_micro_batch_size_per_gpu": "auto",
    "bf16": {{"enabled": true}}, "zero_optimization": {{{}}}}})",
                                            zero));
  files.write("train.yaml", fmt::format("model_name_or_path: m\nfinetuning_type: full\nbf16: true\n"
                                        "per_device_train_batch_size: 1\n{}",
                                        run));
  files.write("hardware.json", R"({"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 512})");
  return files;
}

std::string first_cause(const Diagnosis& diagnosis) {
  for (const Finding& finding : diagnosis.findings)
    if (finding.id.starts_with("after-save-")) return finding.id;
  return "none";
}

std::string log_after_save(std::string_view step_bar, std::string_view error,
                           std::string_view between = "") {
  return fmt::format("{{'loss': 1.2}}\nSaving model checkpoint to out/checkpoint-500\n{}{}\n{}",
                     between, step_bar, error);
}

TEST(Log, RanksTheCausesOfTheFirstStepAfterASave) {
  const std::string oom = traceback("  File \"m.py\", line 1, in forward\n", new_wording);
  const std::string fragmented = traceback("  File \"m.py\", line 1, in forward\n", old_wording);
  const std::string in_update = traceback("    self.optimizer.step()\n", new_wording);
  {
    Files files = seven_billion_on_eight(R"("stage": 3)");
    files.write("run.log", log_after_save(" 50%|#### | 501/1000 [1:00<1:00, 1s/it]", fragmented));
    EXPECT_EQ(first_cause(files.diagnose()), "after-save-allocator");
  }
  {
    Files files = seven_billion_on_eight(R"("stage": 3)", "eval_strategy: steps\neval_steps: 5\n");
    files.write("run.log", log_after_save(" 50%|#### | 501/1000 [1:00<1:00, 1s/it]", oom,
                                          "***** Running Evaluation *****\n"));
    EXPECT_EQ(first_cause(files.diagnose()), "after-save-evaluation");
  }
  {
    Files files = seven_billion_on_eight(R"("stage": 3)");
    files.write(
        "run.log",
        "Saving model checkpoint to out/checkpoint-1\n 1/1000 [0:01<1:00, 1s/it]\n" + in_update);
    EXPECT_EQ(first_cause(files.diagnose()), "after-save-moments");
  }
  {
    Files files =
        seven_billion_on_eight(R"("stage": 3, "stage3_gather_16bit_weights_on_model_save": true)");
    files.write("run.log", log_after_save(" 50%|#### | 501/1000 [1:00<1:00, 1s/it]",
                                          "failed (exitcode: -9)\nRuntimeError: NCCL\n"));
    EXPECT_EQ(first_cause(files.diagnose()), "after-save-host");
  }
}

TEST(Log, GivesEachCauseItsNumberInThisRunAndAnExperiment) {
  Files files = seven_billion_on_eight(R"("stage": 3)", "eval_strategy: steps\neval_steps: 5\n");
  files.question.after_save = true;

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_NE(says(diagnosis, "after-save-moments").find("6.7 GB"), std::string::npos);
  EXPECT_NE(says(diagnosis, "after-save-evaluation").find("2.0 GB"), std::string::npos);
  EXPECT_NE(says(diagnosis, "after-save-host").find("13.5 GB"), std::string::npos);
  for (const Finding& finding : diagnosis.findings) {
    if (finding.id.starts_with("after-save-")) {
      EXPECT_FALSE(fix_of(finding, Language::english).empty()) << finding.id;
    }
  }
}

TEST(Log, DoesNotBlameASaveThatIsLongPast) {
  Files files = seven_billion_on_eight(R"("stage": 3)");
  files.write("run.log", log_after_save(" 90%|#### | 901/1000 [1:00<1:00, 1s/it]",
                                        traceback("in forward\n", new_wording)));
  EXPECT_EQ(first_cause(files.diagnose()), "none");
}

TEST(Log, OfJsonLinesIsALog) {
  const std::string trace = traceback("  loss.backward()\n", old_wording);
  const std::string logs[] = {
      R"({"current_steps": 10, "total_steps": 100, "loss": 1.25, "epoch": 0.1})"
      "\n" +
          trace,
      R"({"loss": 1.25, "epoch": 0.1, "learning_rate": 1e-4})"
      "\n" +
          trace,
      R"({"level": "info", "msg": "started"})"
      "\n" +
          trace,
      R"({"started": true})"
      "\n" +
          std::string(70000, 'x') + "\n" + trace,
  };
  for (const std::string& log : logs) {
    Files files;
    files.write("run.jsonl", log);
    EXPECT_EQ(found(files.diagnose(), "log-out-of-memory").size(), 1u)
        << messages(files.diagnose());
  }
  Files healthy;
  healthy.write("trainer_log.jsonl", R"({"current_steps": 10, "loss": 1.25})"
                                     "\n");
  const Diagnosis of_healthy = healthy.diagnose();
  ASSERT_EQ(of_healthy.findings.size(), 1u) << messages(of_healthy);
  EXPECT_EQ(of_healthy.findings[0].id, "log-without-error");

  Files data;  // whose texts speak of errors
  data.write("data.jsonl",
             R"({"instruction": "What is a ValueError?", "output": "CUDA out of memory"})"
             "\n"
             R"({"instruction": "b", "output": "RuntimeError"})"
             "\n");
  std::vector<Finding> ignored;
  EXPECT_EQ(open_document(data.at("data.jsonl"), ignored).kind, FileKind::records);
}

}  // namespace
}  // namespace underkeel::doctor
