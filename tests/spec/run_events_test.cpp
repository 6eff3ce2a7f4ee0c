// When a run logs, saves and evaluates, what it keeps of it, and whom it tells.

#include "spec/run_files.h"

namespace underkeel::spec {
namespace {

using RunEvents = RunFiles;

TEST_F(RunEvents, ReadsWhatTheTrainerDoesWithEvaluations) {
  const auto run = read(minimal(R"(
logging_strategy: epoch
val_size: 0.1
eval_strategy: steps
eval_steps: 10
save_steps: 20
eval_on_start: true
eval_delay: 5
load_best_model_at_end: true
metric_for_best_model: eval_loss
early_stopping_steps: 3
)"));

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->logging, Cadence::epoch);
  EXPECT_TRUE(run->evaluation.on_start);
  EXPECT_EQ(run->evaluation.delay, 5.0);
  EXPECT_TRUE(run->evaluation.tracks_best);
  EXPECT_TRUE(run->evaluation.loads_best_at_end);
  EXPECT_FALSE(run->evaluation.larger_is_better);
  EXPECT_EQ(run->evaluation.early_stopping_steps, 3);
}

TEST_F(RunEvents, SavesTheBestModelOnlyWhenAsked) {
  const auto run = read(minimal("save_strategy: best\neval_strategy: epoch\nval_size: 4\n"));

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_EQ(run->save.strategy, Cadence::best);
  EXPECT_TRUE(run->evaluation.tracks_best);
}

TEST_F(RunEvents, RefusesWhatCannotFindTheBestModel) {
  struct Refusal {
    std::string lines;
    std::string message;
  };
  const std::vector<Refusal> refusals = {
      {"load_best_model_at_end: true", "saves and evaluations do not come together"},
      {"load_best_model_at_end: true\nsave_strategy: no", "nothing is evaluated or saved"},
      {"load_best_model_at_end: true\neval_strategy: steps\nval_size: 4\neval_steps: 3\n"
       "save_steps: 10",
       "save_steps is not a multiple of eval_steps"},
      {"load_best_model_at_end: true\neval_strategy: epoch\nval_size: 4",
       "saves and evaluations do not come together"},
      {"save_strategy: best", "nothing is evaluated while training"},
      {"eval_strategy: best\nval_size: 4", "supported are no, steps and epoch"},
      {"early_stopping_steps: 2\neval_strategy: epoch\nval_size: 4",
       "it wants to know which evaluation is better"},
      {"early_stopping_steps: 2\nmetric_for_best_model: loss", "eval_strategy is no"},
      {"metric_for_best_model: accuracy", "`accuracy` is not measured"},
      {"eval_on_start: true", "neither eval_dataset nor val_size is given"}};
  for (const Refusal& refusal : refusals) {
    const std::string text = text_of(read(minimal(refusal.lines + "\nunheard_of: 1\n")));
    EXPECT_NE(text.find(refusal.message), std::string::npos)
        << refusal.lines << "\n"
        << text << "\nwanted: " << refusal.message;
  }
}

TEST_F(RunEvents, WritesForTensorboardAndSaysThatOtherTrackersHearNothing) {
  EXPECT_FALSE(read(minimal())->reports_to_tensorboard);
  EXPECT_FALSE(read(minimal("report_to: none\n"))->reports_to_tensorboard);
  EXPECT_TRUE(read(minimal("report_to: tensorboard\nlogging_dir: logs\n"))->reports_to_tensorboard);
  EXPECT_TRUE(read(minimal("report_to: all\n"))->reports_to_tensorboard);
  const auto both = read(minimal("report_to: [wandb, tensorboard]\nuse_swanlab: true\n"));
  ASSERT_TRUE(both.has_value()) << text_of(both);
  EXPECT_TRUE(both->reports_to_tensorboard);
  EXPECT_TRUE(has_note(*both, "wandb, swanlab will not hear of this run"));
  EXPECT_NE(text_of(read(minimal("report_to: tensorbord\n"))).find("`tensorbord` is no tracker"),
            std::string::npos);
}

TEST_F(RunEvents, NamesConflictsWhateverBecomesOfTheKeys) {
  const std::string text = text_of(
      read(minimal("streaming: true\nmax_samples: 5\nuse_dora: true\n"
                   "predict_with_generate: true\nuse_galore: true\ndeepspeed: {bf16: {}}\n")));

  for (const char* line :
       {"max_samples (line 8): it excludes streaming",
        "streaming (line 7): a stream has no end: max_steps is wanted",
        "use_dora (line 9): it belongs to finetuning_type: lora, not to \"full\"",
        "predict_with_generate (line 10): it belongs to stage: sft, not to \"pt\"",
        "use_galore (line 11): it excludes deepspeed"})
    EXPECT_NE(text.find(line), std::string::npos) << text << "\nwanted: " << line;
}

TEST_F(RunEvents, SavesF32WhereTheTrainerKeepsF32Weights) {
  const auto plain = read(minimal("bf16: true\n"));
  const auto with_deepspeed = read_with(R"({"bf16": {"enabled": true}})", "bf16: true\n");

  EXPECT_EQ(export_type(*plain), DType::f32);
  EXPECT_TRUE(has_note(*plain, "saved weights are f32, as there"));
  EXPECT_EQ(export_type(*with_deepspeed), DType::bf16);
  EXPECT_FALSE(has_note(*with_deepspeed, "saved weights are f32"));
}

TEST_F(RunEvents, GivesAutoItsValueOnceTheWidthIsKnown) {
  auto run = read_with(R"({"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}})");
  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_FALSE(run->zero.reduce_bucket_elements.has_value());

  resolve_auto(*run, 4096);

  EXPECT_EQ(run->zero.reduce_bucket_elements, 16'777'216);
  EXPECT_EQ(run->zero.prefetch_bucket_elements, 15'099'494);
  EXPECT_EQ(run->zero.param_persistence_elements, 40'960);
  EXPECT_EQ(source_of_key(*run, "deepspeed.zero_optimization.reduce_bucket_size"),
            "16777216 from derived: \"auto\" is hidden_size^2");
}

TEST_F(RunEvents, LeavesAutoOfStage3AloneBelowIt) {
  auto run = read_with(R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto"}})");
  ASSERT_TRUE(run.has_value()) << text_of(run);

  resolve_auto(*run, 64);

  EXPECT_EQ(run->zero.reduce_bucket_elements, 4096);
  EXPECT_FALSE(run->zero.prefetch_bucket_elements.has_value());
}

TEST_F(RunEvents, WritesEveryValueWithItsSourceAsJson) {
  const auto run =
      read(minimal("learning_rate: 1e-4\nlr_scheduler_kwargs: {}\n"
                   "underkeel: {device: \"cpu\"}\ndataset_dir: \"a\\\"b\"\n"));

  ASSERT_TRUE(run.has_value()) << text_of(run);
  const std::string json = values_json(*run);
  for (const char* line : {R"("learning_rate": {"value": 0.0001, "source": "train.yaml"})",
                           R"("max_steps": {"value": -1, "source": "default"})",
                           R"("bf16": {"value": false, "source": "default"})",
                           R"("dataset_dir": {"value": "a\"b", "source": "train.yaml"})",
                           R"("stage": {"value": "pt", "source": "train.yaml"})"})
    EXPECT_NE(json.find(line), std::string::npos) << json << "\nwanted: " << line;
}

TEST_F(RunEvents, TakesAutoAsAccelerateDoesWhereTheTrainerFillsInNothing) {
  const auto run = read_with(R"({"zero_optimization": {"stage": 3,
    "stage3_gather_16bit_weights_on_model_save": "auto", "stage3_max_live_parameters": "auto",
    "offload_param": {"device": "auto"}}})");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_FALSE(run->zero.gather_weights_on_save);
  EXPECT_TRUE(
      has_note(*run, "is \"auto\", which accelerate makes false: checkpoints hold sharded"));
  EXPECT_TRUE(has_note(*run, "\"auto\" is read as left out for stage3_max_live_parameters"));
}

TEST_F(RunEvents, PassesOverTheOldSpellingOfParameterOffloadBelowStageThree) {
  const auto run = read_with(R"({"zero_optimization": {"stage": 1, "cpu_offload_param": true}})");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_TRUE(has_note(*run, "zero_optimization.cpu_offload_param has no effect below stage 3"));
}

TEST_F(RunEvents, ShowsWhatIsNoDefaultInTheShortTable) {
  const auto run = read(minimal("learning_rate: 1e-4\n"), {"seed=7"});

  ASSERT_TRUE(run.has_value()) << text_of(run);
  const std::string table = chosen_values_table(*run);
  EXPECT_NE(table.find("learning_rate"), std::string::npos);
  EXPECT_NE(table.find("command line"), std::string::npos);
  EXPECT_EQ(table.find("default"), std::string::npos) << table;
}

}  // namespace
}  // namespace underkeel::spec
