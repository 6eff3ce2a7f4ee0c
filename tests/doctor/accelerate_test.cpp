// Keys of an accelerate config: right, of a wrong type, in the wrong place.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

using testing::HasSubstr;

Diagnosis of(const std::string& yaml) {
  Files files;
  files.write("accelerate.yaml", yaml);
  return files.diagnose();
}

std::string accelerate_ids(const Diagnosis& diagnosis) {
  std::string ids;
  for (const Finding& finding : diagnosis.findings)
    if (finding.id.starts_with("accelerate-")) ids += finding.id + " " + finding.key + "\n";
  return ids;
}

const std::string head =
    "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 2\n";

TEST(Accelerate, AcceptsWhatItsOwnQuestionsWrite) {
  const Diagnosis diagnosis = of(
      head +
      "debug: false\ndowncast_bf16: 'no'\nenable_cpu_affinity: false\nmachine_rank: 0\n"
      "main_training_function: main\nmixed_precision: bf16\nnum_machines: 1\nrdzv_backend: static\n"
      "same_network: true\ntpu_env: []\ntpu_use_cluster: false\ntpu_use_sudo: false\nuse_cpu: "
      "false\n"
      "deepspeed_config:\n  gradient_accumulation_steps: 4\n  gradient_clipping: 1.0\n"
      "  offload_optimizer_device: none\n  offload_param_device: cpu\n  zero3_init_flag: true\n"
      "  zero3_save_16bit_model: true\n  zero_stage: 3\n  deepspeed_multinode_launcher: "
      "standard\n");

  EXPECT_EQ(accelerate_ids(diagnosis), "");
}

struct Row {
  std::string line;     // behind `head`, indented for deepspeed_config
  std::string finding;  // id and key
  std::string says;
  bool stops = true;
};

TEST(Accelerate, NamesValuesOfAWrongTypeAndKeysInTheWrongPlace) {
  const std::string section = "deepspeed_config:\n";
  const Row rows[] = {
      {"num_machines: two\n", "accelerate-value num_machines", "a whole number from 1 to 1048576"},
      {"num_machines: 0\n", "accelerate-value num_machines", "a whole number from 1"},
      {"machine_rank: 1.5\n", "accelerate-value machine_rank", "a whole number"},
      {"machine_rank: -1\n", "accelerate-value machine_rank", "a whole number from 0 to 1048576"},
      {"main_process_port: 70000\n", "accelerate-value main_process_port",
       "a whole number from 0 to 65535"},
      {"mixed_precision: bfloat16\n", "accelerate-value mixed_precision", "no, fp16, bf16, fp8"},
      {"use_cpu: maybe\n", "accelerate-value use_cpu", "true or false"},
      {"tpu_env: none\n", "accelerate-value tpu_env", "a list"},
      {"deepspeed_config: ds.json\n", "accelerate-value deepspeed_config", "a mapping of keys"},
      {section + "  zero_stage: 4\n", "accelerate-value deepspeed_config.zero_stage", "0, 1, 2, 3"},
      {section + "  offload_param_device: disk\n",
       "accelerate-value deepspeed_config.offload_param_device", "none, cpu, nvme"},
      {section + "  gradient_clipping: much\n",
       "accelerate-value deepspeed_config.gradient_clipping", "a number"},
      {section + "  zero3_init_flag: 7\n", "accelerate-value deepspeed_config.zero3_init_flag",
       "true or false"},
      {"zero_stage: 3\n", "accelerate-key-misplaced zero_stage", "stops with a ValueError"},
      {"deepspeed_config_file: ds.json\n", "accelerate-key-misplaced deepspeed_config_file",
       "it belongs in deepspeed_config"},
      {section + "  mixed_precision: bf16\n",
       "accelerate-key-misplaced deepspeed_config.mixed_precision", "it belongs in the top level",
       false},
      {"num_proceses: 4\n", "accelerate-key-misspelt num_proceses",
       "the nearest key is `num_processes`"},
      {section + "  zero_stages: 3\n", "accelerate-key-misspelt deepspeed_config.zero_stages",
       "passes over it without a word", false},
      {section + "  reduce_bucket_size: 5\n",
       "accelerate-key-unknown deepspeed_config.reduce_bucket_size",
       "passes over it without a word", false},
      {"colour: red\n", "accelerate-key-unknown colour", "stops with a ValueError"},
  };
  for (const Row& row : rows) {
    const Diagnosis diagnosis = of(head + row.line);

    const std::string ids = accelerate_ids(diagnosis);
    EXPECT_EQ(ids, row.finding + "\n") << row.line;
    EXPECT_THAT(messages(diagnosis), HasSubstr(row.says)) << row.line;
    EXPECT_EQ(exit_code_of(diagnosis, Engine::deepspeed), row.stops ? 2 : 0) << row.line;
    EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 0) << row.line;
  }
}

TEST(Accelerate, TakesNoCountOfProcessesThatNoLauncherStarts) {
  for (const char* count : {"0", "-2", "-8", "100000000", "9999999999999999999999", "1.5", "two",
                            "auto", "[8]", "true"}) {
    Files files;
    files.write("accelerate.yaml", fmt::format("compute_environment: LOCAL_MACHINE\n"
                                               "distributed_type: DEEPSPEED\nnum_processes: {}\n",
                                               count));
    files.write("ds_config.json", R"({"zero_optimization": {"stage": 3}})");
    files.write("hardware.yaml", "gpus_per_node: 4\ngpu_mem_gib: 80\nhost_ram_gib: 900\n");

    const Diagnosis diagnosis = files.diagnose();

    const auto wrong = found(diagnosis, "accelerate-value", "num_processes");
    ASSERT_EQ(wrong.size(), 1u) << count << "\n" << messages(diagnosis);
    EXPECT_THAT(message_of(wrong[0], Language::english),
                HasSubstr("a whole number from 1 to 1048576"));
    EXPECT_THAT(message_of(wrong[0], Language::chinese), HasSubstr("整数 从 1 到 1048576"));
    EXPECT_THAT(says(diagnosis, "ranks-counted"), HasSubstr("4 ranks")) << count;
  }
}

TEST(Accelerate, LeavesTheCountOfProcessesToTheLauncher) {
  Files files;
  files.write(
      "accelerate.yaml",
      "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: -1\n");
  files.write("ds_config.json", R"({"zero_optimization": {"stage": 3}})");
  files.write("hardware.yaml", "gpus_per_node: 4\ngpu_mem_gib: 80\nhost_ram_gib: 900\n");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_TRUE(found(diagnosis, "accelerate-value").empty()) << messages(diagnosis);
  EXPECT_THAT(says(diagnosis, "accelerate-processes-left-open"), HasSubstr("--num_processes N"));
  EXPECT_THAT(says(diagnosis, "ranks-counted"), HasSubstr("4 ranks"));

  files.write("train.yaml", "finetuning_type: full\nunderkeel:\n  ranks: 2\n");
  EXPECT_TRUE(found(files.diagnose(), "accelerate-differs-from-run").empty());
}

TEST(Accelerate, RefusesSettingsBesideADeepspeedFile) {
  const Diagnosis diagnosis =
      of(head +
         "deepspeed_config:\n  deepspeed_config_file: ds.json\n  zero3_init_flag: true\n"
         "  zero_stage: 2\n  gradient_clipping: 1.0\n");

  EXPECT_EQ(accelerate_ids(diagnosis), "accelerate-keys-beside-file deepspeed_config.zero_stage\n");
  EXPECT_THAT(messages(diagnosis), HasSubstr("zero_stage, gradient_clipping"));
}

TEST(Accelerate, SaysWhenDeepspeedIsNotUsed) {
  const Diagnosis diagnosis =
      of("compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 2\n"
         "deepspeed_config:\n  zero_stage: 2\n");

  EXPECT_EQ(accelerate_ids(diagnosis), "accelerate-without-deepspeed distributed_type\n");
}

TEST(Accelerate, ItsMachinesAreNodesOfTheMachineThatIsDescribed) {
  Files files;
  files.write("model.json", model_json(llama_7b));
  files.write("train.yaml",
              "stage: sft\ndo_train: true\nfinetuning_type: full\ndataset: data\nbf16: true\n");
  files.write("accelerate.yaml",
              "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_machines: 2\n"
              "num_processes: 8\n");
  files.write("hardware.json", R"({"gpus_per_node": 4, "gpu_mem_gib": 80, "host_ram_gib": 512})");
  files.question.hardware = files.question.paths.back();

  const Diagnosis of_two = files.diagnose();
  EXPECT_TRUE(found(of_two, "more-ranks-than-gpus").empty()) << messages(of_two);
  EXPECT_NE(says(of_two, "ranks-counted").find("8 ranks, 4 on a node"), std::string::npos)
      << messages(of_two);

  files.question.ranks = 1000000;  // answered at once, with as many on a node as it can take
  const Diagnosis of_many = files.diagnose();
  EXPECT_NE(says(of_many, "ranks-counted").find("1000000 ranks, 4 on a node"), std::string::npos)
      << messages(of_many);
  EXPECT_FALSE(found(of_many, "more-ranks-than-gpus").empty());
}

TEST(Accelerate, RefusesItsPrecisionBesideADeepspeedFile) {
  const std::string file = "deepspeed_config:\n  deepspeed_config_file: ds.json\n";
  for (const char* mode : {"bf16", "'no'", "no"})
    EXPECT_THAT(
        says(of(head + file + "mixed_precision: " + mode + "\n"), "accelerate-keys-beside-file"),
        HasSubstr("ValueError: mixed_precision"))
        << mode;
  for (const char* more : {"", "mixed_precision:\n"})
    EXPECT_TRUE(found(of(head + file + more), "accelerate-keys-beside-file").empty()) << more;
}

TEST(Accelerate, MakesTheConfigOfARunThatNamesNone) {
  const std::string plugin =
      "mixed_precision: bf16\ndeepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\n"
      "  zero3_save_16bit_model: true\n";
  const std::string run =
      "stage: sft\nfinetuning_type: full\nbf16: true\nper_device_train_batch_size: 1\n"
      "gradient_accumulation_steps: 2\n";
  const auto ask = [&](const std::string& accelerate, const std::string& config,
                       const std::string& yaml) {
    Files files;
    files.write("model.json", model_json(llama_8b));
    files.write("hardware.json", R"({"gpus_per_node": 2, "gpu_mem_gib": 80, "host_ram_gib": 512})");
    if (!accelerate.empty()) files.write("accelerate.yaml", accelerate);
    if (!config.empty()) files.write("ds_config.json", config);
    if (!yaml.empty()) files.write("train.yaml", yaml);
    return files.diagnose();
  };
  const std::string config =
      R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
          "gradient_accumulation_steps": "auto", "bf16": {"enabled": true}, "zero_optimization":
          {"stage": 3, "offload_optimizer": {"device": "cpu"},
           "stage3_gather_16bit_weights_on_model_save": true}})";

  const Diagnosis made = ask(head + plugin, "", run);
  const Diagnosis given = ask("", config, run);
  EXPECT_THAT(says(made, "accelerate-makes-the-config"),
              HasSubstr("stage 3, optimizer on cpu, parameters on none"));
  EXPECT_TRUE(found(made, "no-deepspeed-config").empty());
  EXPECT_TRUE(found(made, "accelerate-differs").empty()) << messages(made);
  EXPECT_EQ(made.deepspeed.verdict, given.deepspeed.verdict) << messages(made);
  EXPECT_EQ(says(made, "deepspeed-fits"), says(given, "deepspeed-fits"));

  // A question by itself, too.
  const Diagnosis alone = ask(head + plugin, "", "");
  EXPECT_TRUE(alone.is_of_run);
  EXPECT_EQ(alone.deepspeed.verdict, Verdict::runs) << messages(alone);

  // What the Trainer compares is compared, and what is no setting stops.
  EXPECT_EQ(found(ask(head + plugin + "  gradient_accumulation_steps: 4\n", "", run),
                  "accumulation-differs")
                .size(),
            1u);
  EXPECT_TRUE(found(ask("compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\n"
                        "num_processes: 2\n" +
                            plugin,
                        "", run),
                    "accelerate-makes-the-config")
                  .empty());
}

}  // namespace
}  // namespace underkeel::doctor
