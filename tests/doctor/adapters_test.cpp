// Files of adapters beside weights, and their config by itself: what either engine makes of them.

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/shapes.h"
#include "support/tensor_files.h"

namespace underkeel::doctor {
namespace {

constexpr Shape tiny_base = {256, 64, 2, 128, 4, 2, 0, false, true};

Diagnosis beside_weights(const std::vector<std::string>& names, bool in_a_run) {
  Files files;
  files.write("base/config.json", model_json(tiny_base));
  test::write_tensors(
      files.at("base/model.safetensors"),
      {{"model.norm.weight", test::stored(DType::f32, {64}, std::vector<float>(64, 1))}});
  for (const std::string& name : names)
    files.write("base/" + name,
                name.ends_with("json") ? R"({"peft_type": "LORA", "r": 8})" : std::string());
  files.question.paths = {files.at("base")};
  if (in_a_run) {
    const auto run = files.write("train.yaml",
                                 "stage: sft\ndo_train: true\nfinetuning_type: full\nbf16: true\n"
                                 "dataset: data\ntemplate: empty\noutput_dir: out\n"
                                 "per_device_train_batch_size: 1\nlearning_rate: 1.0e-4\n"
                                 "model_name_or_path: " +
                                     files.at("base").string() + "\n");
    files.question.paths = {run};
  }
  return files.diagnose();
}

TEST(Adapters, BesideWeightsAreToldForEachEngine) {
  const std::string config = "adapter_config.json", weights = "adapter_model.safetensors";
  for (const auto& [names, id] : {std::pair{std::vector{config, weights}, "adapters-on-weights"},
                                  std::pair{std::vector{config}, "adapters-without-weights"},
                                  std::pair{std::vector{weights}, "adapters-without-config"}})
    for (const bool in_a_run : {false, true}) {
      const Diagnosis diagnosis = beside_weights(names, in_a_run);
      // As `plan` and `train` do.
      EXPECT_EQ(diagnosis.underkeel.verdict, Verdict::fails) << id << messages(diagnosis);
      EXPECT_EQ(found(diagnosis, "adapters-beside-weights").size(), in_a_run ? 0u : 1u);
      EXPECT_EQ(found(diagnosis, "underkeel-refuses", "model_name_or_path").size(),
                in_a_run ? 1u : 0u)
          << messages(diagnosis);
      ASSERT_EQ(found(diagnosis, id).size(), 1u) << messages(diagnosis);
      EXPECT_EQ(found(diagnosis, id)[0].engine, Engine::deepspeed);
      EXPECT_EQ(messages(diagnosis).find("is not used"), std::string::npos);
    }
}

TEST(Adapters, AConfigIsKnownByItsName) {
  Files files;
  files.write("adapter_config.json", R"({"r": 8})");
  const Diagnosis alone = files.diagnose();
  EXPECT_TRUE(found(alone, "file-unrecognised").empty()) << messages(alone);
  EXPECT_EQ(found(alone, "adapter-config-without-type").size(), 1u);
  EXPECT_NE(says(alone, "adapter-config-alone").find("adapters of rank 8"), std::string::npos);
}

// 2 matrices of 8 x 4096 for each q_proj of 32 layers.
TEST(Adapters, AConfigAloneSaysWhatItsWeightsWouldBe) {
  Files files;
  files.write("adapter_config.json", R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16,
    "target_modules": ["q_proj"], "base_model_name_or_path": "llama-7b"})");
  EXPECT_NE(says(files.diagnose(), "adapter-config-alone").find("for q_proj, on llama-7b"),
            std::string::npos);
  files.write("config.json", model_json(llama_7b));
  const Diagnosis diagnosis = files.diagnose();
  const std::string text = says(diagnosis, "adapter-config-of-model");
  EXPECT_NE(text.find("2097152 parameters in 64 tensors, 4.2 MB in 16 bit or 8.4 MB"),
            std::string::npos)
      << text;
  // Nobody asked for a merge.
  EXPECT_TRUE(found(diagnosis, "merge-not-built").empty());
  EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 0);
  files.write("hardware.json", R"({"gpus_per_node": 0, "host_ram_gib": 64})");
  EXPECT_EQ(found(files.diagnose(), "merge-not-built").size(), 1u);
}

}  // namespace
}  // namespace underkeel::doctor
