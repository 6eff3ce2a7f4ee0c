// What people reported, as files, asked of the program itself: its verdicts for both engines, its exit codes and what it
// says. The sums behind the figures are in tests/doctor/cases_test.cpp.

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "doctor/shapes.h"

namespace underkeel::test {
namespace {

using Json = nlohmann::json;
using doctor::llama_13b;
using doctor::llama_33b;
using doctor::llama_70b;
using doctor::llama_7b;
using doctor::llama_8b;
using doctor::model_json;
using doctor::qwen_14b;
using doctor::qwen_32b;
using doctor::qwen_72b;
using doctor::qwen_half;
using doctor::Shape;
using testing::HasSubstr;

constexpr Shape tiny = {256, 64, 2, 160, 4, 4, 0, false, true};
constexpr Shape qwen3_like = {50257, 1280, 24, 5120, 20, 20};

struct Says {
  std::string_view id;
  std::vector<std::string> parts;  // of its message or its fix
};
struct Asked {
  std::string name;
  std::vector<std::pair<std::string, std::string>> files;
  std::string flags = {};
  std::string deepspeed = "runs";  // verdicts
  std::string underkeel = "fails";
  int deepspeed_code = 0;
  int underkeel_code = 2;
  std::vector<Says> says = {};
};

const std::string offload = R"("offload_optimizer": {"device": "cpu", "pin_memory": true})";
const std::string offload_both =
    offload + R"(, "offload_param": {"device": "cpu", "pin_memory": true})";
const std::string full = "finetuning_type: full\nbf16: true\n";
const std::string lora = "finetuning_type: lora\nbf16: true\nlora_rank: 16\nlora_target: all\n";

std::pair<std::string, std::string> model(const Shape& shape) {
  return {"model.json", model_json(shape)};
}
std::pair<std::string, std::string> run(const std::string& more) {
  return {"train.yaml",
          "stage: sft\ndo_train: true\ndataset: data\nlearning_rate: 1.0e-4\nlogging_steps: 1\n" +
              more};
}
std::pair<std::string, std::string> zero(const std::string& text) {
  return {"ds_config.json",
          R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
              "train_batch_size": "auto", "bf16": {"enabled": true}, "zero_optimization": {)" +
              text + "}}"};
}
std::pair<std::string, std::string> machine(int gpus, int gpu_gib, int host_gib,
                                            const std::string& more = "") {
  return {"hardware.json",
          fmt::format(R"({{"gpus_per_node": {}, "gpu_mem_gib": {}, "host_ram_gib": {}{}}})", gpus,
                      gpu_gib, host_gib, more)};
}

Json ask(const Asked& asked, const TemporaryFolder& folder, std::string_view engine,
         int exit_code) {
  std::string words = "doctor --json --engine " + std::string(engine) + " " + asked.flags;
  for (const auto& [name, text] : asked.files) {
    write_text(folder / name, text);
    words += " " + (folder / name).string();
  }
  const Ran ran = run_underkeel(words);
  EXPECT_EQ(ran.exit_code, exit_code) << asked.name << ", " << engine << "\n" << ran.out;
  return Json::parse(ran.out);
}

/// Both engines' exit codes and verdicts, and every sentence in English; in Chinese the same ids with the same numbers.
void expect_answer(const Asked& asked) {
  const TemporaryFolder folder;
  const Json found = ask(asked, folder, "underkeel", asked.underkeel_code);
  ask(asked, folder, "deepspeed", asked.deepspeed_code);
  EXPECT_EQ(found["engines"]["deepspeed"]["verdict"], asked.deepspeed) << asked.name;
  EXPECT_EQ(found["engines"]["underkeel"]["verdict"], asked.underkeel) << asked.name;
  for (const Says& says : asked.says) {
    std::string all;
    for (const Json& finding : found["findings"])
      if (finding["id"] == says.id)
        all += finding["message"].get<std::string>() + " / " +
               (finding["fix"].is_string() ? finding["fix"].get<std::string>() : "") + "\n";
    EXPECT_FALSE(all.empty()) << asked.name << ": " << says.id << "\n" << found["findings"].dump(1);
    for (const std::string& part : says.parts)
      EXPECT_THAT(all, HasSubstr(part)) << asked.name << ": " << says.id;
  }
}

std::vector<Asked> of_memory() {
  const std::string one_by_two = "per_device_train_batch_size: 1\ngradient_accumulation_steps: 2\n";
  return {
      {.name = "host memory after the first save",
       .files =
           {model(qwen_32b), zero(R"("stage": 3, )" + offload_both), machine(4, 80, 256),
            run("finetuning_type: lora\nbf16: true\nlora_rank: 16\nlora_target: q_proj,v_proj\n"
                "cutoff_len: 1024\nsave_steps: 5\ngradient_accumulation_steps: 32\n")},
       .says = {{"host-phases",
                 {"steadily", "during a save", "after it", "page cache is not counted"}},
                {"adapter-sizes", {"16777216 parameters", "65.0 GB"}},
                {"adapter-save-collects-base", {"65.0 GB more on rank 0's host"}}}},
      {.name = "a model larger than one card",
       .files = {model({32000, 4096, 42, 14336, 32, 32}), zero(R"("stage": 3, )" + offload),
                 machine(8, 16, 256), run(full + "cutoff_len: 128\nsave_steps: 10\n")},
       .says = {{"whole-model-above-one-card", {"one tensor at a time"}},
                {"save-without-weights", {"sharded state, resumable", "no weights file"}}}},
      {.name = "a resume that reads its optimizer whole",
       .files = {model(qwen3_like), zero(R"("stage": 2, )" + offload), machine(1, 24, 16),
                 run(full + "cutoff_len: 256\nper_device_train_batch_size: 2\n"
                            "gradient_accumulation_steps: 2\n")},
       .flags = "--resume",
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"underkeel-cannot-yet", {"offload is not built yet"}}}},
      {.name = "moments at the first update",
       .files = {model(llama_8b), zero(R"("stage": 2)"), machine(1, 80, 256),
                 run(full + "cutoff_len: 128\nper_device_train_batch_size: 1\n")},
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"one-rank-saves-nothing", {"128.5 GB", "offload_optimizer"}},
                {"first-update", {"48.2 GB", "64.2 GB", "176.7 GB"}}}},
      {.name = "stage 2 with offload is still too big",
       .files = {model(qwen_14b), zero(R"("stage": 2, )" + offload), machine(4, 40, 512),
                 run(full + "cutoff_len: 4096\nper_device_train_batch_size: 4\n"
                            "disable_gradient_checkpointing: true\n")},
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"deepspeed-does-not-fit", {"activations and logits", "weights 29.5 GB"}}}},
      {.name = "two cards load a 30B",
       .files = {model(qwen_32b), zero(R"("stage": 3)"), machine(2, 180, 482), run(lora)},
       .says = {{"load-needs-zero-init", {"2 copies: 130.0 GB"}}}},
      {.name = "eight cards load a 30B",
       .files = {model(qwen_32b), zero(R"("stage": 3)"), machine(8, 180, 1928), run(lora)},
       .says = {{"load-needs-zero-init", {"8 copies: 520.2 GB"}}}},
      {.name = "a 33B with both offloads in 600 GB",
       .files = {model(llama_33b), zero(R"("stage": 3, )" + offload_both),
                 machine(8, 40, 559, R"(, "swap_free_gib": 1024)"), run(full + one_by_two)},
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"host-phases", {"650.6 GB - 715.6 GB steadily"}},
                {"own-layout-with-offload", {"455.4 GB - 585.5 GB"}}}},
      {.name = "the same with the optimizer alone on the host",
       .files = {model(llama_33b), zero(R"("stage": 3, )" + offload), machine(8, 40, 559),
                 run(full + one_by_two)},
       .deepspeed = "unknown",
       .says = {{"host-phases", {"585.5 GB steadily"}}}},
      {.name = "page-locked memory",
       .files = {model(llama_33b), zero(R"("stage": 3, )" + offload_both),
                 machine(8, 80, 1024, R"(, "memlock_gib": 700)"), run(full + one_by_two)},
       .says = {{"page-locked", {"260.2 GB - 325.3 GB", "at worst 650.6 GB"}}}},
      {.name = "parameter offload at stage 2",
       .files = {model(llama_13b), zero(R"("stage": 2, )" + offload_both), machine(1, 24, 384),
                 run(full + one_by_two + "cutoff_len: 256\n")},
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"offload-without-effect", {"`offload_param` has no effect at stage 2"}},
                {"weights-stay-whole", {"26.0 GB (available: 25.8 GB"}},
                {"parameter-offload-at-stage-3", {"runs with DeepSpeed"}}}},
      {.name = "a higher stage needs more",
       .files = {model(qwen_half),
                 zero(R"("stage": 2, "reduce_bucket_size": 5e8, "allgather_bucket_size": 5e8,
                         "overlap_comm": true, "contiguous_gradients": true)"),
                 machine(2, 15, 64),
                 run(full + "cutoff_len: 512\nper_device_train_batch_size: 8\n"
                            "gradient_accumulation_steps: 2\n")},
       .deepspeed = "unknown",
       .underkeel = "runs",
       .underkeel_code = 0,
       .says = {{"bucket-bytes", {"3.0 GB together", "802816 elements"}},
                {"key-practically-dead", {"`allgather_bucket_size` has no effect"}},
                {"own-layout", {"4.4 GB of model state a rank"}},
                {"underkeel-logits", {"whole they would be 2.5 GB"}}}},
      {.name = "a 4-bit base is not split",
       .files = {model(llama_70b), zero(R"("stage": 3)"), machine(4, 24, 256),
                 run(lora + "quantization_bit: 4\n" + one_by_two)},
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"quantised-base-is-whole", {"34.2 GB", "39.5 GB on every card"}},
                {"underkeel-cannot-yet", {"quantised base models are not supported yet"}}}},
      {.name = "an 8-bit base is refused by name",
       .files = {model(tiny), run(lora + "quantization_bit: 8\n")},
       .deepspeed = "unknown",
       .says = {{"underkeel-cannot-yet", {"`quantization_bit`", "type `lora`"}}}},
      {.name = "a merge larger than the machine",
       .files = {model(qwen_72b),
                 machine(0, 0, 128, R"(, "out_free_gib": 300)"),
                 {"adapter_config.json", R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8,
                   "target_modules": ["q_proj", "v_proj"]})"}},
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"export-sizes", {"145.4 GB", "one shard of 5.0 GB and one tensor of 2.5 GB"}},
                {"merge-not-built", {"145.4 GB of host memory", "`underkeel export`"}},
                {"merge-holds-the-whole-model", {"145.4 GB of 137.4 GB"}}}},
      {.name = "an export that does not fit the disk",
       .files = {model(llama_7b),
                 zero(R"("stage": 3)"),
                 machine(1, 24, 64, R"(, "out_free_gib": 6)"),
                 run(lora + "cutoff_len: 256\n"),
                 {"export.yaml",
                  "template: empty\nexport_device: cpu\n"
                  "finetuning_type: lora\nexport_dir: merged\nexport_size: 5\n"}},
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"export-fills-the-disk", {"13.5 GB in 16 bit", "6.4 GB"}}}},
      {.name = "checkpoints that do not fit the disk",
       .files = {model(llama_7b), zero(R"("stage": 3)"),
                 machine(8, 80, 512, R"(, "out_free_gib": 100)"),
                 run(full + "max_steps: 1000\nsave_steps: 100\n")},
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"underkeel-disk-does-not-fit", {"10 checkpoints of", "107.4 GB"}},
                {"deepspeed-disk-does-not-fit",
                 {"80.9 GB each", "10 checkpoints stand there at once"}}}},
      {.name = "logits that are kept",
       .files = {model({50432, 4096, 32, 16384, 32, 32}),
                 zero(R"("stage": 3)"),
                 machine(8, 80, 894),
                 run(full + "cutoff_len: 512\neval_dataset: eval\neval_strategy: steps\n"
                            "eval_steps: 500\ncompute_accuracy: true\n"),
                 {"data-shape.json", R"({"eval": {"samples": 15000, "tokens": 512}})"}},
       .says = {{"evaluation-keeps-logits", {"1549.3 GB in fp32", "774.6 GB in 16 bit"}},
                {"underkeel-cannot-yet", {"`compute_accuracy`"}}}},
      {.name = "experts that no token reaches",
       .files = {{"model.json",
                  R"({"model_type": "mixtral", "architectures": ["MixtralForCausalLM"],
                   "num_local_experts": 8, "hidden_size": 64, "num_hidden_layers": 2,
                   "vocab_size": 256, "intermediate_size": 128, "num_attention_heads": 4})"},
                 zero(R"("stage": 3)"),
                 run(full)},
       .deepspeed = "unknown",
       .says = {{"model-unsupported", {"is not supported"}}}},
      {.name = "a state that is all there before the first step",
       .files = {model(tiny), zero(R"("stage": 1)"),
                 run(full + "cutoff_len: 256\nper_device_train_batch_size: 16\n"
                            "disable_gradient_checkpointing: true\n")},
       .flags = "--resume",
       .deepspeed = "unknown",
       .underkeel = "runs",
       .underkeel_code = 0,
       .says = {{"first-update", {"A resumed run has the moments in its first forward pass"}},
                {"underkeel-resume", {"its own share", "any number of ranks may resume"}}}},
      {.name = "saves without weights by config",
       .files = {model(llama_7b),
                 zero(R"("stage": 3, "stage3_gather_16bit_weights_on_model_save": false)"),
                 machine(8, 80, 512), run(full + "save_steps: 100\n")},
       .underkeel = "runs",
       .underkeel_code = 0,
       .says = {{"save-without-weights",
                 {"save interval 100", "no single weights file", "underkeel export"}}}},
  };
}

TEST(DoctorCases, OfMemoryAreAnswered) {
  for (const Asked& asked : of_memory()) expect_answer(asked);
}

std::vector<Asked> of_keys() {
  const auto config = [](const std::string& text) {
    return std::pair<std::string, std::string>{"ds_config.json", text};
  };
  const std::string micro_8 =
      full + "per_device_train_batch_size: 8\ngradient_accumulation_steps: 4\n";
  return {
      {.name = "an offload block outside",
       .files = {config(R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
                            "zero_optimization": {"stage": 2},
                            "offload_optimizer": {"device": "cpu"}})")},
       .deepspeed = "unknown",
       .says = {{"key-misplaced", {"passes over it without a word", "zero_optimization"}}}},
      {.name = "an outdated key",
       .files = {config(R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
                            "zero_optimization": {"stage": 2, "cpu_offload": true}})")},
       .deepspeed = "unknown",
       .says = {{"key-deprecated", {"old spelling", "offload_optimizer"}}}},
      {.name = "three misspelt keys",
       .files = {config(R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
                            "gradient_cliping": 1.0, "zero_optimisation": {},
                            "zero_optimization": {"stage ": 2}})")},
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"key-misspelt",
                 {"`stage `", "`gradient_cliping`", "`zero_optimisation`",
                  "`gradient_clipping`"}}}},
      {.name = "a loss scale of bf16",
       .files = {config(R"({"train_micro_batch_size_per_gpu": 1,
                            "bf16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16},
                            "zero_optimization": {"stage": 2}})")},
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"key-loss-scale-in-bf16", {"`loss_scale`", "`initial_scale_power`"}}}},
      {.name = "a batch that the run file makes whole",
       .files = {config(R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 8,
                            "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}})"),
                 run(micro_8)},
       .flags = "--ranks 8",
       .deepspeed = "unknown",
       .underkeel = "unknown",
       .underkeel_code = 0,
       .says = {{"batch-on-other-ranks", {"8 x 4 x 8 ranks = 256", "16: 2", "4: 8"}}}},
      {.name = "an accumulation of two sources",
       .files = {config(R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 8,
                            "gradient_accumulation_steps": 1, "bf16": {"enabled": true},
                            "zero_optimization": {"stage": 3}})"),
                 run(micro_8)},
       .flags = "--ranks 8",
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"accumulation-differs", {"8 x 1 x 8 = 64", "8 x 4 x 8 = 256"}}}},
      {.name = "a batch of fewer ranks",
       .files = {config(R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 8,
                            "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}})"),
                 run(micro_8)},
       .flags = "--ranks 2",
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"batch-differs-from-run", {"8 x 4 x 2 = 64 on 2 ranks (--ranks)", "16"}}}},
      {.name = "numbers in quotes",
       .files = {config(R"({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": "8",
                            "bf16": {"enabled": "true"},
                            "zero_optimization": {"stage": 2, "reduce_bucket_size": "5e8"}})"),
                 run(full + "per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\n")},
       .deepspeed = "fails",
       .underkeel = "unknown",
       .deepspeed_code = 2,
       .underkeel_code = 0,
       .says = {{"value-wrong-type", {"a whole number is wanted, the text \"8\" was found"}},
                {"value-quoted", {"`enabled`"}}}},
      {.name = "a comma at the end",
       .files = {config(
                     "{\"train_micro_batch_size_per_gpu\": \"auto\",\n"
                     " \"bf16\": {\"enabled\": true},\n"
                     " \"zero_optimization\": {\"stage\": 2,},\n \"train_batch_size\": \"auto\"}"),
                 run(full)},
       .deepspeed = "fails",
       .underkeel = "unknown",
       .deepspeed_code = 2,
       .underkeel_code = 0,
       .says = {{"json-not-strict", {"line 3", "strict JSON loader"}}}},
      {.name = "a recipe whose halves disagree",
       .files = {config(R"({"train_batch_size": 8, "bf16": {"enabled": true},
                            "zero_optimization": {"stage": 2},
                            "optimizer": {"type": "AdamW", "params": {"lr": 5e-4}},
                            "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0,
                              "warmup_max_lr": 5e-4, "warmup_num_steps": 500}}})"),
                 run(full + "per_device_train_batch_size: 2\ngradient_accumulation_steps: 8\n")},
       .flags = "--ranks 8",
       .deepspeed = "fails",
       .deepspeed_code = 2,
       .says = {{"batch-cannot-be-made", {"2 x 8 x 8 = 128", "no accumulation makes 8"}},
                {"run-value-differs",
                 {"optimizer.params.lr", "scheduler.params.warmup_max_lr", "warmup_num_steps"}}}},
  };
}

TEST(DoctorCases, OfKeysAreAnswered) {
  for (const Asked& asked : of_keys()) expect_answer(asked);
}

/// Digits of a text, in order of size: word order differs between languages.
std::vector<std::string> numbers_of(const std::string& text) {
  std::vector<std::string> numbers;
  std::string number;
  for (const char c : text + " ") {
    if (c >= '0' && c <= '9') {
      number += c;
    } else if (!number.empty()) {
      numbers.push_back(number);
      number.clear();
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

TEST(DoctorCases, SayInChineseWhatTheySayInEnglish) {
  std::vector<Asked> all = of_keys();
  for (Asked& asked : of_memory()) all.push_back(std::move(asked));
  for (const Asked& asked : all) {
    const TemporaryFolder folder;
    std::string words = "doctor --json " + asked.flags;
    for (const auto& [name, text] : asked.files) {
      write_text(folder / name, text);
      words += " " + (folder / name).string();
    }
    const Json english = Json::parse(run_underkeel(words).out)["findings"];
    const Json chinese = Json::parse(run_underkeel(words + " --lang zh").out)["findings"];

    ASSERT_EQ(english.size(), chinese.size()) << asked.name;
    for (std::size_t i = 0; i < english.size(); ++i) {
      EXPECT_EQ(english[i]["id"], chinese[i]["id"]);
      for (const char* field : {"message", "fix"}) {
        if (!english[i][field].is_string()) continue;
        const std::string en = english[i][field], zh = chinese[i][field];
        EXPECT_EQ(numbers_of(en), numbers_of(zh)) << en << "\n" << zh;
      }
    }
  }
}

}  // namespace
}  // namespace underkeel::test
