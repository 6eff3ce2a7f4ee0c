// The DeepSpeed config beside a run file: meaning, "auto", mismatches, unknown and misplaced keys.

#include "spec/run_files.h"

namespace underkeel::spec {
namespace {

using DeepspeedConfig = RunFiles;

TEST_F(DeepspeedConfig, GivesTheStageAndTheBounds) {
  const auto run = read_with(R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
    "overlap_comm": false, "reduce_bucket_size": 5e8, "allgather_bucket_size": 1000,
    "stage3_prefetch_bucket_size": 0, "stage3_param_persistence_threshold": 100000,
    "stage3_model_persistence_threshold": 7, "stage3_max_live_parameters": 1000000000,
    "max_reuse_distance": 3, "stage3_gather_16bit_weights_on_model_save": true}})",
                             "bf16: true\n");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_TRUE(run->has_deepspeed);
  EXPECT_EQ(run->zero.stage, 3);
  EXPECT_FALSE(run->zero.overlap_comm);
  EXPECT_EQ(run->zero.reduce_bucket_elements, 500'000'000);
  EXPECT_EQ(run->zero.allgather_bucket_elements, 1000);
  EXPECT_EQ(run->zero.prefetch_bucket_elements, 0);
  EXPECT_EQ(run->zero.param_persistence_elements, 100'000);
  EXPECT_EQ(run->zero.model_persistence_elements, 7);
  EXPECT_EQ(run->zero.max_live_elements, 1'000'000'000);
  EXPECT_EQ(run->zero.max_reuse_distance_elements, 3);
  EXPECT_TRUE(run->zero.gather_weights_on_save);
  EXPECT_EQ(source_of_key(*run, "deepspeed.zero_optimization.stage"), "3 from ds_config.json");
}

TEST_F(DeepspeedConfig, LeavesToThePlannerWhatIsAutoOrAbsent) {
  const auto run = read_with(R"({"train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto", "zero_allow_untested_optimizer": true,
    "fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000,
             "initial_scale_power": 16, "hysteresis": 2, "min_loss_scale": 1},
    "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 3, "overlap_comm": false, "contiguous_gradients": true,
      "sub_group_size": 1e9, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
      "stage3_param_persistence_threshold": "auto", "stage3_max_live_parameters": 1e9,
      "stage3_max_reuse_distance": 1e9, "stage3_gather_16bit_weights_on_model_save": true}})",
                             "bf16: true\n");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_FALSE(run->zero.reduce_bucket_elements.has_value());
  EXPECT_FALSE(run->zero.prefetch_bucket_elements.has_value());
  EXPECT_FALSE(run->zero.param_persistence_elements.has_value());
  EXPECT_EQ(run->zero.max_live_elements, 1'000'000'000);
  EXPECT_EQ(run->precision, Precision::bf16);
  EXPECT_TRUE(has_note(*run, "zero_optimization.contiguous_gradients"));
}

TEST_F(DeepspeedConfig, IsReadInlineToo) {
  const auto run = read(minimal("deepspeed: {zero_optimization: {stage: 2}}\n"));

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->zero.stage, 2);
  EXPECT_EQ(source_of_key(*run, "deepspeed.zero_optimization.stage"), "2 from train.yaml");
}

TEST_F(DeepspeedConfig, CanBeOverriddenOnTheCommandLineAlthoughItIsAFile) {
  const auto run = read_with(R"({"zero_optimization": {"stage": 1, "reduce_bucket_size": 9}})", "",
                             std::nullopt, {"deepspeed.zero_optimization.stage=3"});

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->zero.stage, 3);
  EXPECT_EQ(run->zero.reduce_bucket_elements, 9);
}

TEST_F(DeepspeedConfig, SetsTheTypeInWhichGradientsAccumulate) {
  EXPECT_EQ(read_with("{}", "bf16: true\n")->gradient_accumulation_type, DType::bf16);
  EXPECT_EQ(read_with("{}")->gradient_accumulation_type, DType::f32);
  EXPECT_EQ(read_with(R"({"data_types": {"grad_accum_dtype": "fp32"}})", "bf16: true\n")
                ->gradient_accumulation_type,
            DType::f32);
  EXPECT_NE(text_of(read_with(R"({"data_types": {"grad_accum_dtype": "fp16"}})", "bf16: true\n"))
                .find("bf16 gradients cannot accumulate in f16"),
            std::string::npos);
}

TEST_F(DeepspeedConfig, TakesStageTwoForAutoAsAccelerateDoes) {
  const auto run = read_with(R"({"zero_optimization": {"stage": "auto"}})");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->zero.stage, 2);
  EXPECT_TRUE(has_note(*run, "\"auto\" is stage 2"));
}

TEST_F(DeepspeedConfig, TakesABareTruthValueForTheOldSpellingOfStageOne) {
  const auto run = read_with(R"({"zero_optimization": true})");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->zero.stage, 1);
}

TEST_F(DeepspeedConfig, ExportsWeightsUnlessTheFlagIsExplicitlyFalseAndSaysSo) {
  const auto absent = read_with(R"({"zero_optimization": {"stage": 3}})");
  EXPECT_TRUE(absent->zero.gather_weights_on_save);
  EXPECT_TRUE(has_note(*absent, "checkpoints hold whole weights here, streamed"));
  const auto off = read_with(
      R"({"zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": false}})");
  EXPECT_FALSE(off->zero.gather_weights_on_save);
  EXPECT_TRUE(has_note(*off, "sharded, resumable state and no weights file"));
  const auto below = read_with(
      R"({"zero_optimization": {"stage": 2, "stage3_gather_16bit_weights_on_model_save": false}})");
  EXPECT_TRUE(below->zero.gather_weights_on_save);
  EXPECT_TRUE(has_note(*below, "false has no effect below stage 3"));
}

TEST_F(DeepspeedConfig, HoldsTheRunFilesClippingWhenItHasNone) {
  const auto run = read_with("{}", "max_grad_norm: 0.3\n");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->optimizer.max_grad_norm, 0.3);
  EXPECT_TRUE(has_note(*run, "ds_config.json has no gradient_clipping: max_grad_norm 0.3 holds"));
}

// A block of offload stands outside the ZeRO section; keys are misspelt; bf16 has a loss scale.
TEST_F(DeepspeedConfig, RefusesMisplacedKeysNamingTheirHome) {
  const std::string text = text_of(read_with(R"({
    "zero_optimization": {"stage": 2, "gradient_clipping": 1.0},
    "offload_optimizer": {"device": "cpu", "pin_memory": true}
  })"));

  EXPECT_NE(text.find("ds_config.json: offload_optimizer (line 3): unknown key "
                      "`offload_optimizer`; it belongs in zero_optimization; DeepSpeed passes over "
                      "it here without a word"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("ds_config.json: zero_optimization.gradient_clipping (line 2): unknown key "
                      "`gradient_clipping`; it belongs at the top level"),
            std::string::npos)
      << text;
}

TEST_F(DeepspeedConfig, NamesTheNearestKeyOfEveryMisspeltOne) {
  const std::string text = text_of(read_with(R"({
    "gradient_cliping": 1.0,
    "zero_optimisation": {"stage": 2},
    "zero_optimization": {"stage ": 3}
  })"));

  EXPECT_NE(text.find("unknown key `gradient_cliping`; the nearest is `gradient_clipping`; "
                      "DeepSpeed passes over unknown keys here without a word"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("unknown key `zero_optimisation`; the nearest is `zero_optimization`"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("zero_optimization.stage  (line 4): unknown key `stage `; the nearest is "
                      "`stage`"),
            std::string::npos)
      << text;
}

TEST_F(DeepspeedConfig, SaysThatBf16HasNoLossScale) {
  const std::string text = text_of(
      read_with(R"({"bf16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16}})",
                "bf16: true\n"));

  EXPECT_NE(text.find("bf16.loss_scale (line 1): bf16 has no loss scale"), std::string::npos)
      << text;
  EXPECT_NE(text.find("bf16.initial_scale_power (line 1): bf16 has no loss scale"),
            std::string::npos)
      << text;
}

TEST_F(DeepspeedConfig, GivesTheLossScaleOfFp16) {
  const auto run =
      read_with(R"({"fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 12,
    "loss_scale_window": 50, "hysteresis": 3, "consecutive_hysteresis": true, "min_loss_scale": 2}})",
                "fp16: true\n");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->precision, Precision::f16);
  EXPECT_EQ(run->loss_scale.fixed, 0);
  EXPECT_EQ(run->loss_scale.initial_power, 12);
  EXPECT_EQ(run->loss_scale.window, 50);
  EXPECT_EQ(run->loss_scale.hysteresis, 3);
  EXPECT_TRUE(run->loss_scale.refills_hysteresis);
  EXPECT_EQ(run->loss_scale.least, 2);
  EXPECT_EQ(export_type(*run), DType::f16);
  EXPECT_EQ(source_of_key(*run, "deepspeed.fp16.initial_scale_power"), "12 from ds_config.json");
  EXPECT_EQ(read_with(R"({"fp16": {"enabled": "auto", "loss_scale": 128}})", "fp16: true\n")
                ->loss_scale.fixed,
            128);
}

TEST_F(DeepspeedConfig, TrainsWithoutMastersWhenBothFilesSaySo) {
  const auto run = read_with(R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true,
    "bf16_optimizer_states": true}})",
                             "pure_bf16: true\n");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->precision, Precision::pure_bf16);
  EXPECT_EQ(run->gradient_accumulation_type, DType::bf16);
  EXPECT_EQ(export_type(*run), DType::bf16);
  const std::string text = text_of(
      read_with(R"({"bf16": {"enabled": true, "bf16_optimizer_states": true}})", "bf16: true\n"));
  EXPECT_NE(text.find("write pure_bf16: true"), std::string::npos) << text;
}

TEST_F(DeepspeedConfig, HoldsTheLossScaleAgainstItsBounds) {
  for (const auto& [key, fix] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"("loss_scale": true)", "fp16.loss_scale"},
           {R"("loss_scale": -1)", "fp16.loss_scale"},
           {R"("loss_scale_window": 0)", "fp16.loss_scale_window"},
           {R"("hysteresis": 0)", "fp16.hysteresis"},
           {R"("initial_scale_power": 127)", "fp16.initial_scale_power"},
           {R"("min_loss_scale": 0)", "fp16.min_loss_scale"},
           {R"("loss_scal": 0)", "the nearest is `loss_scale`"},
           {R"("fp16_master_weights_and_grads": true)", "without f32 master weights"}}) {
    const std::string text = text_of(
        read_with(std::string(R"({"fp16": {"enabled": true, )") + key + "}}", "fp16: true\n"));
    EXPECT_NE(text.find(fix), std::string::npos) << key << ": " << text;
  }
}

TEST_F(DeepspeedConfig, RecognisesTheOldSpellingOfOffload) {
  const std::string text =
      text_of(read_with(R"({"zero_optimization": {"stage": 2, "cpu_offload": true}})"));

  EXPECT_NE(text.find("this is the old spelling of offload_optimizer: {\"device\": \"cpu\"}; "
                      "offload is not built yet"),
            std::string::npos)
      << text;
}

// The global batch is fixed in one file, its factors in the other.
TEST_F(DeepspeedConfig, AcceptsABatchThatAddsUp) {
  const auto run = read_with(R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 8})",
                             "per_device_train_batch_size: 8\ngradient_accumulation_steps: 4\n",
                             WorldSize{8, "mpirun"});

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->global_batch_sequences, 256);
  EXPECT_TRUE(check_world_size(*run, {8, "mpirun"}).has_value());
}

TEST_F(DeepspeedConfig, ShowsTheBatchEquationWithTheSourceOfEveryNumber) {
  const auto run = read_with(R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 8})",
                             "per_device_train_batch_size: 8\ngradient_accumulation_steps: 4\n");
  ASSERT_TRUE(run.has_value()) << text_of(run);

  const auto checked = check_world_size(*run, {2, "mpirun"});

  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().what,
            "256 (ds_config.json) is not per_device_train_batch_size 8 (train.yaml) x "
            "gradient_accumulation_steps 4 (train.yaml) x ranks 2 (mpirun) = 64");
  EXPECT_EQ(checked.error().fix, "gradient_accumulation_steps: 16 makes 256");
}

TEST_F(DeepspeedConfig, ShowsBothEquationsWhenAccumulationDiffers) {
  const std::string text = text_of(read_with(
      R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 8,
                    "gradient_accumulation_steps": 1})",
      "per_device_train_batch_size: 8\ngradient_accumulation_steps: 4\n", WorldSize{8, "mpirun"}));

  EXPECT_NE(text.find("1 in ds_config.json, while gradient_accumulation_steps is 4 (train.yaml); "
                      "on 8 ranks (mpirun) the one gives 8 x 1 x 8 = 64, the other 8 x 4 x 8 = "
                      "256"),
            std::string::npos)
      << text;
}

// Numbers and truth values in quotes.
TEST_F(DeepspeedConfig, TakesQuotedNumbersForWhatTheySpellAndSaysSo) {
  const auto run = read_with(R"({"gradient_accumulation_steps": "8", "bf16": {"enabled": "true"},
    "zero_optimization": {"stage": 2, "reduce_bucket_size": "5e8"}})",
                             "bf16: true\ngradient_accumulation_steps: 8\n");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->zero.reduce_bucket_elements, 500'000'000);
  EXPECT_TRUE(has_note(*run,
                       "gradient_accumulation_steps (line 1): \"8\" in quotes is taken as "
                       "the number that it spells"));
  EXPECT_TRUE(has_note(*run, "bf16.enabled (line 1): \"true\" in quotes is taken as true"));
  EXPECT_TRUE(has_note(*run, "\"5e8\" in quotes"));
}

TEST_F(DeepspeedConfig, AcceptsATrailingCommaNamingItsPlace) {
  const auto run = read_with(
      "{\n  \"train_micro_batch_size_per_gpu\": 4,\n"
      "  \"gradient_accumulation_steps\": 8,\n"
      "  \"bf16\": {\"enabled\": true},\n"
      "  \"zero_optimization\": {\"stage\": 2},\n}\n",
      "bf16: true\nper_device_train_batch_size: 4\n"
      "gradient_accumulation_steps: 8\n");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_TRUE(has_note(*run,
                       "ds_config.json, line 5, column 36: a comma before `}`: DeepSpeed "
                       "reads this, the strict JSON loader behind the Hugging Face Trainer "
                       "refuses the file"));
}

// A recipe whose two files disagree in four places.
TEST_F(DeepspeedConfig, ListsEveryMismatchWithBothValuesAndBothFiles) {
  const std::string text = text_of(read_with(R"({"train_batch_size": 8,
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.0001,
      "warmup_num_steps": 500}}, "zero_optimization": {"stage": 2}})",
                                             "per_device_train_batch_size: 2\n"
                                             "gradient_accumulation_steps: 8\n"
                                             "learning_rate: 5.0e-5\nwarmup_steps: 0\n",
                                             WorldSize{8, "--ranks"}));

  for (const char* line :
       {"optimizer.params.lr (line 3): 0.0001 in ds_config.json, while learning_rate is 5e-05 "
        "(train.yaml)",
        "scheduler.params.warmup_max_lr (line 4): 0.0001 in ds_config.json, while learning_rate "
        "is 5e-05 (train.yaml)",
        "scheduler.params.warmup_num_steps (line 5): 500 in ds_config.json, while warmup_steps is "
        "0 (train.yaml)",
        "deepspeed.train_batch_size: 8 (ds_config.json) is not per_device_train_batch_size 2 "
        "(train.yaml) x gradient_accumulation_steps 8 (train.yaml) x ranks 8 (--ranks) = 128"})
    EXPECT_NE(text.find(line), std::string::npos) << text << "\nwanted: " << line;
}

TEST_F(DeepspeedConfig, TakesAutoInTheOptimizerForTheRunFilesValues) {
  const auto run = read_with(R"({"optimizer": {"type": "AdamW", "params": {"lr": "auto",
    "betas": "auto", "eps": "auto", "weight_decay": "auto"}}})",
                             "learning_rate: 3e-4\nadam_beta2: 0.95\nweight_decay: 0.1\n");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->optimizer.learning_rate, 3e-4);
}

struct ConfigRefusal {
  std::string json;
  std::string message;
};

TEST_F(DeepspeedConfig, RefusesByNameWhatItCannotHonour) {
  const auto zero = [](const std::string& content) {
    return R"({"zero_optimization": {"stage": 3, )" + content + "}}";
  };
  const std::vector<ConfigRefusal> refusals = {
      {"[1]", "a JSON object is wanted"},
      {"{\"a\": }", "not valid JSON: `}` where a value is due"},
      {R"({"bf16": {}, "bf16": {}})", "key `bf16` is given twice"},
      {R"({"zero_optimization": 3})", "a mapping is wanted, 3 was found"},
      {R"({"zero_optimization": {"stage": 4}})", "4 is out of range: 0 to 3 is wanted"},
      {R"({"zero_optimization": {"stage": "2.5"}})", "a whole number is wanted"},
      {zero(R"("stage3_prefetch_bucket_size": 15099494.4)"),
       "a whole number is wanted, a number 15099494.4 was found"},
      {zero(R"("reduce_bucket_size": -1)"), "-1 is out of range: at least 0 is wanted"},
      {zero(R"("prefetch_bucket_size": 1, "stage3_prefetch_bucket_size": 2)"),
       "are two names of one key"},
      {zero(R"("gather_16bit_weights_on_model_save": true,
               "stage3_gather_fp16_weights_on_model_save": true)"),
       "are two names of one key"},
      {zero(R"("offload_optimizer": {"device": "cpu"})"),
       "offload_optimizer to cpu: offload is not built yet"},
      {zero(R"("offload_param": {"device": "nvme", "nvme_path": "/x"})"),
       "offload_param to nvme: offload is not built yet"},
      {zero(R"("offload_param": {"device": "gpu"})"), "`gpu` is no device for offload"},
      {zero(R"("offload_optimizer": {"devcie": "cpu"})"), "the nearest is `device`"},
      {zero(R"("zero_quantized_weights": true)"), "quantised collectives are not supported"},
      {zero(R"("zero_hpz_partition_size": 8)"), "a second shard per node is not supported"},
      {zero(R"("grad_hooks": true)"), "unknown key `grad_hooks`"},
      {zero(R"("zero_force_ds_cpu_optimizer": false)"), "it belongs at the top level"},
      {R"({"bf16": {"enabled": true}})", "true in ds_config.json, while bf16 is false (default)"},
      {R"({"fp16": {"enabled": true}})", "true in ds_config.json, while fp16 is false (default)"},
      {R"({"bf16": {}, "bfloat16": {}})", "`bf16` and `bfloat16` are two names of one section"},
      {R"({"loss_scale": 0})", "it belongs in fp16"},
      {R"({"gradient_clipping": 0.5})",
       "0.5 in ds_config.json, while max_grad_norm is 1 (default)"},
      {R"({"train_micro_batch_size_per_gpu": 4})",
       "4 in ds_config.json, while per_device_train_batch_size is 8 (default)"},
      {R"({"train_batch_size": 0})", "0 is out of range"},
      {R"({"optimizer": {"type": "Lamb"}})", "optimizer `Lamb` is not supported"},
      {R"({"optimizer": {"type": "AdamW"}})",
       "0.001 by default in ds_config.json, while learning_rate is 5e-05 (default)"},
      {R"({"optimizer": {"params": {"lr": "auto"}}})", "the key is missing"},
      {R"({"optimizer": {"type": "Adam", "params": {"lr": "auto", "adam_w_mode": false}}})",
       "weight decay as an L2 penalty is not supported"},
      {R"({"optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": [0.9, 0.95]}}})",
       "[0.9, 0.95] in ds_config.json, while adam_beta1 and adam_beta2 are 0.9 (default)"},
      {R"({"optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": 0.9}}})",
       "two numbers are wanted, 0.9 was found"},
      {R"({"optimizer": {"type": "AdamW", "params": {"lr": "auto", "max_grad_norm": 1}}})",
       "use gradient_clipping"},
      {R"({"optimizer": {"type": "AdamW", "params": {"lr": "auto", "momentum": 1}}})",
       "unknown key `momentum`"},
      {R"({"communication_data_type": "int8"})", "unknown element type `int8`"},
      {R"({"elasticity": {"enabled": true}})", "`elasticity` is not supported"},
      {R"({"compression_training": {"weight_quantization": {}}})",
       "`compression_training` is not supported"},
      {R"({"gradient_predivide_factor": 2.0})", "gradients are averaged after the sum"},
      {R"({"data_types": {"param_dtype": "bf16"}})", "bf16 is not the run's f32"},
  };
  for (const ConfigRefusal& refusal : refusals) {
    const std::string text = text_of(read_with(refusal.json));
    EXPECT_NE(text.find(refusal.message), std::string::npos)
        << refusal.json << "\n"
        << text << "\nwanted: " << refusal.message;
  }
}

TEST_F(DeepspeedConfig, PassesOverParameterOffloadBelowStageThreeAsDeepspeedDoesAndSaysSo) {
  const auto run =
      read_with(R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_TRUE(has_note(*run, "offload_param has no effect below stage 3"));
}

TEST_F(DeepspeedConfig, AcceptsSectionsThatAreSwitchedOff) {
  EXPECT_EQ(text_of(read_with(R"({"elasticity": {"enabled": false}, "amp": {"enabled": false},
    "wall_clock_breakdown": false, "steps_per_print": 10, "zero_optimization": {"stage": 1,
    "offload_optimizer": {"device": "none", "pin_memory": true}},
    "activation_checkpointing": {"partition_activations": false}})")),
            "accepted");
}

}  // namespace
}  // namespace underkeel::spec
