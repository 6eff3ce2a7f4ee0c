// Findings that only some runs have: disks, quantised bases, limits that nobody gave, advice without a model.

#include <algorithm>

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

struct RunFiles {
  Shape shape = llama_7b;
  std::string zero = R"("stage": 3)";
  std::string yaml = "finetuning_type: full\n";
  std::string machine = R"({"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 512})";
};

Diagnosis diagnosis_of(const RunFiles& run) {
  Files files;
  files.write("model.json", model_json(run.shape));
  if (!run.zero.empty())
    files.write(
        "ds_config.json",
        fmt::format(
            R"({{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {{"enabled": true}}, "zero_optimization": {{{}}}}})",
            run.zero));
  files.write("train.yaml",
              "stage: sft\ndo_train: true\ndataset: data\nbf16: true\n"
              "per_device_train_batch_size: 2\ncutoff_len: 256\n" +
                  run.yaml);
  if (!run.machine.empty()) files.write("hardware.json", run.machine);
  return files.diagnose();
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

const std::string full_8_steps =
    "finetuning_type: full\nsave_steps: 2\nmax_steps: 8\nsave_total_limit: 3\n";
const std::string small_disk =
    R"({"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 512, "out_free_gib": 250})";

TEST(Disk, IsHeldAgainstTheCheckpointsThatStandAtOnce) {
  const Diagnosis full = diagnosis_of({.yaml = full_8_steps, .machine = small_disk});
  expect_parts(
      says(full, "deepspeed-disk-does-not-fit"),
      {"80.9 GB each", "0 B of weights",
       "4 checkpoints stand there at once, then 3 of them and the final folder of 80.9 GB: "
       "323.4 GB at most",
       "268.4 GB (250 GiB) are free", "save_total_limit: 2"});
  EXPECT_EQ(full.deepspeed.verdict, Verdict::fails);
  EXPECT_EQ(exit_code_of(full, Engine::deepspeed), 2);

  const Diagnosis gathers =
      diagnosis_of({.zero = R"("stage": 3, "stage3_gather_16bit_weights_on_model_save": true)",
                    .yaml = full_8_steps,
                    .machine = small_disk});
  expect_parts(says(gathers, "deepspeed-disk-does-not-fit"),
               {"94.3 GB each", "13.5 GB of weights", "377.4 GB"});

  // Below stage 3 DeepSpeed's own file holds the weights beside the Trainer's.
  expect_parts(
      says(diagnosis_of({.zero = R"("stage": 2)", .yaml = full_8_steps}), "deepspeed-disk"),
      {"107.8 GB of disk", "27.0 GB of weights", "431.3 GB"});
  expect_parts(
      says(diagnosis_of({.zero = R"("stage": 3, "gather_16bit_weights_on_model_save": true)",
                         .yaml = full_8_steps + "save_only_model: true\n",
                         .machine = small_disk}),
           "deepspeed-disk-fits"),
      {"13.5 GB of disk", "0 B of state", "53.9 GB of 268.4 GB"});
}

TEST(Disk, KeepsTheBestCheckpointAsTheTrainerDoes) {
  const std::string best =
      "finetuning_type: full\nsave_steps: 2\nmax_steps: 8\neval_strategy: steps\neval_steps: 2\n"
      "load_best_model_at_end: true\nsave_total_limit: ";
  expect_parts(says(diagnosis_of({.yaml = best + "1\n"}), "deepspeed-disk"),
               {"3 checkpoints stand there at once, then 2 of them", "242.6 GB at most"});
  expect_parts(says(diagnosis_of({.yaml = best + "3\n"}), "deepspeed-disk"),
               {"4 checkpoints stand there at once, then 3 of them", "323.4 GB at most"});
}

TEST(Disk, HoldsTheExportAfterTheRunBesideWhatStaysThere) {
  Files files;
  files.write("model.json", model_json(llama_7b));
  files.write(
      "ds_config.json",
      R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 3}})");
  files.write("train.yaml", full_8_steps + "save_only_model: true\n");
  files.write("export.yaml", "finetuning_type: full\nexport_dir: out\nexport_size: 5\n");
  const auto with_free = [&](int free_gib) {
    files.write("hardware.json", fmt::format(R"({{"gpus_per_node": 8, "gpu_mem_gib": 80,
                                                 "host_ram_gib": 512, "out_free_gib": {}}})",
                                             free_gib));
    return files.diagnose();
  };

  // Four checkpoints of 80.9 GB at once; three, the final folder and the export afterwards.
  const Diagnosis full = with_free(305);
  expect_parts(says(full, "disk-fails-by-export"),
               {"then 3 of them and the final folder of 80.9 GB and the exported model of 13.5 GB",
                "need 336.9 GB at most", "export to another disk", "save_total_limit: 2"});
  EXPECT_EQ(exit_code_of(full, Engine::deepspeed), 2);
  files.question.paths.pop_back();
  expect_parts(says(with_free(320), "deepspeed-disk-fits"), {"336.9 GB of 343.6 GB"});
}

TEST(Disk, OfARunThatSavesNothingIsTheFinalFolder) {
  expect_parts(
      says(diagnosis_of({.zero = R"("stage": 2)",
                         .yaml = "finetuning_type: full\nsave_strategy: 'no'\n",
                         .machine = R"({"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 512,
                                       "out_free_gib": 10})"}),
           "final-folder-does-not-fit"),
      {"13.5 GB needed, 10.7 GB"});
}

TEST(Disk, SaysWhatItDoesNotKnow) {
  const Diagnosis unbounded = diagnosis_of({.machine = small_disk});
  expect_parts(says(unbounded, "deepspeed-disk-unbounded"),
               {"all of them and the final folder of 80.9 GB stay", "room for: 2"});
  expect_parts(says(diagnosis_of({}), "deepspeed-disk-unbounded"), {"free: unknown"});
  const Diagnosis without_saves =
      diagnosis_of({.yaml = "finetuning_type: full\nsave_strategy: 'no'\n"});
  for (const Finding& finding : without_saves.findings)
    EXPECT_FALSE(finding.id.starts_with("deepspeed-disk")) << finding.id;
}

TEST(OwnLayout, CountsTheBytesThatTheRunsTypesTake) {
  const std::string full = "finetuning_type: full\n";
  expect_parts(says(diagnosis_of({.zero = R"("stage": 2)", .yaml = full}), "own-layout"),
               {"weights 13.5 GB", "optimizer state 10.1 GB", "gradients 1.7 GB"});
  expect_parts(says(diagnosis_of({.zero = R"("stage": 2)", .yaml = full + "pure_bf16: true\n"}),
                    "own-layout"),
               {"weights 13.5 GB", "optimizer state 3.4 GB", "gradients 1.7 GB"});
  // Without a DeepSpeed config sums over micro-batches are fp32.
  expect_parts(says(diagnosis_of({.zero = "", .yaml = full}), "own-layout"),
               {"optimizer state 80.9 GB", "gradients 27.0 GB", "weights 13.5 GB"});
}

const std::string qlora = "finetuning_type: lora\nlora_rank: 16\nquantization_bit: ";

TEST(QuantisedBase, IsCountedAsItIsHeld) {
  const std::string cards = R"({"gpus_per_node": 4, "gpu_mem_gib": 24, "host_ram_gib": 256})";
  const Diagnosis four =
      diagnosis_of({.shape = llama_70b, .yaml = qlora + "4\n", .machine = cards});
  // 39.5 GB in four parts, and adapters.
  expect_parts(says(four, "own-layout"), {"weights 10.0 GB"});
  expect_parts(says(four, "quantised-base-is-whole"), {"a base of 4 bits", "141.1 GB"});
  expect_parts(says(four, "adapter-sizes"), {"frozen base is 39.5 GB"});
  const Diagnosis eight =
      diagnosis_of({.shape = llama_70b, .yaml = qlora + "8\n", .machine = cards});
  expect_parts(says(eight, "quantised-base-is-whole"), {"a base of 8 bits"});
}

TEST(QuantisedBase, IsNoNewsWhereNothingIsSplit) {
  for (const RunFiles& run :
       {RunFiles{.zero = "", .yaml = qlora + "8\n"},
        RunFiles{.zero = R"("stage": 2)", .yaml = qlora + "8\n"},
        RunFiles{.yaml = qlora + "8\n", .machine = R"({"gpus_per_node": 1, "gpu_mem_gib": 80})"}}) {
    const Diagnosis diagnosis = diagnosis_of(run);
    EXPECT_TRUE(found(diagnosis, "quantised-base-is-whole").empty()) << run.zero;
  }
}

TEST(Logits, OfAllSamplesEndTheRunWhereTheyStayRaw) {
  Files files;
  files.write("model.json", model_json({50432, 4096, 32, 11008, 32, 32}));
  files.write(
      "ds_config.json",
      R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}})");
  files.write("hardware.json", R"({"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 894})");
  files.write("data-shape.json", R"({"eval": {"samples": 15000, "tokens": 512}})");
  const auto of_run = [&](const std::string& more) {
    const bool is_first = files.question.paths.size() == 4;
    files.write("train.yaml",
                "finetuning_type: full\nbf16: true\ncutoff_len: 512\ndataset: data\n"
                "per_device_train_batch_size: 2\npredict_with_generate: true\n"
                "eval_dataset: eval\n" +
                    more);
    if (!is_first) files.question.paths.pop_back();
    return files.diagnose();
  };

  const Diagnosis raw = of_run("eval_strategy: steps\neval_steps: 500\n");
  expect_parts(says(raw, "evaluation-keeps-raw-logits"),
               {"without compute_accuracy", "1549.3 GB", "959.9 GB", "30.7 MB", "61.4 MB at 8"});
  const Finding& told = found(raw, "evaluation-keeps-raw-logits")[0];
  EXPECT_EQ(told.severity, Severity::error);
  EXPECT_EQ(told.engine, Engine::deepspeed);
  EXPECT_EQ(raw.deepspeed.verdict, Verdict::fails);

  const Diagnosis reduced =
      of_run("eval_strategy: steps\neval_steps: 500\ncompute_accuracy: true\n");
  EXPECT_EQ(reduced.deepspeed.verdict, Verdict::runs);
  expect_parts(says(reduced, "evaluation-keeps-logits"), {"61.4 MB at 8"});
  EXPECT_EQ(of_run("eval_strategy: 'no'\n").deepspeed.verdict, Verdict::runs);
}

TEST(Logits, OfAMetricAreCountedFromTheDataThatWereRead) {
  const auto answer = [](const std::string& more, std::optional<DataFigures> data) {
    Files files;
    files.write("model.json", model_json({50432, 4096, 32, 11008, 32, 32}));
    files.write("hardware.json", R"({"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 894})");
    files.write("train.yaml",
                "finetuning_type: full\nbf16: true\ncutoff_len: 512\ndataset: data\n"
                "per_device_train_batch_size: 2\neval_strategy: steps\neval_steps: 500\n" +
                    more);
    files.question.data = std::move(data);
    return files.diagnose();
  };
  // 15,000 samples, of which the longest fills 505 tokens: padded to 512.
  DataFigures read{.samples = 100};
  read.training.longest_uncut = 505;
  read.sizes.evaluation = {.longest = 505, .sample_count = 15000};
  const std::string accuracy = "compute_accuracy: true\n", raw = "predict_with_generate: true\n";

  expect_parts(says(answer(accuracy + "eval_dataset: eval\n", read), "evaluation-keeps-logits"),
               {"15000 samples of 512 tokens", "1549.3 GB in fp32 or 774.6 GB", "30.7 MB"});
  expect_parts(says(answer(raw + "eval_dataset: eval\n", read), "evaluation-keeps-raw-logits"),
               {"1549.3 GB", "61.4 MB at 8"});
  // Nobody has read them: `val_size` may be a count, a name is none.
  expect_parts(says(answer(accuracy + "val_size: 15000\n", {}), "evaluation-keeps-logits"),
               {"15000 samples of 512 tokens", "1549.3 GB"});
  for (const std::string& keys : {accuracy + "eval_dataset: eval\n", raw + "val_size: 0.1\n"})
    expect_parts(says(answer(keys, {}), "evaluation-keeps-logits-of-many"),
                 {"each 1000 samples of 512 tokens", "103.3 GB in fp32 or 51.6 GB", "959.9 GB"});
  EXPECT_TRUE(found(answer("eval_dataset: eval\n", {}), "evaluation-keeps-logits-of-many").empty());
}

TEST(Bf16, IsAdvisedWhereTheMachineIsKnownToHaveIt) {
  Files files;
  files.write("model.json", model_json(llama_7b));
  files.write(
      "ds_config.json",
      R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "fp16": {"enabled": true}, "zero_optimization": {"stage": 3}})");
  files.write("train.yaml", "finetuning_type: full\nfp16: true\ndataset: data\n");
  files.write("hardware.json", R"({"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 512})");
  expect_parts(says(files.diagnose(), "bf16-weights-in-fp16"),
               {"if this machine has bf16 (compute capability 8.0 or later)"});
  files.write("hardware.json",
              R"({"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 512,
                  "compute_capability": "9.0"})");
  files.question.paths.pop_back();
  expect_parts(says(files.diagnose(), "bf16-weights-in-fp16"), {"this machine has bf16: use it"});
}

TEST(MoreRanks, AreOfferedWithTheNodesThatHoldThem) {
  const Diagnosis diagnosis =
      diagnosis_of({.zero = R"("stage": 3, "offload_optimizer": {"device": "cpu"},
                      "offload_param": {"device": "cpu"})",
                    .machine = R"({"gpus_per_node": 2, "gpu_mem_gib": 40, "host_ram_gib": 512})"});
  expect_parts(says(diagnosis, "underkeel-enough-ranks"),
               {"2 nodes of this kind", "on 2 such nodes: nodes: 2 in hardware.json, and ",
                "underkeel.ranks=4"});
  // The run without offload does not fit these cards: its host memory helps nobody.
  EXPECT_TRUE(found(diagnosis, "underkeel-host-without").empty());
}

TEST(Cure, IsSaidPlainlyWhereThereIsNone) {
  const Diagnosis diagnosis =
      diagnosis_of({.zero = R"("stage": 2)",
                    .machine = R"({"gpus_per_node": 2, "gpu_mem_gib": 8, "host_ram_gib": 16})"});
  expect_parts(says(diagnosis, "deepspeed-does-not-fit"), {" / nothing in the table"});
}

TEST(Verdict, NamesTermsOfTheRangeBesideThem) {
  constexpr Shape model_600m = {50257, 1280, 24, 4096, 20, 20, 0, false, true};
  Files files;
  files.write("model.json", model_json(model_600m));
  files.write(
      "ds_config.json",
      R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": true}, "zero_optimization": {"stage": 2,
    "offload_optimizer": {"device": "cpu", "pin_memory": true}}})");
  files.write("train.yaml",
              "finetuning_type: full\nbf16: true\ncutoff_len: 256\n"
              "per_device_train_batch_size: 2\ngradient_accumulation_steps: 2\n");
  files.write("hardware.json", R"({"gpus_per_node": 1, "gpu_mem_gib": 24, "host_ram_gib": 16})");
  files.question.resumes = true;
  for (const char* host : {"16", "64"}) {
    files.write(
        "hardware.json",
        fmt::format(R"({{"gpus_per_node": 1, "gpu_mem_gib": 24, "host_ram_gib": {}}})", host));
    files.question.paths.pop_back();
    for (const Finding& finding : files.diagnose().findings) {
      if (finding.id != "deepspeed-does-not-fit" && finding.id != "deepspeed-fits" &&
          finding.id != "deepspeed-may-not-fit")
        continue;
      const std::string text = message_of(finding, Language::english);
      EXPECT_EQ(text.find("rounding"), std::string::npos) << text;
    }
  }
}

/// A dash that stands for a figure, or a size below nothing. "1 GB - 2 GB" is a range.
bool has_figure_of_nothing(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t at = text.find('-'); at != std::string_view::npos; at = text.find('-', at + 1)) {
    const std::string_view before = text.substr(0, at), after = text.substr(at + 1);
    const bool begins = before.empty() || before.ends_with(' ') || before.ends_with('(') ||
                        before.ends_with("：") || before.ends_with("（");
    if (!begins) continue;
    const bool is_range = after.size() > 1 && after[0] == ' ' && is_digit(after[1]);
    const bool ends = after.empty() ||
                      std::string_view(" ;,.)").find(after[0]) != std::string_view::npos ||
                      after.starts_with("；") || after.starts_with("）");
    if (ends && !is_range) return true;
    const std::size_t unit = after.find_first_not_of("0123456789.");
    if (unit == 0 || unit == std::string_view::npos) continue;
    for (const char* size : {" GB", " MB", " KB", " GiB", " MiB"})
      if (after.substr(unit).starts_with(size)) return true;
  }
  return false;
}

void expect_figures(const Diagnosis& diagnosis) {
  for (const Finding& finding : diagnosis.findings)
    for (const Language language : {Language::english, Language::chinese}) {
      const std::string text = message_of(finding, language) + " / " + fix_of(finding, language);
      EXPECT_FALSE(has_figure_of_nothing(text)) << finding.id << ": " << text;
    }
}

TEST(Figures, ThatNobodyGaveAreCalledUnknown) {
  EXPECT_TRUE(has_figure_of_nothing("the limit is -"));
  EXPECT_TRUE(has_figure_of_nothing("allowed -512 MiB"));
  EXPECT_FALSE(has_figure_of_nothing("7.2 GB - 8.4 GB of --hardware"));
  const std::string offload = R"("offload_optimizer": {"device": "cpu"}, )"
                              R"("offload_param": {"device": "cpu"}, )";
  for (const char* stage : {"0", "1", "2", "3"})
    for (const char* yaml :
         {"finetuning_type: full\n", "finetuning_type: full\nsave_strategy: 'no'\n",
          "finetuning_type: full\neval_strategy: steps\ncompute_accuracy: true\n",
          "finetuning_type: lora\n", "finetuning_type: lora\nquantization_bit: 8\n"})
      for (const char* machine :
           {"", R"({"gpus_per_node": 2, "gpu_mem_gib": 1.5, "host_ram_gib": 1})",
            R"({"gpus_per_node": 2, "gpu_mem_gib": 80})",
            R"({"gpus_per_node": 0, "host_ram_gib": 4})"})
        for (const std::string& more : {std::string(), offload})
          expect_figures(diagnosis_of({.shape = qwen_half,
                                       .zero = more + fmt::format("\"stage\": {}", stage),
                                       .yaml = yaml,
                                       .machine = machine}));
  const Diagnosis unknown = diagnosis_of(
      {.zero = R"("stage": 2, "offload_optimizer": {"device": "cpu"})", .machine = ""});
  expect_parts(says(unknown, "page-locked"), {"limit: unknown"});
  Files log;
  log.write("run.log",
            "torch.cuda.OutOfMemoryError: CUDA out of memory.\nexitcode: -9 Signal 9\n"
            "Watchdog caught collective operation timeout\n"
            "cudaHostAlloc failed\n");
  expect_figures(log.diagnose());
}

TEST(AdviceWithoutAModel, NamesTheModelOfItsFigures) {
  Files files;
  files.write("ds_config.json", R"({"train_batch_size": 1, "zero_optimization": {"stage": 3,
    "stage3_param_persistence_threshold": 1e5}})");
  expect_parts(says(files.diagnose(), "advice-persistence-threshold"),
               {"\"auto\" is 40960 for Llama-2-7B, as no model is given,"});
  expect_parts(says(files.diagnose(), "advice-without-model"),
               {"Llama-2-7B", "85.9 GB (80.0 GiB)"});

  // A model is enough: its figures are taken beside a text, too.
  Files other;
  other.write("answer.txt", "Set stage3_param_persistence_threshold to 1e5.");
  other.write("model.json", model_json(qwen_half));
  const Diagnosis diagnosis = other.diagnose();
  expect_parts(says(diagnosis, "advice-persistence-threshold"), {"\"auto\" is 8960 here"});
  EXPECT_TRUE(found(diagnosis, "advice-without-model").empty());
  EXPECT_FALSE(found(diagnosis, "advice-without-machine").empty());
}

}  // namespace
}  // namespace underkeel::doctor
