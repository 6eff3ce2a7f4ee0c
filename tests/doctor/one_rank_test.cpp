// On one rank a stage splits nothing: no advice says that it would. And where findings stand in their files.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

constexpr const char* run_lines =
    "model_name_or_path: m\nstage: sft\ndo_train: true\ndataset: data\nfinetuning_type: full\n"
    "bf16: true\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 8\n"
    "learning_rate: 5.0e-5\n";

Diagnosis diagnose(const Shape& shape, const std::string& config, const char* machine) {
  Files files;
  files.write("model.json", model_json(shape));
  files.write("train.yaml", run_lines);
  if (!config.empty()) files.write("ds_config.json", config);
  files.write("hardware.json", machine);
  return files.diagnose();
}

constexpr const char* one_card = R"({"gpus_per_node": 1, "gpu_mem_gib": 80, "host_ram_gib": 512})";

TEST(OneRank, NoStageIsOfferedByItself) {
  for (const int given : {0, 2}) {
    const Diagnosis diagnosis = diagnose(
        llama_8b, fmt::format(R"({{"zero_optimization": {{"stage": {}}}}})", given), one_card);

    ASSERT_FALSE(diagnosis.alternatives.empty());
    for (const Alternative& row : diagnosis.alternatives)
      if (row.stage != given) {
        EXPECT_EQ(row.offload_optimizer, "cpu") << row.stage << ": " << row.words;
      }
  }
}

TEST(OneRank, OfAHostTooSmallIsNotToldOfStages) {
  const Diagnosis diagnosis = diagnose(qwen_72b, R"({"zero_optimization": {"stage": 3}})",
                                       R"({"gpus_per_node": 0, "host_ram_gib": 128})");

  const auto told = found(diagnosis, "underkeel-state-does-not-fit");
  ASSERT_EQ(told.size(), 1u) << messages(diagnosis);
  EXPECT_NE(fix_of(told[0], Language::english).find("one rank holds the whole state at any stage"),
            std::string::npos);
}

TEST(Nvme, HasABufferForTheLargestShareOrStopsAtStart) {
  constexpr const char* card =
      R"({"gpus_per_node": 1, "gpu_mem_gib": 80, "host_ram_gib": 512, "swap_free_gib": 2000})";
  constexpr const char* config = R"({{"zero_optimization": {{"stage": 3, "offload_param":
      {{"device": "nvme", "nvme_path": "/nvme", "buffer_size": {}}}}}}})";

  const Diagnosis small = diagnose(llama_8b, fmt::format(config, "1e8"), card);
  const Diagnosis large = diagnose(llama_8b, fmt::format(config, "6e8"), card);

  const auto told = found(small, "nvme-buffer-too-small");
  ASSERT_EQ(told.size(), 1u) << messages(small);
  // 128,256 x 4,096 of the embedding, whole on one rank.
  EXPECT_NE(message_of(told[0], Language::english).find("525336576 of them on each of 1 rank"),
            std::string::npos)
      << message_of(told[0], Language::english);
  EXPECT_EQ(small.deepspeed.verdict, Verdict::fails);
  EXPECT_EQ(exit_code_of(small, Engine::deepspeed), 2);
  EXPECT_TRUE(found(large, "nvme-buffer-too-small").empty());
}

TEST(OneRank, IsOneRank) {
  const Diagnosis diagnosis = diagnose(llama_8b, "", one_card);

  const auto told = found(diagnosis, "ranks-counted");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(message_of(told[0], Language::english), "1 rank, 1 on a node: hardware.json");
  EXPECT_EQ(messages(diagnosis).find("1 ranks"), std::string::npos) << messages(diagnosis);
}

TEST(Finding, OfTheBatchStandsInTheConfigsLine) {
  const Diagnosis diagnosis =
      diagnose(llama_8b, "{\n\"zero_optimization\": {\"stage\": 2},\n\"train_batch_size\": 8}",
               R"({"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 512})");

  const auto told = found(diagnosis, "underkeel-refuses", "train_batch_size");
  ASSERT_EQ(told.size(), 1u) << messages(diagnosis);
  EXPECT_EQ(told[0].file, "ds_config.json");
  EXPECT_EQ(told[0].line, 3);
}

TEST(Finding, OfABucketAsSmallAsAutoDoesNotAskForAuto) {
  for (const auto& [size, fix] :
       {std::pair{"\"auto\"", ""}, std::pair{"5e8", "\"reduce_bucket_size\": \"auto\""}}) {
    const Diagnosis diagnosis = diagnose(
        llama_7b,
        fmt::format(R"({{"zero_optimization": {{"stage": 2, "reduce_bucket_size": {}}}}})", size),
        R"({"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 512})");

    const auto told = found(diagnosis, "bucket-bytes");
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(fix_of(told[0], Language::english), fix);
  }
}

}  // namespace
}  // namespace underkeel::doctor
