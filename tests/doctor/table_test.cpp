// Rows of the table of cures against the disk, a resume and an evaluation, and the order in which they stand.

#include <gtest/gtest.h>

#include "doctor/case_files.h"
#include "doctor/own_need.h"

namespace underkeel::doctor {
namespace {

const std::string run_of_7b =
    "finetuning_type: full\nbf16: true\ncutoff_len: 1024\n"
    "per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\n";
const std::string gather_words =
    "deepspeed.zero_optimization.stage3_gather_16bit_weights_on_model_save=true";

std::vector<Alternative> running_rows(const Diagnosis& diagnosis, Engine engine) {
  std::vector<Alternative> rows;
  for (const Alternative& row : diagnosis.alternatives)
    if (row.engine == engine && row.verdict == Verdict::runs && row.changes > 0)
      rows.push_back(row);
  return rows;
}

Machine small_cards(std::string_view more, double host_gib = 512) {
  return {.gpus = 4, .gpu_gib = 40, .host_gib = host_gib, .more = more};
}

// Without the flag the final folder of stage 3 is a whole checkpoint: 80.9 GB for 7B.
TEST(Table, AsksTheDiskWithTheWordsOfEachRow) {
  Files files = files_of({llama_7b, R"("stage": 2)", run_of_7b + "save_strategy: \"no\"\n",
                          small_cards(R"(, "out_free_gib": 60)")});

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
  bool has_stage_3 = false;
  for (const Alternative& row : running_rows(diagnosis, Engine::deepspeed)) {
    const bool gathers = row.words.find(gather_words) != std::string::npos;
    EXPECT_EQ(row.stage == 3, gathers) << row.words;
    EXPECT_NEAR(*row.disk_bytes, 13.5e9, 0.1e9) << row.words;
    has_stage_3 = has_stage_3 || row.stage == 3;
    files.question.changes = words_in(row.words);
    EXPECT_EQ(exit_code_of(files.diagnose(), Engine::deepspeed), 0) << row.words;
  }
  EXPECT_TRUE(has_stage_3);
  EXPECT_NE(to_text(diagnosis, Language::english).find("disk 13.5 GB  "), std::string::npos);
  EXPECT_NE(to_json(diagnosis, Language::english).find(R"("disk_margin_bytes": )"),
            std::string::npos);
}

TEST(Table, NamesTheGatherFlagWhereItCuresTheDisk) {
  const Machine machine{.gpus = 8, .gpu_gib = 80, .more = R"(, "out_free_gib": 60)"};
  const Diagnosis unsaved =
      files_of({llama_7b, R"("stage": 3)", run_of_7b + "save_strategy: \"no\"\n", machine})
          .diagnose();
  expect_says(unsaved, "final-folder-does-not-fit",
              {"80.9 GB needed", "stage3_gather_16bit_weights_on_model_save: true (13.5 GB)"});

  // One checkpoint with the final folder: 80.9 + 80.9 GB without the flag, 94.3 + 13.5 GB with it.
  const std::string once = run_of_7b + "save_steps: 100\nmax_steps: 100\n";
  const Diagnosis saved =
      files_of({llama_7b, R"("stage": 3)", once, {.gpus = 8, .more = R"(, "out_free_gib": 120)"}})
          .diagnose();
  expect_says(saved, "deepspeed-disk-does-not-fit",
              {"161.7 GB", "stage3_gather_16bit_weights_on_model_save: true (107.8 GB)"});
  // Below stage 3 there is nothing to gather, and of adapters no whole model is written.
  for (const auto& [zero, run] :
       {std::pair{R"("stage": 2)", once},
        std::pair{R"("stage": 3)", std::string("finetuning_type: lora\nbf16: true\n"
                                               "save_steps: 1\nmax_steps: 20\n")}}) {
    const Diagnosis diagnosis =
        files_of({llama_7b, zero, run, {.gpus = 8, .more = R"(, "out_free_gib": 3)"}}).diagnose();
    const std::string text = says(diagnosis, "deepspeed-disk-does-not-fit");
    EXPECT_EQ(text.find("stage3_gather"), std::string::npos) << text;
  }
}

// Memory and disk are short: each row cures both, with either engine.
TEST(Table, CuresMemoryAndDiskAtOnce) {
  Files files =
      files_of({llama_7b, R"("stage": 0)", run_of_7b + "save_steps: 100\nmax_steps: 300\n",
                small_cards(R"(, "out_free_gib": 200)")});
  const Diagnosis diagnosis = diagnose(files.question, need_of);
  expect_chinese(diagnosis);
  for (const Engine engine : {Engine::deepspeed, Engine::underkeel}) {
    const auto rows = running_rows(diagnosis, engine);
    ASSERT_FALSE(rows.empty()) << messages(diagnosis);
    EXPECT_NE(rows[0].words.find("save_total_limit=1"), std::string::npos) << rows[0].words;
    for (const Alternative& row : rows) {
      Question changed = files.question;
      changed.changes = words_in(row.words);
      const Diagnosis taken = diagnose(changed, need_of);
      EXPECT_EQ(exit_code_of(taken, engine), 0) << row.words << "\n" << messages(taken);
    }
  }
  expect_says(diagnosis, "deepspeed-does-not-fit", {"stage 3, save_total_limit 1"});
  // What nothing cures is said with what is missing.
  const Diagnosis hopeless =
      files_of({llama_7b, R"("stage": 2)", run_of_7b + "save_steps: 100\nmax_steps: 300\n",
                small_cards(R"(, "out_free_gib": 5)")})
          .diagnose();
  expect_says(hopeless, "deepspeed-disk-does-not-fit", {"free at least ", "output_dir"});
  EXPECT_TRUE(running_rows(hopeless, Engine::deepspeed).empty());
}

TEST(Table, MarksRowsThatCannotBeResumed) {
  Files files = files_of({llama_13b,
                          R"("stage": 2, )" + offload_both,
                          "finetuning_type: full\nbf16: true\ncutoff_len: 256\n"
                          "per_device_train_batch_size: 1\ngradient_accumulation_steps: 2\n",
                          {.gpu_gib = 24, .host_gib = 384}});

  const Diagnosis diagnosis = files.diagnose();

  int marked = 0;
  for (const Alternative& row : running_rows(diagnosis, Engine::deepspeed)) {
    files.question.changes = words_in(row.words);
    const Diagnosis taken = files.diagnose();
    EXPECT_EQ(found(taken, "resume-host-short").size(), *row.resume == Verdict::fails ? 1u : 0u)
        << row.words;
    EXPECT_EQ(found(taken, "resume-host-may-be-short").size(),
              *row.resume == Verdict::unknown ? 1u : 0u)
        << row.words;
    marked += *row.resume != Verdict::runs;
  }
  EXPECT_GT(marked, 0);
  EXPECT_NE(to_text(diagnosis, Language::english)
                .find("a resume of it does not fit a node's host memory: up to 445.5 GB"),
            std::string::npos);
  EXPECT_NE(to_json(diagnosis, Language::english).find(R"("resume": "fails")"), std::string::npos);
  expect_says(diagnosis, "deepspeed-does-not-fit",
              {"(a resume of it does not fit a node's host memory: up to 445.5 GB)"});
}

// Among changes as small as each other first what costs least time: stage 3 gathers, stage 2 does not.
TEST(Table, PutsStage2BeforeStage3) {
  const Diagnosis diagnosis =
      files_of({llama_7b, R"("stage": 0)", run_of_7b, {.gpus = 8, .gpu_gib = 80}}).diagnose();
  for (const Engine engine : {Engine::deepspeed, Engine::underkeel}) {
    const auto rows = running_rows(diagnosis, engine);
    ASSERT_FALSE(rows.empty());
    EXPECT_EQ(rows[0].stage, 2) << rows[0].words;
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const bool is_late =
          rows[i].changes == rows[i - 1].changes && costs_less_time(rows[i], rows[i - 1]);
      EXPECT_FALSE(is_late) << rows[i].words << " behind " << rows[i - 1].words;
    }
  }
}

// An evaluation is cut to the largest that fits, and only where it does not fit as it is.
TEST(Table, CutsAnEvaluationNoFurtherThanNeeded) {
  const std::string run =
      "finetuning_type: full\nbf16: true\ncutoff_len: 2048\neval_strategy: steps\nval_size: 0.1\n"
      "per_device_train_batch_size: 1\nper_device_eval_batch_size: ";
  int cut = 0;
  for (const int batch : {2, 8, 32, 128, 512}) {
    Files files = files_of(
        {llama_7b, R"("stage": 0)", run + fmt::format("{}\n", batch), {.gpus = 8, .gpu_gib = 40}});
    const Diagnosis diagnosis = files.diagnose();
    for (const Engine engine : {Engine::deepspeed, Engine::underkeel})
      for (const Alternative& row : running_rows(diagnosis, engine)) {
        if (row.evaluation_batch == batch) continue;
        // Of as many sequences again it does not run.
        files.question.changes = words_in(row.words);
        EXPECT_EQ(exit_code_of(files.diagnose(), engine), 0) << row.words;
        if (engine == Engine::underkeel) continue;
        files.question.changes.push_back(
            fmt::format("per_device_eval_batch_size={}", 2 * row.evaluation_batch));
        EXPECT_NE(files.diagnose().deepspeed.verdict, Verdict::runs) << row.words;
        ++cut;
      }
  }
  EXPECT_GT(cut, 3);
}

// 2 bytes a parameter for weights and gradients each, 12 for the optimizer; in fp32 4 and 4, and 8 or with DeepSpeed's master
// copy 12.
TEST(Table, CountsTheStateOfARankByStage) {
  constexpr double psi = 8030261248;
  constexpr double ranks = 4;
  for (int stage = 0; stage <= 3; ++stage) {
    const auto part = [&](int from, double bytes) {
      return bytes * psi / (stage >= from ? ranks : 1);
    };
    const auto state = [&](double element, double optimizer) {
      return amount(part(3, element) + part(2, element) + part(1, optimizer));
    };
    const Diagnosis diagnosis = files_of({llama_8b,
                                          fmt::format(R"("stage": {})", stage),
                                          "finetuning_type: full\nfp16: true\n",
                                          {.gpus = 4, .gpu_gib = 32},
                                          "fp16"})
                                    .diagnose();
    expect_says(diagnosis, "bf16-weights-in-fp16",
                {state(2, 12) + " in fp16", state(4, 8) + " with underkeel",
                 state(4, stage == 0 ? 8 : 12) + " with DeepSpeed"});
  }
}

// A number in quotes is never told as 8 that differs from 8: who compares it is named.
TEST(Table, SaysWhoStopsOnANumberInQuotes) {
  Files files;
  files.write("ds_config.json",
              R"({"gradient_accumulation_steps": "8", "gradient_clipping": "1"})");
  for (const char* key : {"gradient_accumulation_steps", "gradient_clipping"})
    EXPECT_EQ(message_of(found(diagnose(files.question), "value-wrong-type", key).at(0),
                         Language::english)
                  .find("Trainer"),
              std::string::npos);
  files.write("train.yaml", run_yaml("gradient_accumulation_steps: 8\n"));
  for (const char* key : {"gradient_accumulation_steps", "gradient_clipping"})
    EXPECT_NE(message_of(found(diagnose(files.question), "value-wrong-type", key).at(0),
                         Language::english)
                  .find("the HF Trainer, which compares it"),
              std::string::npos);
}

// What our layout would page-lock stands against the limit of the node.
TEST(Table, SetsOurPageLocksAgainstTheirLimit) {
  for (const auto& [limit_gib, answer] :
       {std::pair{700, ", which it keeps to"}, std::pair{500, ", which it may pass"},
        std::pair{300, ", which it passes"}}) {
    const std::string locks = fmt::format(R"(, "memlock_gib": {})", limit_gib);
    const Diagnosis diagnosis =
        files_of({llama_33b,
                  R"("stage": 3, )" + offload_both,
                  "finetuning_type: full\nbf16: true\nper_device_train_batch_size: 1\n",
                  {.gpus = 8, .host_gib = 1024, .more = locks}})
            .diagnose();
    expect_says(diagnosis, "own-layout-with-offload",
                {"page-locks all of its part, that is 455.4 GB - 585.5 GB", answer});
  }
}

}  // namespace
}  // namespace underkeel::doctor
