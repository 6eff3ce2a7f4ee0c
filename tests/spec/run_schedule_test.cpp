// The schedule of the learning rate, from the run file and from a DeepSpeed config.

#include "spec/run_files.h"

namespace underkeel::spec {
namespace {

using RunSchedule = RunFiles;
using Schedule = LearningRateSchedule;

TEST_F(RunSchedule, ReadsTheOptionsOfEachSchedule) {
  const auto options = [&](const std::string& name, const std::string& given) {
    const auto run =
        read(minimal("learning_rate: 1e-3\neval_strategy: steps\nval_size: 8\n"
                     "lr_scheduler_type: " +
                     name + "\nlr_scheduler_kwargs: " + given + "\n"));
    EXPECT_TRUE(run.has_value()) << text_of(run);
    return run ? run->optimizer.schedule_options : ScheduleOptions{};
  };

  EXPECT_EQ(options("cosine", "{}").cycles, 0.5);
  EXPECT_EQ(options("cosine", "{num_cycles: 1.5}").cycles, 1.5);
  EXPECT_EQ(options("cosine_with_restarts", "{}").cycles, 1.0);
  EXPECT_EQ(options("cosine_with_restarts", "{num_cycles: 3}").cycles, 3.0);
  EXPECT_EQ(options("polynomial", "{power: 2, lr_end: 1e-6}").power, 2.0);
  EXPECT_EQ(options("polynomial", "{power: 2, lr_end: 1e-6}").end_rate, 1e-6);
  EXPECT_EQ(options("inverse_sqrt", "{timescale: 7}").timescale, 7);
  EXPECT_EQ(options("cosine_with_min_lr", "{min_lr_rate: 0.1}").min_share, 0.1);
  EXPECT_EQ(options("cosine_with_min_lr", "{min_lr: 1e-4}").min_share, 1e-4 / 1e-3);
  EXPECT_EQ(
      options("cosine_warmup_with_min_lr", "{min_lr_rate: 0.1, warmup_lr_rate: 0.2}").warmup_share,
      0.2);
  const auto stages = options("warmup_stable_decay",
                              "{num_stable_steps: 3, num_decay_steps: 4, warmup_type: cosine, "
                              "decay_type: 1-sqrt, min_lr_ratio: 0.05}");
  EXPECT_EQ(stages.stable_steps, 3);
  EXPECT_EQ(stages.decay_steps, 4);
  EXPECT_EQ(stages.warmup_shape, RampShape::cosine);
  EXPECT_EQ(stages.decay_shape, RampShape::one_minus_sqrt);
  EXPECT_EQ(stages.min_share, 0.05);
  const auto plateau =
      options("reduce_lr_on_plateau", "{mode: max, factor: 0.5, patience: 2, cooldown: 1}");
  EXPECT_TRUE(plateau.larger_is_better);
  EXPECT_EQ(plateau.factor, 0.5);
  EXPECT_EQ(plateau.patience, 2);
  EXPECT_EQ(plateau.cooldown, 1);
}

TEST_F(RunSchedule, RefusesWhatAScheduleDoesNotHave) {
  struct Refusal {
    std::string lines;
    std::string message;
  };
  const std::vector<Refusal> refusals = {
      {"lr_scheduler_type: cosin", "schedule `cosin` is not supported; the nearest is `cosine`"},
      {"lr_scheduler_type: greedy", "supported are linear, cosine, cosine_with_restarts"},
      {"lr_scheduler_kwargs: {num_cycles: 2}", "unknown option of this schedule; it has none"},
      {"lr_scheduler_type: cosine\nlr_scheduler_kwargs: {num_cycle: 2}",
       "the nearest is `num_cycles`"},
      {"lr_scheduler_type: polynomial\nlr_scheduler_kwargs: {num_cycles: 2}",
       "it has lr_end, power"},
      {"lr_scheduler_kwargs: 3", "a mapping is wanted, 3 was found"},
      {"lr_scheduler_type: cosine_with_min_lr", "write lr_scheduler_kwargs: {min_lr_rate: 0.1}"},
      {"lr_scheduler_type: cosine_with_min_lr\nlr_scheduler_kwargs: {min_lr: 1, min_lr_rate: 1}",
       "min_lr and min_lr_rate exclude each other"},
      {"lr_scheduler_type: polynomial\nlearning_rate: 1e-8",
       "polynomial wants learning_rate 1e-08 above lr_end 1e-07"},
      {"lr_scheduler_type: warmup_stable_decay\nlr_scheduler_kwargs: {decay_type: log}",
       "unknown shape `log`"},
      {"lr_scheduler_type: reduce_lr_on_plateau", "eval_strategy is no"},
  };
  for (const Refusal& refusal : refusals) {
    // A second problem, so that all are told in one form.
    const std::string text = text_of(read(minimal(refusal.lines + "\nunheard_of: 1\n")));
    EXPECT_NE(text.find(refusal.message), std::string::npos)
        << refusal.lines << "\n"
        << text << "\nwanted: " << refusal.message;
  }
}

TEST_F(RunSchedule, SaysThatAConstantRateHasNoWarmup) {
  EXPECT_TRUE(has_note(*read(minimal("lr_scheduler_type: constant\nwarmup_steps: 5\n")),
                       "constant has no warm-up"));
}

TEST_F(RunSchedule, TakesDeepspeedsScheduleInPlaceOfTheRunFiles) {
  const auto run = read_with(
      R"({"scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": "auto",
        "warmup_max_lr": "auto", "warmup_num_steps": "auto", "total_num_steps": "auto",
        "warmup_type": "linear"}}})",
      "learning_rate: 1e-3\nwarmup_steps: 5\nlr_scheduler_type: cosine\n");

  ASSERT_TRUE(run.has_value()) << text_of(run);
  ASSERT_TRUE(run->optimizer.deepspeed_schedule.has_value());
  EXPECT_EQ(run->optimizer.deepspeed_schedule->kind, DeepspeedScheduleKind::warmup_decay);
  EXPECT_EQ(run->optimizer.deepspeed_schedule->min_rate, 0.0);
  EXPECT_FALSE(run->optimizer.deepspeed_schedule->max_rate.has_value());
  EXPECT_FALSE(run->optimizer.deepspeed_schedule->warmup_steps.has_value());
  EXPECT_FALSE(run->optimizer.deepspeed_schedule->warmup_is_logarithmic);
  EXPECT_TRUE(has_note(*run,
                       "scheduler WarmupDecayLR holds in place of lr_scheduler_type cosine "
                       "(train.yaml)"));
  EXPECT_EQ(source_of_key(*run, "deepspeed.scheduler.type"), "WarmupDecayLR from ds_config.json");
}

// A recipe of "auto" with warmup_steps 0, which DeepSpeed takes for 2 or refuses.
TEST_F(RunSchedule, WarnsWhenAnAutomaticWarmupHasNoSteps) {
  const auto run = read_with(R"({"train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": "auto",
      "warmup_num_steps": "auto"}}, "zero_optimization": {"stage": 2}})",
                             "learning_rate: 5.0e-5\nwarmup_steps: 0\n", WorldSize{8, "--ranks"});

  ASSERT_TRUE(run.has_value()) << text_of(run);
  EXPECT_TRUE(has_note(*run,
                       "warmup_num_steps \"auto\" becomes 0 with warmup_steps 0: DeepSpeed "
                       "refuses that since 0.19.3 and took 2 before"));
}

TEST_F(RunSchedule, ReadsTheOtherSchedulesOfDeepspeedWithItsDefaults) {
  const auto schedule = [&](const std::string& json) {
    const auto run = read_with("{\"scheduler\": " + json + "}");
    EXPECT_TRUE(run.has_value()) << text_of(run);
    return run && run->optimizer.deepspeed_schedule ? *run->optimizer.deepspeed_schedule
                                                    : DeepspeedSchedule{};
  };

  const auto warmup = schedule(R"({"type": "WarmupLR", "params": {}})");
  EXPECT_EQ(warmup.warmup_steps, 1000);
  EXPECT_TRUE(warmup.warmup_is_logarithmic);
  EXPECT_EQ(schedule(R"({"type": "WarmupDecayLR", "params": {"total_num_steps": 9}})").max_rate,
            1e-3);
  const auto cycle = schedule(R"({"type": "OneCycle", "params": {"cycle_min_lr": 0.1,
    "cycle_max_lr": 0.2, "cycle_first_step_size": 7, "cycle_momentum": false}})");
  EXPECT_EQ(cycle.second_steps, 7);
  EXPECT_EQ(cycle.max_rate, 0.2);
  EXPECT_EQ(schedule(R"({"type": "LRRangeTest", "params": {}})").min_rate, 1e-3);
}

TEST_F(RunSchedule, RefusesDeepspeedsSchedulesByKey) {
  struct Refusal {
    std::string json;
    std::string message;
  };
  const std::vector<Refusal> refusals = {
      {R"({"type": "Cosine", "params": {}})", "schedule `Cosine` is not supported"},
      {R"({"params": {}})", "the key is missing"},
      {R"({"type": "WarmupLR"})", "DeepSpeed refuses a schedule without params"},
      {R"({"type": "WarmupLR", "params": {"warmup_step": 3}})", "unknown key `warmup_step`"},
      {R"({"type": "WarmupLR", "params": {"warmup_num_steps": 0}})", "0 is out of range"},
      {R"({"type": "WarmupLR", "params": {"warmup_type": "cubic"}})", "no kind of warm-up"},
      {R"({"type": "WarmupDecayLR", "params": {}})", "total_num_steps"},
      {R"({"type": "OneCycle", "params": {"cycle_min_lr": 0, "cycle_max_lr": 1}})",
       "a momentum that moves with the rate is not supported"},
      {R"({"type": "OneCycle", "params": {"cycle_momentum": false}})", "cycle_min_lr"},
      {R"({"type": "WarmupLR", "params": {"warmup_max_lr": 0.3}})",
       "0.3 in ds_config.json, while learning_rate is 5e-05 (default)"}};
  for (const Refusal& refusal : refusals) {
    const std::string text = text_of(read_with("{\"scheduler\": " + refusal.json + "}"));
    EXPECT_NE(text.find(refusal.message), std::string::npos)
        << refusal.json << "\n"
        << text << "\nwanted: " << refusal.message;
  }
}

TEST_F(RunSchedule, HoldsStepsOfTheDeepspeedConfigAgainstTheRuns) {
  const auto run = read_with(R"({"scheduler": {"type": "WarmupDecayLR", "params":
      {"total_num_steps": 50, "warmup_num_steps": 5}}})",
                             "warmup_ratio: 0.1\nlearning_rate: 1e-3\n");
  ASSERT_TRUE(run.has_value()) << text_of(run);

  EXPECT_TRUE(check_total_steps(*run, 50).has_value());
  EXPECT_EQ(check_total_steps(*run, 60).error().what,
            "scheduler.params.total_num_steps is 50 in the DeepSpeed config, while the run has "
            "total steps 60");
}

}  // namespace
}  // namespace underkeel::spec
