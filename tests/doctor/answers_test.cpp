// Answers that are true of one engine and not of the other, and changes that are offered for a disk.

#include <gtest/gtest.h>

#include "doctor/disk.h"
#include "doctor/files.h"
#include "doctor/own_need.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

constexpr std::string_view run_of_adapters =
    "stage: sft\ndo_train: true\nfinetuning_type: lora\ndataset: data\nbf16: true\n"
    "learning_rate: 1.0e-4\nper_device_train_batch_size: 1\n";
constexpr std::string_view run_in_full =
    "stage: sft\ndo_train: true\nfinetuning_type: full\ndataset: data\nbf16: true\n"
    "learning_rate: 1.0e-4\nper_device_train_batch_size: 1\ncutoff_len: 256\n";

// DeepSpeed refuses a key that its file has twice; Python's json, which the Trainer reads it with, takes the last.
TEST(Answers, OfAKeyThatIsGivenTwice) {
  const std::string config =
      "{\"train_batch_size\": 1, \"bf16\": {\"enabled\": true},\n"
      "\"zero_optimization\": {\"stage\": 2,\n\"stage\": 3}}";
  Files alone;
  alone.write("ds_config.json", config);
  const Diagnosis refused = alone.diagnose();
  ASSERT_EQ(found(refused, "key-given-twice-alone", "stage").size(), 1u) << messages(refused);
  EXPECT_EQ(found(refused, "key-given-twice-alone")[0].line, 3);
  EXPECT_EQ(refused.deepspeed.verdict, Verdict::fails);
  EXPECT_EQ(refused.underkeel.verdict, Verdict::fails);

  Files beside;
  beside.write("model.json", model_json(llama_7b));
  beside.write("ds_config.json", config);
  beside.write("train.yaml", run_in_full);
  beside.write("hardware.json", R"({"gpus_per_node": 1, "gpu_mem_gib": 180, "host_ram_gib": 64})");
  const Diagnosis taken = beside.diagnose();
  ASSERT_EQ(found(taken, "key-given-twice", "stage").size(), 1u) << messages(taken);
  EXPECT_EQ(found(taken, "key-given-twice")[0].severity, Severity::warning);
  // The last one holds.
  EXPECT_FALSE(found(taken, "save-without-weights").empty()) << messages(taken);
  EXPECT_EQ(taken.deepspeed.verdict, Verdict::runs);
  // Ours refuses it, in its line.
  const auto ours = found(taken, "underkeel-refuses");
  ASSERT_EQ(ours.size(), 1u) << messages(taken);
  EXPECT_EQ(ours[0].file, "ds_config.json");
  EXPECT_EQ(ours[0].line, 3);
  EXPECT_NE(says(taken, "underkeel-refuses").find("key `stage` is given twice"), std::string::npos);
  EXPECT_EQ(taken.underkeel.verdict, Verdict::fails);
}

TEST(Answers, OfABitWidthThatIsNotThere) {
  for (const auto& [bits, stage, id] :
       {std::tuple{3, 2, "quantisation-bits"}, std::tuple{8, 3, "eight-bits-at-stage-3"},
        std::tuple{8, 2, ""}, std::tuple{4, 3, ""}}) {
    Files files;
    files.write("model.json", model_json(llama_7b));
    files.write("train.yaml", fmt::format("{}quantization_bit: {}\n", run_of_adapters, bits));
    files.write(
        "ds_config.json",
        fmt::format(
            R"({{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {{"enabled": true}},
        "zero_optimization": {{"stage": {}}}}})",
            stage));
    files.write("hardware.json", R"({"gpus_per_node": 2, "gpu_mem_gib": 80, "host_ram_gib": 256})");

    const Diagnosis diagnosis = files.diagnose();

    for (const char* each : {"quantisation-bits", "eight-bits-at-stage-3"})
      EXPECT_EQ(found(diagnosis, each, "quantization_bit").size(), std::string_view(each) == id)
          << bits << " at stage " << stage;
    EXPECT_EQ(diagnosis.deepspeed.verdict == Verdict::fails, !std::string_view(id).empty())
        << bits << " at stage " << stage << ids_of(diagnosis, Engine::deepspeed);
    EXPECT_EQ(diagnosis.underkeel.verdict, Verdict::fails);
  }
}

/// Words of a cure, up to the figure in parentheses, as changes of the run.
std::vector<std::string> changes_in(std::string_view cure) {
  std::vector<std::string> changes;
  cure = cure.substr(0, cure.find(" ("));
  while (!cure.empty()) {
    const std::size_t comma = cure.find(", ");
    const std::string_view word = cure.substr(0, comma);
    const std::size_t colon = word.find(": ");
    const std::string_view key = word.substr(0, colon);
    changes.push_back(fmt::format("{}{}={}",
                                  key.starts_with("stage3") ? "deepspeed.zero_optimization." : "",
                                  key, word.substr(colon + 2)));
    cure.remove_prefix(comma == std::string_view::npos ? cure.size() : comma + 2);
  }
  return changes;
}

TEST(Answers, ToADiskThatIsTooSmallFitIt) {
  int taken = 0;
  for (const std::string zero :
       {R"({"stage": 2})", R"({"stage": 3})",
        R"({"stage": 3, "stage3_gather_16bit_weights_on_model_save": true})"})
    for (const int free_gib : {100, 120, 250}) {
      Files files;
      files.write("model.json", model_json(llama_7b));
      files.write(
          "ds_config.json",
          fmt::format(
              R"({{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {{"enabled": true}}, "zero_optimization": {}}})",
              zero));
      files.write("train.yaml", std::string(run_in_full) +
                                    "save_steps: 2\nmax_steps: 20\n"
                                    "save_total_limit: 3\n");
      files.write("hardware.json",
                  fmt::format(R"({{"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 512,
                                   "out_free_gib": {}}})",
                              free_gib));
      const Diagnosis asked = diagnose(files.question, need_of);
      for (const auto& [id, engine] :
           {std::pair{"deepspeed-disk-does-not-fit", Engine::deepspeed},
            std::pair{"underkeel-disk-does-not-fit", Engine::underkeel}}) {
        const auto told = found(asked, id);
        ASSERT_EQ(told.size(), 1u) << zero << free_gib << "\n" << messages(asked);
        std::string cures = fix_of(told[0], Language::english);
        while (!cures.empty()) {
          const std::size_t end = cures.find("; ");
          const std::string cure = cures.substr(0, end);
          cures.erase(0, end == std::string::npos ? cures.size() : end + 2);
          if (cure.find(": ") == std::string::npos) continue;  // nothing fits
          Question changed = files.question;
          changed.changes = changes_in(cure);
          const Diagnosis after = diagnose(changed, need_of);
          EXPECT_TRUE(found(after, id).empty()) << zero << " " << free_gib << ": " << cure << "\n"
                                                << messages(after);
          EXPECT_EQ(exit_code_of(after, engine), 0) << cure << messages(after);
          ++taken;
        }
      }
    }
  EXPECT_GE(taken, 20);
}

TEST(Answers, ToABrokenHeadOfATiedModelAreOfTheHead) {
  const Shape tiny = {256, 64, 2, 128, 4, 2, 0, false, true};
  Files files;
  files.question.paths.push_back(files.at("model"));
  test::write_text(files.at("model") / "config.json", model_json(tiny));
  const std::string header = R"({"lm_head.weight":{"dtype":"","shape":[],"data_offsets":[0,0]}})";
  std::string content(8, '\0');
  content[0] = static_cast<char>(header.size());
  test::write_text(files.at("model") / "model.safetensors", content + header);

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(found(diagnosis, "weights-tied-entry-broken", "lm_head.weight").size(), 1u)
      << messages(diagnosis);
  const std::string text = says(diagnosis, "weights-tied-entry-broken");
  EXPECT_EQ(text.find("download"), std::string::npos) << text;
  EXPECT_NE(text.find("export again without `lm_head.weight`"), std::string::npos) << text;
}

/// An optimizer's memory does not count against one whose size is not known: what is left of it does.
TEST(Answers, OfMicsAreCertainWhereTheLeastIsTooMuch) {
  for (const auto& [gpu_gib, verdict] :
       {std::pair{8, Verdict::fails}, std::pair{180, Verdict::unknown}}) {
    Files files;
    files.write("model.json", model_json(llama_33b));
    files.write(
        "ds_config.json",
        R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": true},
        "zero_optimization": {"stage": 3, "mics_shard_size": 4}})");
    files.write("train.yaml", run_in_full);
    files.write(
        "hardware.json",
        fmt::format(R"({{"gpus_per_node": 8, "gpu_mem_gib": {}, "host_ram_gib": 900}})", gpu_gib));
    const Diagnosis diagnosis = files.diagnose();
    EXPECT_EQ(diagnosis.deepspeed.verdict, verdict) << messages(diagnosis);
    EXPECT_EQ(found(diagnosis, "deepspeed-does-not-fit").size(), verdict == Verdict::fails);
  }
}

TEST(Answers, OfOurHostMemoryAreTheSameInEveryPhase) {
  const auto ask = [](std::string_view run, std::string_view zero) {
    Files files;
    files.write("model.json", model_json(llama_7b));
    files.write(
        "ds_config.json",
        fmt::format(
            R"({{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {{"enabled": true}}, "zero_optimization": {}}})",
            zero));
    files.write("train.yaml", run);
    files.write("hardware.json", R"({"gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 512})");
    return files.diagnose();
  };
  const Diagnosis planned = ask(run_in_full, R"({"stage": 3})");
  EXPECT_NE(
      says(planned, "underkeel-host").find("while loading, in steps, during and after a save"),
      std::string::npos);
  // Of a run that it cannot do yet, without the keys that are in the way.
  const Diagnosis refused =
      ask(run_of_adapters, R"({"stage": 3, "offload_param": {"device": "cpu"}})");
  EXPECT_EQ(refused.underkeel.verdict, Verdict::fails);
  const std::string rest = says(refused, "underkeel-host-without");
  for (const char* part :
       {"without `finetuning_type`, `zero_optimization.offload_param.device`, which are not built "
        "yet, this run would be a full fine-tune at stage 3 without offload: device memory of a "
        "rank ",
        " of 84.8 GB (79.0 GiB), which fits; host memory of a node "})
    EXPECT_NE(rest.find(part), std::string::npos) << rest;
}

}  // namespace
}  // namespace underkeel::doctor
