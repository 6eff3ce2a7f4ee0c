// Spaces that are too small, and what is offered instead: what an answer says of each.

#include <gtest/gtest.h>

#include "doctor/case_files.h"

namespace underkeel::doctor {
namespace {

/// One error a space, and of each the phase that fails first.
TEST(Shortage, EachSpaceThatIsShortIsNamed) {
  const Files files =
      files_of({llama_8b,
                R"("stage": 2, )" + offload_optimizer,
                "finetuning_type: full\nbf16: true\nper_device_train_batch_size: 1\n",
                {.gpus = 2, .gpu_gib = 16, .host_gib = 128}});

  const Diagnosis diagnosis = files.diagnose();

  const auto errors = found(diagnosis, "deepspeed-does-not-fit");
  ASSERT_EQ(errors.size(), 2u) << messages(diagnosis);
  const std::string device = message_of(errors[0], Language::english);
  const std::string host = message_of(errors[1], Language::english);
  EXPECT_NE(device.find("device memory while loading needs at least 17.5 GB, 17.2 GB"),
            std::string::npos)
      << device;
  EXPECT_NE(host.find("host memory"), std::string::npos) << host;
  EXPECT_NE(host.find("it fails first there, and would need the most during a save, 180.8 GB: "),
            std::string::npos)
      << host;
}

/// One error a space of ours as well, with one cure.
TEST(Shortage, EachSpaceThatIsShortIsNamedOfOurEngine) {
  Files files = files_of({llama_8b,
                          R"("stage": 3)",
                          "finetuning_type: full\nbf16: true\nper_device_train_batch_size: 1\n",
                          {.gpus = 8, .gpu_gib = 16, .host_gib = 1}});

  const Diagnosis diagnosis = files.diagnose();

  const auto errors = found(diagnosis, "underkeel-does-not-fit");
  ASSERT_EQ(errors.size(), 2u) << messages(diagnosis);
  const std::string device = message_of(errors[0], Language::english);
  const std::string host = message_of(errors[1], Language::english);
  EXPECT_NE(device.find("does not fit: a node's host memory needs "), std::string::npos) << device;
  EXPECT_NE(host.find("does not fit: device memory needs "), std::string::npos) << host;
}

/// Moments are made by the first update, so a step that holds them comes after it; a resume brings them.
TEST(Shortage, AFreshRunFailsFirstInTheUpdateAndAResumeBeforeIt) {
  Files files = files_of({llama_8b, R"("stage": 2)",
                          "finetuning_type: full\nbf16: true\nper_device_train_batch_size: 1\n"
                          "cutoff_len: 128\n"});

  const Diagnosis fresh = files.diagnose();
  files.question.resumes = true;
  const Diagnosis resumed = files.diagnose();

  const auto& first_step = fresh.deepspeed.at(Phase::first_step, Space::device);
  ASSERT_LT(first_step->high(), *first_step->limit_bytes);
  expect_says(fresh, "deepspeed-does-not-fit",
              {"device memory in the update needs at least 177.1 GB"});
  expect_says(resumed, "deepspeed-does-not-fit",
              {"device memory on a resume needs at least 129.9 GB",
               "would need the most in the update, 177.1 GB"});
}

/// Stages 1 and 2 make weights flat on the host where there is no room for both on the card.
TEST(Shortage, NoErrorIsToldOfAMomentThatDeepspeedAvoids) {
  const auto on_card = [](double gpu_gib) {
    return files_of({llama_8b,
                     R"("stage": 2, )" + offload_optimizer,
                     "finetuning_type: full\nbf16: true\nper_device_train_batch_size: 1\n",
                     {.gpus = 2, .gpu_gib = gpu_gib, .host_gib = 512}})
        .diagnose();
  };

  const Diagnosis small_run = on_card(24);
  const Diagnosis large = on_card(80);

  EXPECT_EQ(found(small_run, "deepspeed-does-not-fit").size(), 0u) << messages(small_run);
  const auto [none, whole] =
      term_range(small_run.deepspeed, Phase::load, Space::host, "flat_on_host");
  EXPECT_EQ(none, 0);
  EXPECT_NEAR(whole, 64.2e9, 0.1e9);
  EXPECT_EQ(term_bytes(small_run.deepspeed, Phase::load, Space::device, "set_up"), 0);
  EXPECT_NEAR(term_bytes(large.deepspeed, Phase::load, Space::device, "set_up"), 15.0e9, 0.1e9);
  EXPECT_EQ(term_bytes(large.deepspeed, Phase::load, Space::host, "flat_on_host"), 0);
}

TEST(Shortage, ARowThatMayFitStandsUnderWordsThatSaySo) {
  const Diagnosis diagnosis = files_of({llama_33b,
                                        R"("stage": 3, )" + offload_both,
                                        full_1x2,
                                        {.gpus = 8, .gpu_gib = 40, .host_gib = 559}})
                                  .diagnose();

  ASSERT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
  const std::string text = to_text(diagnosis, Language::english);
  EXPECT_EQ(text.find("What fits, with DeepSpeed"), std::string::npos) << text;
  const auto table = text.find("What may fit and is not sure to");
  ASSERT_NE(table, std::string::npos) << text;
  // At least below the 600.2 GB, at most beyond them.
  EXPECT_NE(text.find("host memory 593.5 GB - 609.5 GB", table), std::string::npos) << text;
}

/// Under words that say what fits no margin is below zero, whichever engine.
TEST(Shortage, NothingWithoutAMarginIsSaidToFit) {
  for (const double gpu_gib : {16, 24, 40, 80})
    for (const double host_gib : {64, 128, 256}) {
      const Diagnosis diagnosis =
          files_of({llama_7b,
                    R"("stage": 2, )" + offload_optimizer,
                    "finetuning_type: full\nbf16: true\nper_device_train_batch_size: 8\n",
                    {.gpus = 2, .gpu_gib = gpu_gib, .host_gib = host_gib}})
              .diagnose();
      for (const Alternative& row : diagnosis.alternatives) {
        if (row.verdict != Verdict::runs) continue;
        EXPECT_GE(row.device_margin_bytes.value_or(0), 0) << row.words;
        EXPECT_GE(row.host_margin_bytes.value_or(0), 0) << row.words;
      }
    }
}

/// Two runs whose training fits and whose evaluation does not: as the engine holds logits, and pieces of them.
const std::string evaluating =
    "finetuning_type: full\nbf16: true\n"
    "model_name_or_path: m\noutput_dir: out\ntemplate: empty\n"
    "cutoff_len: 2048\neval_dataset: eval\neval_strategy: steps\n"
    "eval_steps: 5\n";

TEST(Shortage, AnEvaluationThatIsTooLargeIsCutInDeepspeed) {
  Files files =
      files_of({llama_7b,
                R"("stage": 3)",
                evaluating + "per_device_train_batch_size: 1\nper_device_eval_batch_size: 96\n",
                {.gpus = 8, .gpu_gib = 40}});

  const Diagnosis diagnosis = files.diagnose();

  ASSERT_EQ(diagnosis.deepspeed.verdict, Verdict::fails) << messages(diagnosis);
  expect_says(diagnosis, "deepspeed-does-not-fit",
              {"in an evaluation", "fits: stage 3, per_device_eval_batch_size 12"});
  const Alternative& first = diagnosis.alternatives.front();
  ASSERT_EQ(first.verdict, Verdict::runs);
  EXPECT_EQ(first.words, "per_device_eval_batch_size=12");  // 24 may not fit
  EXPECT_EQ(first.changes, 1);
  EXPECT_NE(to_text(diagnosis, Language::english).find("per_device_eval_batch_size=12\n"),
            std::string::npos);
  files.question.changes = words_in(first.words);
  EXPECT_EQ(files.diagnose().deepspeed.verdict, Verdict::runs);
}

TEST(Shortage, LogitsThatAnEvaluationKeepsLeaveTheDeviceWithEachBatch) {
  const Diagnosis diagnosis =
      files_of({llama_7b,
                R"("stage": 3)",
                evaluating + "per_device_train_batch_size: 1\nper_device_eval_batch_size: "
                             "96\ncompute_accuracy: true\n",
                {.gpus = 8, .gpu_gib = 40}})
          .diagnose();

  EXPECT_EQ(diagnosis.alternatives.front().words,
            "per_device_eval_batch_size=12 eval_accumulation_steps=1");
  expect_says(diagnosis, "deepspeed-does-not-fit",
              {"per_device_eval_batch_size 12, eval_accumulation_steps 1"});
}

TEST(Shortage, AnEvaluationThatIsTooLargeIsCutInOurEngine) {
  Files files =
      files_of({llama_7b,
                R"("stage": 3)",
                evaluating + "per_device_train_batch_size: 1\nper_device_eval_batch_size: 512\n",
                {.gpus = 8, .gpu_gib = 40}});

  const Diagnosis diagnosis = files.diagnose();

  ASSERT_EQ(diagnosis.underkeel.verdict, Verdict::fails) << messages(diagnosis);
  expect_says(diagnosis, "underkeel-does-not-fit",
              {"the smallest change that fits: per_device_eval_batch_size=1"});
  files.question.changes = {"per_device_eval_batch_size=1"};
  EXPECT_EQ(files.diagnose().underkeel.verdict, Verdict::runs);
}

/// A run that evaluates in time is offered no other batch for it.
TEST(Shortage, AnEvaluationThatFitsIsLeftAsItIs) {
  const Diagnosis diagnosis = files_of({llama_7b,
                                        R"("stage": 2)",
                                        evaluating + "per_device_train_batch_size: 64\n"
                                                     "per_device_eval_batch_size: 2\n",
                                        {.gpus = 8, .gpu_gib = 80}})
                                  .diagnose();

  ASSERT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
  for (const Alternative& row : diagnosis.alternatives)
    EXPECT_EQ(row.evaluation_batch, 2) << row.words;
}

TEST(Shortage, AResumeIsToldBesideWhatLivesThereWhereAnythingDoes) {
  const auto resume_of = [](const std::string& zero) {
    return says(files_of({qwen_half,
                          zero,
                          "finetuning_type: full\nbf16: true\ncutoff_len: 256\n"
                          "per_device_train_batch_size: 2\n",
                          {.gpu_gib = 24, .host_gib = 64}})
                    .diagnose(),
                "resume-host");
  };

  EXPECT_EQ(resume_of(R"("stage": 2)"),
            "a resume reads each rank's optimizer file whole: 5.9 GB on a node / ");
  EXPECT_NE(resume_of(R"("stage": 2, )" + offload_optimizer)
                .find("5.9 GB on a node, besides 9.2 GB that live there: 15.1 GB"),
            std::string::npos);
}

/// What our layout would have on NVMe is not on the host, and is held against the swap folder of each node.
TEST(Shortage, WhatOurLayoutHasOnNvmeIsToldThere) {
  for (const auto& [free_gib, short_count] : {std::pair{1024, 0u}, std::pair{340, 1u}}) {
    const std::string more = fmt::format(R"(, "swap_free_gib": {})", free_gib);
    const Diagnosis diagnosis =
        files_of({llama_33b,
                  R"("stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme"})",
                  full_1x2,
                  {.gpus = 8, .gpu_gib = 40, .host_gib = 559, .more = more}})
            .diagnose();

    expect_says(diagnosis, "own-layout-with-offload",
                {"and 0 B - 65.1 GB on the host for all ranks (gradients 0 B - 65.1 GB), and on "
                 "NVMe for all ranks 390.3 GB (optimizer state 390.3 GB)"});
    EXPECT_EQ(found(diagnosis, "own-layout-nvme-short").size(), short_count);
    if (short_count > 0)
      expect_says(diagnosis, "own-layout-nvme-short",
                  {"at least 390.3 GB on NVMe of a node", "365.1 GB (340 GiB) are free"});
  }
}

/// Shards that lie on the host are no shards of the device.
TEST(Shortage, GatheredParametersAreToldBesideShardsWhereThereAreAny) {
  const auto window_of = [](const std::string& zero) {
    return says(files_of({llama_13b, zero, full_1x2, {.gpus = 4}}).diagnose(), "live-window");
  };

  EXPECT_TRUE(window_of(R"("stage": 3)").starts_with("besides 6.5 GB of shards, gathered"));
  EXPECT_TRUE(window_of(R"("stage": 3, )" + offload_both).starts_with("gathered parameters take"));
}

/// Page-locked blocks that are rounded up count in the phase that holds the most, and against what may be locked.
TEST(Shortage, RoundingCountsInEveryPhaseAndSpace) {
  const auto diagnose = [](double host_gib, std::string_view more) {
    return files_of({qwen_half,
                     R"("stage": 2, )" + offload_optimizer,
                     "finetuning_type: full\nbf16: true\ncutoff_len: 256\n"
                     "per_device_train_batch_size: 2\ngradient_accumulation_steps: 2\n",
                     {.gpu_gib = 24, .host_gib = host_gib, .more = more}})
        .diagnose();
  };

  // Steps fit when rounded too, and a save does not.
  expect_says(diagnose(13.3, ""), "rounding-may-not-fit",
              {"14.1 GB at most of 14.3 GB (13.3 GiB) would do for host memory during a save",
               "14.7 GB then"});
  EXPECT_TRUE(found(diagnose(32, ""), "rounding-may-not-fit").empty());
  expect_says(diagnose(32, R"(, "memlock_gib": 6)"), "rounding-may-not-fit",
              {"6.4 GB (6.0 GiB) would do for page-locked host memory"});
}

}  // namespace
}  // namespace underkeel::doctor
