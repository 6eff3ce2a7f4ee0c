// Whether plans fit, and which changes make them fit.

#include <algorithm>
#include <limits>

#include "planner/fit_of_tiny_model.h"

namespace underkeel::planner {
namespace {

TEST_F(Fit, EveryChangeFitsWhenItIsAppliedInF32) {
  EXPECT_GT(check_all_changes({"disable_gradient_checkpointing=true"}), 3);
}

TEST_F(Fit, EveryChangeFitsWhenItIsAppliedInBf16OnTwoRanks) {
  EXPECT_GT(check_all_changes({"bf16=true", "underkeel.recompute=none", "--ranks", "2",
                               "gradient_accumulation_steps=2"}),
            3);
}

TEST_F(Fit, EveryChangeFitsWhenItIsAppliedWithEvaluation) {
  EXPECT_GT(check_all_changes({"bf16=true", "eval_strategy=steps", "eval_dataset=text",
                               "per_device_eval_batch_size=16"}),
            3);
}

TEST_F(Fit, EveryChangeFitsWhenItIsAppliedToDataThatWereLookedThrough) {
  samples_ =
      spec::SampleSizes{.training = {.longest = 640, .tokens = {{1, 640}, {2, 800}, {4, 1100}}}};
  EXPECT_GT(check_all_changes({"bf16=true", "underkeel.recompute=none", "--ranks", "2"}), 3);
}

TEST_F(Fit, EveryChangeFitsWhenItIsAppliedOverADeepspeedConfigWithNumbers) {
  test::write_text(folder_ / "ds.json", R"({
    "train_batch_size": 16, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2,
    "zero_optimization": {"stage": 1}, "bf16": {"enabled": true}})");
  write_run(
      "gradient_accumulation_steps: 2\nbf16: true\nunderkeel: {ranks: 2, recompute: none}\n"
      "deepspeed: " +
      (folder_ / "ds.json").string() + "\n");

  EXPECT_GT(check_all_changes({}), 3);
}

TEST_F(Fit, ShowsPeakOperationHoldersAndChanges) {
  const Error error = error_of(
      {"disable_gradient_checkpointing=true", "underkeel.memory.device=4MiB", "cutoff_len=128"});

  EXPECT_EQ(error.code, ErrorCode::does_not_fit);
  EXPECT_EQ(to_text(error),
            "error: the plan does not fit: device peak 5.6 MiB, allowed 4.0 MiB "
            "(underkeel.memory.device)\n"
            "where: segment micro.only, op 0073 acquire embedding.micro_gradient\n"
            "holds: activations 3.7 MiB, optimizer 706 KiB, workspace 512 KiB, gradients 417 KiB, "
            "weights 353 KiB\n"
            "try:   per_device_train_batch_size=2 gradient_accumulation_steps=2  -> 3.5 MiB\n"
            "       underkeel.recompute=block                                    -> 3.5 MiB");
}

TEST_F(Fit, NamesTheSmallestPeakWhenNothingFits) {
  const std::vector<std::string> words{"bf16=true", "underkeel.recompute=none", "--ranks", "2",
                                       "underkeel.memory.device=100KiB"};
  const Command command = read(words);
  const Advice advice = advise(question(command), shortages(command));

  ASSERT_TRUE(advice.smallest);
  std::int64_t least = advice.smallest->shortages.at(0).needed_bytes;
  for (const char* level : {"none", "cheap", "block"})
    for (const int stage : {0, 1, 2, 3})
      for (const int ranks : {2, 4, 8})
        for (const int micro : {4, 2, 1}) {
          if (8 % (ranks * micro) != 0) continue;
          auto tried = words;
          for (const std::string& word :
               {fmt::format("underkeel.recompute={}", level),
                fmt::format("deepspeed.zero_optimization.stage={}", stage),
                fmt::format("underkeel.ranks={}", ranks),
                fmt::format("per_device_train_batch_size={}", micro),
                fmt::format("gradient_accumulation_steps={}", 8 / (ranks * micro))})
            tried.push_back(word);
          if (8 > ranks * micro)  // what is computed stays as it is
            tried.emplace_back("deepspeed.data_types.grad_accum_dtype=fp32");
          least = std::min(least, plan_of(read(tried)).layout.size_bytes[0]);
        }
  EXPECT_EQ(advice.smallest->shortages.at(0).needed_bytes, least) << advice.smallest->words;
  const Error error = error_of(words);
  EXPECT_THAT(error.fix, HasSubstr("the smallest reachable peak is"));
}

TEST_F(Fit, WithAutoRecomputesTheLeastThatFits) {
  const auto peak = [&](const std::string& level) {
    return plan_of(read({"underkeel.recompute=" + level})).layout.size_bytes[0];
  };
  const std::int64_t none = peak("none");
  const std::int64_t cheap = peak("cheap");
  const std::int64_t block = peak("block");
  ASSERT_TRUE(none > cheap && cheap > block);
  const auto decided = [&](std::int64_t budget) {
    return plan_of(read({"underkeel.recompute=auto",
                         "underkeel.memory.device=" + std::to_string(budget) + "B"}))
        .decisions.at(0);
  };

  EXPECT_EQ(decided(none).value, "none");
  ASSERT_EQ(decided(none).alternatives.size(), 2u);
  EXPECT_EQ(decided(none).alternatives[0].value, "cheap");
  EXPECT_EQ(decided(none).alternatives[0].effect,
            "about " + format_bytes(cheap) + " of device, and more to compute again");
  EXPECT_EQ(decided(none).alternatives[1].effect,
            "about " + format_bytes(block) + " of device, and more to compute again");
  EXPECT_EQ(decided(none - 1).value, "cheap");
  EXPECT_EQ(decided(none - 1).alternatives.size(), 2u);
  EXPECT_EQ(decided(cheap - 1).value, "block");
  EXPECT_EQ(decided(cheap - 1).alternatives.size(), 2u);
  EXPECT_EQ(decided(block - 1).reason, "the most there is; it does not fit either");
}

TEST_F(Fit, EveryChangeFitsWhenItIsAppliedToAuto) {
  EXPECT_GT(check_all_changes({"bf16=true", "underkeel.recompute=auto", "--ranks", "2"}), 3);
}

TEST_F(Fit, NamesTwoChangesOfOneKnobWhenThereIsNoOther) {
  machine_.cores = 1;
  const std::vector<std::string> words{"underkeel.recompute=block"};
  const std::int64_t all = plan_of(read(words)).layout.size_bytes[0];

  const Command command = read(
      {"underkeel.recompute=block", "underkeel.memory.device=" + std::to_string(all - 1) + "B"});
  const Advice advice = advise(question(command), shortages(command));

  EXPECT_GE(advice.changes.size(), 2u);
}

TEST_F(Fit, CountsRanksThatAreThreadsOfOneNodeTogether) {
  const Command command = read({"--ranks", "4", "underkeel.memory.device=1GiB"});
  const plan::Plan plan = plan_of(command);
  const Placement placement = question(command).placement;
  const Room room = room_of(command.run, machine_, placement);

  const std::int64_t of_rank = plan.layout.size_bytes[index(MemorySpace::device)] +
                               plan.layout.size_bytes[index(MemorySpace::host)];
  EXPECT_EQ(needed_bytes(plan, room, std::nullopt), 4 * of_rank + plan.overhead_bytes);
  const spec::HardwareSpec small{.host_ram_bytes = 2 * of_rank + plan.overhead_bytes};
  EXPECT_FALSE(shortage_of(plan, room));
  const auto found = shortage_of(plan, room_of(command.run, small, placement));
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->space);
}

TEST_F(Fit, CountsTheOverheadOfEveryProcessUnderALauncher) {
  const Command command = read({"--ranks", "4"});
  const plan::Plan plan = plan_of(command);
  Placement placement{.world_size = 4, .ranks_on_node = 2, .ranks_are_processes = true};

  const std::int64_t processes =
      needed_bytes(plan, room_of(command.run, machine_, placement), std::nullopt);
  placement.ranks_are_processes = false;
  const std::int64_t threads =
      needed_bytes(plan, room_of(command.run, machine_, placement), std::nullopt);

  EXPECT_EQ(processes - threads, plan.overhead_bytes);
}

TEST_F(Fit, CountsTheListsOfSamplesOnTheNode) {
  Command command = read({"--ranks", "2", "underkeel.memory.host=1GiB"});
  const std::int64_t bare = plan_of(command).overhead_bytes;
  ASSERT_TRUE(shortages(command).empty());

  command.run.data.samples =
      spec::SampleSizes{.training = {.longest = command.run.data.cutoff_tokens},
                        .list_bytes = 600 * mebibyte,
                        .order_bytes = 300 * mebibyte};

  const plan::Plan plan = plan_of(command);
  EXPECT_EQ(plan.overhead_bytes - bare, (600 + 2 * 300) * mebibyte);
  const auto fits = check_fit(plan, question(command));
  ASSERT_FALSE(fits);
  EXPECT_THAT(to_text(fits.error()),
              HasSubstr("of it are lists of samples: lower max_samples or num_samples"));
  EXPECT_THAT(fits.error().where, HasSubstr("\nnode:  arenas "));
  EXPECT_THAT(fits.error().where, HasSubstr(", lists of samples 1.2 GiB, code, libraries, "));
}

TEST_F(Fit, TakesTheTighterOfTheRunsBudgetAndTheMachines) {
  const spec::HardwareSpec machine{
      .gpus_per_node = 1, .gpu_mem_bytes = 80 * gibibyte, .host_ram_bytes = 256 * gibibyte};
  const auto device = [&](const std::vector<std::string>& words) {
    return room_of(read(words).run, machine, {}).spaces[index(MemorySpace::device)]->size_bytes;
  };

  EXPECT_EQ(device({}), 79 * gibibyte);
  EXPECT_EQ(device({"underkeel.memory.device=40GiB"}), 39 * gibibyte);
  EXPECT_EQ(device({"underkeel.memory.device=100GiB"}), 79 * gibibyte);
  EXPECT_EQ(room_of(read({}).run, machine, {}).node->size_bytes, 256 * gibibyte);
}

TEST_F(Fit, PlansALargeModelFewTimes) {
  model_ = value_of(
      spec::parse_model_config(test::complete_config(R"({"model_type": "llama", "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
        "tie_word_embeddings": false, "torch_dtype": "bfloat16"})"),
                               "config.json"));
  machine_ = {.nodes = 2,
              .gpus_per_node = 8,
              .gpu_mem_bytes = 80 * gibibyte,
              .host_ram_bytes = 1000 * gibibyte};
  const Command command = read({"bf16=true", "cutoff_len=2048", "--ranks", "8"});

  const Advice advice = advise(question(command), shortages(command));

  EXPECT_GE(advice.changes.size(), 2u);
  for (const Change& change : advice.changes) EXPECT_LE(change.needed_bytes.at(0), 79 * gibibyte);
  EXPECT_LE(advice.planned, 6);
}

TEST_F(Fit, PlansALargeModelFewTimesWhereNothingFits) {
  model_ = value_of(
      spec::parse_model_config(test::complete_config(R"({"model_type": "llama", "hidden_size": 8192,
        "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
        "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
        "tie_word_embeddings": false, "torch_dtype": "bfloat16"})"),
                               "config.json"));
  machine_ = {.nodes = 1,
              .gpus_per_node = 8,
              .gpu_mem_bytes = 80 * gibibyte,
              .host_ram_bytes = 1000 * gibibyte};
  const Command command = read({"bf16=true", "cutoff_len=2048", "--ranks", "8"});

  const Advice advice = advise(question(command), shortages(command));

  EXPECT_TRUE(advice.changes.empty());
  ASSERT_TRUE(advice.smallest);
  EXPECT_THAT(advice.smallest->words, HasSubstr("stage=3"));
  EXPECT_LE(advice.planned, 3);
}

TEST_F(Fit, FindsWhatThePlansOfAllSettingsFind) {
  // Deep enough for most to be estimated.
  model_ = value_of(spec::parse_model_config(
      test::complete_config(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 192,
        "num_hidden_layers": 11, "num_attention_heads": 4, "num_key_value_heads": 4,
        "vocab_size": 512, "max_position_embeddings": 4096, "tie_word_embeddings": false,
        "torch_dtype": "bfloat16"})"),
      "config.json"));
  const std::vector<std::string> words = {"bf16=true",
                                          "cutoff_len=256",
                                          "underkeel.recompute=none",
                                          "--ranks",
                                          "8",
                                          "gradient_accumulation_steps=2"};
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (const std::string recompute : {"none", "cheap", "block"})
    for (const auto& [batch, accumulation] :
         {std::pair<std::string, std::string>{"4", "2"}, {"2", "4"}, {"1", "8"}})
      for (const std::string stage : {"0", "1", "2", "3"}) {
        std::vector<std::string> all = words;
        for (const std::string& word :
             {"underkeel.recompute=" + recompute, "per_device_train_batch_size=" + batch,
              "gradient_accumulation_steps=" + accumulation,
              "deepspeed.zero_optimization.stage=" + stage,
              std::string("deepspeed.data_types.grad_accum_dtype=fp32")})
          all.push_back(word);
        const std::int64_t size = plan_of(read(all)).layout.size_bytes[index(MemorySpace::device)];
        least = std::min(least, size);
        most = std::max(most, size);
      }

  for (int i = 0; i <= 8; ++i) {
    // The last budget is the first that nothing fits.
    const std::int64_t budget = most - (most - least) * i / 8 - 1;
    std::vector<std::string> all = words;
    all.push_back("underkeel.memory.device=" + std::to_string(budget) + "B");
    const Command command = read(all);
    const auto short_of = shortages(command);
    if (short_of.empty()) continue;

    const Advice advice = advise(question(command), short_of);

    EXPECT_EQ(advice.changes.empty(), budget < least) << budget;
    if (advice.smallest) {
      EXPECT_EQ(advice.smallest->shortages.at(0).needed_bytes, least);
    }
  }
}

}  // namespace
}  // namespace underkeel::planner
