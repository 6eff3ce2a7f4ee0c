// Advice that changes what a run has: answered for what there then is, and never for what there is already.

#include <gtest/gtest.h>

#include "doctor/advice_numbers.h"
#include "doctor/advice_rules.h"
#include "doctor/deepspeed_memory.h"
#include "doctor/sayings.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

struct Beside {
  std::string_view method = "full";
  std::string_view zero = R"("stage": 2)";
  std::string_view type = "bf16";
};

/// Beside a run of Llama-2-7B on 4 cards.
Diagnosis diagnosis_beside(const Beside& run, std::string_view says) {
  Files files;
  files.write("answer.txt", says);
  files.write("model.json", model_json(llama_7b));
  files.write("train.yaml",
              fmt::format("stage: sft\nfinetuning_type: {}\n{}: true\ncutoff_len: 2048\n"
                          "per_device_train_batch_size: 1\ndeepspeed: ds_config.json\n",
                          run.method, run.type));
  files.write("ds_config.json", fmt::format(R"({{"train_micro_batch_size_per_gpu": "auto",
    "{}": {{"enabled": true}}, "zero_optimization": {{{}}}}})",
                                            run.type, run.zero));
  files.write("hardware.json", R"({"gpus_per_node": 4, "gpu_mem_gib": 80, "host_ram_gib": 900})");
  return files.diagnose();
}

struct Answered {
  const char* says;
  const char* id;
  std::vector<const char*> parts;
};

void expect_answers(const Beside& run, const std::vector<Answered>& answers) {
  for (const Answered& each : answers) {
    const Diagnosis diagnosis = diagnosis_beside(run, each.says);

    const std::string answer = answer_to({each.id, each.says, ""}, diagnosis);

    for (const char* part : each.parts)
      EXPECT_NE(answer.find(part), std::string::npos) << each.says << ": " << part << "\n"
                                                      << answer;
  }
}

TEST(AdviceOnAdapters, IsOnTheMethodWhereAllWeightsAreTrained) {
  for (const char* says : {"Use LoRA.", "Train with LoRA rank 8.", "Set lora_rank to 8.",
                           "Use LoRA with r=8.", "把 LoRA rank 降到 8"}) {
    const Diagnosis diagnosis = diagnosis_beside({}, says);
    const std::string answer = answer_to({"advice-lora-instead", says, ""}, diagnosis);
    EXPECT_TRUE(answer.starts_with("true")) << says << answer;
    EXPECT_NE(answer.find("LoRA of rank 8 on all layers takes 14.6 GB"), std::string::npos)
        << says << answer;
    EXPECT_TRUE(found(diagnosis, "advice-lora-rank").empty()) << says;
  }
  expect_answers({}, {{"Use LoRA with rank 64 on all linear layers.",
                       "advice-lora-instead",
                       {"true", "rank 64", "15.4 GB"}}});
}

TEST(AdviceOnAdapters, IsOnTheRankWhereAdaptersAreTrained) {
  for (const double rank : {4.0, 64.0}) {
    RunFacts run;
    run.lora_rank = static_cast<std::int64_t>(rank);
    const spec::ModelSpec model = default_model();
    const std::string adapters = amount(16 * sizes_of(model, run).trainable);
    for (const std::string& says : {fmt::format("Use LoRA with rank {:.0f}.", rank),
                                    fmt::format("Set lora_rank to {:.0f}.", rank)}) {
      const Diagnosis diagnosis = diagnosis_beside({.method = "lora"}, says);
      const std::string answer = answer_to({"advice-lora-rank", says.c_str(), ""}, diagnosis);
      EXPECT_NE(answer.find(fmt::format("{} at rank {:.0f}", adapters, rank)), std::string::npos)
          << says << answer;
      EXPECT_TRUE(found(diagnosis, "advice-lora-instead").empty()) << says;
    }
  }
}

TEST(AdviceOnGpus, CountsThoseThatAreAddedOnTopOfThoseThatThereAre) {
  for (const char* says :
       {"Use 8 GPUs.", "Use 4 more GPUs.", "Add 4 GPUs.", "Add four cards.", "Use 4 extra GPUs.",
        "Double the number of GPUs.", "Use twice as many cards.", "Use 2x as many GPUs.",
        "再加4张卡", "显卡加倍", "用两倍的显卡", "加到8张卡", "Increase the number of GPUs to 8."})
    expect_answers(
        {}, {{says, "advice-more-gpus", {"true", "47.3 GB", "on 4 ranks and 30.4 GB on 8"}}});
  expect_answers({}, {{"Add another GPU.", "advice-more-gpus", {"on 4 ranks", "on 5"}},
                      {"Use 4 or more GPUs.", "advice-more-gpus", {"on 4 ranks and", "on 4;"}}});
}

TEST(AdviceOnHalfPrecision, SavesNothingFromOneHalfToTheOther) {
  for (const char* type : {"bf16", "fp16"})
    for (const char* says : {"Use fp16 instead of bf16.", "Switch from fp16 to bf16.",
                             "用 fp16 代替 bf16", "bf16 needs less memory than fp16."}) {
      const Diagnosis diagnosis = diagnosis_beside({.type = type}, says);
      const std::string answer = answer_to({"advice-half-for-half", says, ""}, diagnosis);
      EXPECT_TRUE(answer.starts_with("false: fp16 and bf16 both take 2 bytes")) << answer;
      EXPECT_NE(answer.find(fmt::format("the run trains in {}", type)), std::string::npos)
          << answer;
      EXPECT_TRUE(found(diagnosis, "advice-16-bit").empty()) << says;
    }
}

TEST(AdviceOnCheckpoints, IsOfTheDiskAndOfNoMemory) {
  for (const char* says : {"save_total_limit 2 avoids running out of memory after a save.",
                           "Set save_total_limit to 2.", "save_total_limit 设为 2"})
    expect_answers(
        {}, {{says,
              "advice-fewer-checkpoints",
              {"false: ", "the disk alone", "107.8 GB", "at most 323.4 GB", "limit now: none"}}});
}

TEST(AdviceOnOffload, SaysWhereItIsOnAlready) {
  constexpr std::string_view offloaded = R"("stage": 2, "offload_optimizer": {"device": "cpu"})";
  for (const char* key :
       {"zero_force_opt_offload", "zero_force_ds_cpu_offload", "zero_offload_optimizer"}) {
    const std::string says = fmt::format("{} must be true.", key);
    const auto message = [&](std::string_view zero) {
      return messages(diagnosis_beside({.zero = zero}, says));
    };
    EXPECT_NE(message(offloaded).find("offload_optimizer is on already"), std::string::npos) << key;
    EXPECT_EQ(message(R"("stage": 2)").find("is on already"), std::string::npos) << key;
    EXPECT_NE(message(R"("stage": 2)").find("takes off each card"), std::string::npos) << key;
  }
}

TEST(AdviceOnOffload, OfTheOptimizerToADiskIsOfTheOptimizerAlone) {
  constexpr std::string_view zero = R"("stage": 3)";
  for (const char* says : {"Enable NVMe offload for the optimizer.", "把优化器卸载到 NVMe"}) {
    const Diagnosis diagnosis = diagnosis_beside({.zero = zero}, says);
    // Master, two moments and a gradient of four bytes each.
    EXPECT_NE(answer_to({"advice-optimizer-on-nvme", says, ""}, diagnosis)
                  .find(fmt::format("takes {}", amount(16 * sizes_of(default_model()).total()))),
              std::string::npos)
        << messages(diagnosis);
    EXPECT_TRUE(found(diagnosis, "advice-offload-nvme").empty()) << says;
  }
  EXPECT_EQ(found(diagnosis_beside({.zero = zero}, "Offload optimizer and parameters to NVMe."),
                  "advice-offload-nvme")
                .size(),
            1u);
}

/// Of a sentence, what it sets and what is held then, as a case that is made so.
struct KeyCase {
  const char* says;
  const char* setting;
  std::string zero;  // of a config that has it
};

TEST(AdviceOnAnyKey, IsAnsweredWithTheRunThatHasTheValue) {
  const std::string stage3 = R"("stage": 3)";
  const KeyCase cases[] = {
      {"Set reduce_bucket_size to 1e8", "zero_optimization.reduce_bucket_size=100000000",
       R"("stage": 3, "reduce_bucket_size": 100000000)"},
      {"Set sub_group_size to 1e8.", "zero_optimization.sub_group_size=100000000",
       R"("stage": 3, "sub_group_size": 100000000)"},
      {"Change reduce_bucket_size from 5e8 to 2e8.",
       "zero_optimization.reduce_bucket_size=200000000",
       R"("stage": 3, "reduce_bucket_size": 200000000)"},
      {"把 stage3_param_persistence_threshold 设成 0",
       "zero_optimization.stage3_param_persistence_threshold=0",
       R"("stage": 3, "stage3_param_persistence_threshold": 0)"},
      {"Set contiguous_gradients to false to save memory.",
       "zero_optimization.contiguous_gradients=false",
       R"("stage": 3, "contiguous_gradients": false)"},
      {"Set allgather_bucket_size to 2e8.", "zero_optimization.allgather_bucket_size=200000000",
       stage3},
  };
  for (const KeyCase& each : cases) {
    const std::string answer =
        answer_to({"advice-set-key", each.says, ""}, diagnosis_beside({.zero = stage3}, each.says));
    const std::string then = answer_to({"advice-set-key", each.says, ""},
                                       diagnosis_beside({.zero = each.zero}, each.says));

    // Where the config has it already nothing changes, and that is what the run without it comes to.
    const auto between = [](const std::string& text, std::string_view from, std::string_view to) {
      const std::size_t at = text.find(from);
      if (at == std::string::npos) return text;
      const std::size_t begin = at + from.size();
      return text.substr(begin, text.find(to, begin) - begin);
    };
    EXPECT_NE(answer.find(each.setting), std::string::npos) << answer;
    EXPECT_TRUE(then.starts_with("false")) << then;
    EXPECT_EQ(between(answer, "a GPU needs ", ","), between(then, "as it is ", ";"))
        << answer << then;
  }
}

TEST(AdviceOnAnyKey, SaysWhetherItSaves) {
  const std::string stage2 = R"("stage": 2)";
  const auto answer = [&](const char* says) {
    return answer_to({"advice-set-key", says, ""}, diagnosis_beside({.zero = stage2}, says));
  };
  // With the optimizer on the host loading holds the most, which no bucket changes; what stays is less.
  constexpr std::string_view offloaded = R"("stage": 2, "offload_optimizer": {"device": "cpu"})";
  constexpr const char* smaller = "Set reduce_bucket_size to 1e8";
  const Diagnosis diagnosis = diagnosis_beside({.zero = offloaded}, smaller);
  EXPECT_TRUE(answer_to({"advice-set-key", smaller, ""}, diagnosis).starts_with("half true"))
      << messages(diagnosis);
  EXPECT_TRUE(found(diagnosis, "advice-not-recognised").empty());
  EXPECT_TRUE(answer("Set sub_group_size to 1e9.").starts_with("false"));
  EXPECT_TRUE(answer("Set sub_group_size to 1e8.").starts_with("false"));
  EXPECT_NE(answer("Set sub_group_size to 1e8.").find("acts at stages 3, the run is at stage 2"),
            std::string::npos);
  EXPECT_TRUE(answer("Don't set reduce_bucket_size to 1e8").starts_with("this speaks against it"));
}

TEST(AdviceOnAnyKey, IsAnsweredWithoutFilesAndWhereItIsRefused) {
  Files bare;
  bare.write("answer.txt", "Set reduce_bucket_size to 1e8");
  EXPECT_EQ(found(bare.diagnose(), "advice-set-key").size(), 1u) << messages(bare.diagnose());

  const Diagnosis refused = diagnosis_beside({}, "Set allgather_bucket_size to 200000001.");
  EXPECT_EQ(found(refused, "advice-set-key-refused").size(), 1u) << messages(refused);
}

TEST(AdviceOnStages, IsAnsweredBesideWhatItPromisesForOneCard) {
  expect_answers({}, {{"Use ZeRO-2 instead of ZeRO-3, it needs less memory on one GPU.",
                       "advice-switch-stage",
                       {"at stage 2"}}});
}

}  // namespace
}  // namespace underkeel::doctor
