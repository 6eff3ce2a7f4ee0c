// The same bits over the command line: at one number of ranks, stage, transport, threads, recomputation and
// saves change nothing in the final weights and moments.

#include <gmock/gmock.h>

#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::IsEmpty;

struct Variant {
  int stage = 0;
  Ranks as = Ranks::threads;
  int threads = 1;
  bool saves = true;
  std::string more = {};  // another change
};

std::string text_of(const Variant& variant) {
  return "stage " + std::to_string(variant.stage) +
         (variant.as == Ranks::threads ? ", threads" : ", processes") + ", " +
         std::to_string(variant.threads) + " a rank, " + (variant.saves ? "saves" : "no saves") +
         " " + variant.more;
}

/// Some of the matrix, every value of every axis beside others; all of it when asked for.
std::vector<Variant> variants() {
  std::vector<Variant> chosen = {
      {.stage = 1, .as = Ranks::threads, .threads = 2, .saves = true},
      {.stage = 2, .as = Ranks::threads, .threads = 1, .saves = false},
      {.stage = 3, .as = Ranks::threads, .threads = 2, .saves = false},
      {.stage = 3, .as = Ranks::processes, .threads = 1, .saves = true},
      {.stage = 0, .as = Ranks::processes, .threads = 2, .saves = false},
      {.stage = 3, .more = "underkeel.recompute=none"},
      {.stage = 2, .more = "underkeel.recompute=cheap"},
      {.stage = 3, .more = "deepspeed.zero_optimization.stage3_prefetch_bucket_size=0"},
      {.stage = 1, .more = "underkeel.save.asynchronous=false"}};
  if (!is_thorough()) return chosen;
  for (int stage = 0; stage <= 3; ++stage)
    for (const Ranks as : {Ranks::threads, Ranks::processes})
      for (const int threads : {1, 2})
        for (const bool saves : {true, false})
          chosen.push_back({.stage = stage, .as = as, .threads = threads, .saves = saves});
  return chosen;
}

class SameBits : public testing::TestWithParam<int> {};

TEST_P(SameBits, OfWeightsAndMomentsWhateverTheStageTheTransportTheThreadsAndTheSaves) {
  const int ranks = GetParam();
  const RunnableCase made =
      complete_case("killed_in_save", {.zero_stage = 0, .type = ranks % 2 == 0 ? "float32" : ""});
  const std::vector<std::string> changes = {"max_steps=3", "save_steps=2"};
  const fs::path reference = made.folder / "reference";
  const Ended first = run_training(made, {.ranks = ranks, .output = reference, .changes = changes});
  ASSERT_EQ(first.exit_code, 0) << first.output;
  ASSERT_GT(steps(reference).at(3)["grad_norm"].get<double>(), 0);

  int number = 0;
  for (const Variant& variant : variants()) {
    if (variant.as == Ranks::processes && !UNDERKEEL_HAS_MPI) continue;
    SCOPED_TRACE(text_of(variant));
    TrainOptions options{.ranks = ranks,
                         .as = variant.as,
                         .output = made.folder / ("variant-" + std::to_string(number++)),
                         .changes = changes};
    options.changes.push_back("deepspeed.zero_optimization.stage=" + std::to_string(variant.stage));
    options.changes.push_back("underkeel.threads=" + std::to_string(variant.threads));
    if (!variant.saves) options.changes.emplace_back("save_strategy=no");
    if (!variant.more.empty()) options.changes.push_back(variant.more);

    const Ended ended = run_training(made, options);

    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_THAT(tensor_differences(reference, options.output), IsEmpty());
    if (variant.saves) {
      EXPECT_THAT(tensor_differences(reference / "checkpoint-3", options.output / "checkpoint-3"),
                  IsEmpty());
    }
    fs::remove_all(options.output);
  }
}

INSTANTIATE_TEST_SUITE_P(AtWorldSize, SameBits, testing::Values(1, 2, 3, 4));

TEST(SameBitsComparison, AreNotThereForAnotherSeed) {
  // What the comparisons above would say if something did change.
  const RunnableCase made = complete_case("killed_in_save", {.zero_stage = 0});
  for (const char* seed : {"1", "2"}) {
    const Ended ended = run_training(
        made,
        {.output = made.folder / seed, .changes = {"max_steps=2", std::string("seed=") + seed}});
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
  }

  EXPECT_THAT(tensor_differences(made.folder / "1", made.folder / "2"),
              testing::Contains("model.safetensors"));
}

}  // namespace
}  // namespace underkeel::test
