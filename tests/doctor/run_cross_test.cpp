// What LLaMA-Factory and the Trainer refuse in a run file: each with the finding and DeepSpeed's verdict, and good files with none.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

constexpr const char* good_run =
    "model_name_or_path: m\nstage: sft\ndo_train: true\ndataset: data\nfinetuning_type: "
    "full\nbf16: true\n";

Diagnosis diagnose(const std::string& lines, int stage) {
  Files files;
  files.write("model.json", model_json(llama_8b));
  files.write(
      "ds_config.json",
      fmt::format(R"({{"bf16": {{"enabled": true}}, "zero_optimization": {{"stage": {}}}}})",
                  stage));
  files.write("train.yaml", good_run + lines);
  return files.diagnose();
}

struct Refusal {
  const char* lines;
  int stage;
  const char* id;
  const char* says;
};
const Refusal refusals[] = {
    {"mask_history: true\ntrain_on_prompt: true\n", 2, "run-keys-exclude",
     "`mask_history` and `train_on_prompt` exclude one another: LLaMA-Factory stops"},
    {"eval_dataset: other\nval_size: 0.1\n", 2, "run-keys-exclude",
     "`val_size` and `eval_dataset`"},
    {"streaming: true\n", 2, "run-key-needs", "`streaming` needs `max_steps`"},
    {"streaming: true\nmax_steps: 10\nmax_samples: 5\n", 2, "run-keys-exclude",
     "`streaming` and `max_samples`"},
    {"streaming: true\nmax_steps: 10\nval_size: 0.1\n", 2, "run-keys-exclude",
     "`streaming` and `val_size`"},
    {"use_galore: true\n", 2, "run-keys-exclude", "`use_galore` and `deepspeed`"},
    {"use_unsloth: true\n", 3, "run-keys-exclude",
     "`use_unsloth` and `zero_optimization.stage: 3`"},
    {"use_dora: true\n", 2, "run-key-needs", "`use_dora` needs `finetuning_type: lora`"},
    {"load_best_model_at_end: true\nsave_only_model: true\n", 2, "run-keys-exclude",
     "Trainer stops before it loads anything"},
};

TEST(RunByItself, IsRefusedWhereLlamaFactoryOrTheTrainerRefuseIt) {
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.lines);
    const Diagnosis diagnosis = diagnose(refusal.lines, refusal.stage);
    const auto told = found(diagnosis, refusal.id);
    ASSERT_EQ(told.size(), 1u) << messages(diagnosis);
    EXPECT_NE(message_of(told[0], Language::english).find(refusal.says), std::string::npos)
        << message_of(told[0], Language::english);
    EXPECT_GT(told[0].line, 6);
    EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
    EXPECT_EQ(exit_code_of(diagnosis, Engine::deepspeed), 2);
  }
}

TEST(RunByItself, OfStagePtHasNoKeysOfInstructions) {
  Files files;
  files.write("train.yaml",
              "model_name_or_path: m\nstage: pt\ndataset: data\nneat_packing: true\n");

  const auto told = found(files.diagnose(), "run-key-needs");

  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(message_of(told[0], Language::english).find("`neat_packing` needs `stage: sft`"),
            std::string::npos);
}

TEST(RunByItself, IsNoNewsWhereItIsGood) {
  for (const char* lines :
       {"", "val_size: 0.1\n", "eval_dataset: other\n", "eval_dataset: other\nval_size: 0\n",
        "mask_history: true\n", "streaming: true\nmax_steps: 10\n", "use_galore: false\n",
        "use_unsloth: true\n", "load_best_model_at_end: true\n", "save_only_model: true\n",
        "adapter_name_or_path: null\n"}) {
    SCOPED_TRACE(lines);
    const Diagnosis diagnosis = diagnose(lines, 2);
    EXPECT_TRUE(found(diagnosis, "run-keys-exclude").empty());
    EXPECT_TRUE(found(diagnosis, "run-key-needs").empty());
  }
}

}  // namespace
}  // namespace underkeel::doctor
