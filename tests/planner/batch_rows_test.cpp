#include "planner/batch_rows.h"

#include <gmock/gmock.h>

#include "planner/planner.h"
#include "support/planned.h"

namespace underkeel::planner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// 24 sequences of at most 2,048 tokens, evaluated 8 at a time.
spec::RunConfig run_of_24() {
  spec::RunConfig run;
  run.sequences_per_micro_batch = 24;
  run.evaluation = {.strategy = spec::Cadence::steps, .batch_size = 8};
  run.data.cutoff_tokens = 2048;
  return run;
}

spec::SampleSizes some_sizes() {
  return {.training = {.longest = 2000,
                       .tokens = {{1, 2000}, {24, 11913}},
                       .sample_count = 20000,
                       .token_count = 6000000,
                       .epochs = 3},
          .evaluation = {.longest = 900,
                         .tokens = {{8, 3100}},
                         .sample_count = 2,
                         .token_count = 600,
                         .epochs = 1}};
}

std::vector<std::string> texts(const spec::RunConfig& run) {
  std::vector<std::string> made;
  for (const plan::Decision& decision : decisions_on_rows(run)) {
    made.push_back(decision.subject + " = " + decision.value + ": " + decision.reason);
    for (const plan::Alternative& other : decision.alternatives)
      made.back() += "; " + other.value + " " + other.effect;
  }
  return made;
}

TEST(BatchRows, AreThoseOfTheCutOffUntilTheDataAreRead) {
  const spec::RunConfig run = run_of_24();

  const Request request = request_of(test::two_layer_model(), run, 1);

  EXPECT_EQ(request.max_rows, 24 * 2048);
  EXPECT_EQ(request.max_evaluation_rows, 8 * 2048);
  EXPECT_EQ(request.max_sequence_rows, 2048);
  EXPECT_THAT(texts(run), IsEmpty());
}

TEST(BatchRows, AreThoseOfTheLargestMetOnceTheDataAreRead) {
  spec::RunConfig run = run_of_24();
  run.data.samples = some_sizes();

  const Request request = request_of(test::two_layer_model(), run, 1);

  EXPECT_EQ(request.max_rows, 11913);
  EXPECT_EQ(request.max_evaluation_rows, 3100);
  EXPECT_EQ(request.max_sequence_rows, 2000);
  EXPECT_EQ(request.mean_rows, 24 * 300);
  EXPECT_EQ(request.mean_evaluation_rows, 8 * 300);
  EXPECT_THAT(
      texts(run),
      ElementsAre("largest micro-batch = 11,913 tokens: the most that 24 samples in a row have in "
                  "the order of 3 epochs of 20,000 samples; on average 7,200, which times are "
                  "forecast for; 24 x 2,000 48,000 tokens, were all of them as long as the longest",
                  "largest evaluation batch = 3,100 tokens: the most that 8 samples in a row have "
                  "in the order of 1 epoch of 2 samples; on average 2,400, which times are "
                  "forecast for; 8 x 900 7,200 tokens, were all of them as long as the longest"));
}

TEST(BatchRows, AreAsManyOfTheLongestWhereNobodyLooked) {
  spec::RunConfig run = run_of_24();
  run.data.samples = some_sizes();
  run.evaluation = {};
  run.data.samples->training.sample_count = 90'000'000;

  run.sequences_per_micro_batch = 7;
  const Request of_another = request_of(test::two_layer_model(), run, 1);
  run.sequences_per_micro_batch = 24;
  run.data.samples->training.tokens.clear();
  const Request of_too_many = request_of(test::two_layer_model(), run, 1);

  EXPECT_EQ(of_another.max_rows, 7 * 2000);
  EXPECT_EQ(of_too_many.max_rows, 24 * 2000);
  EXPECT_THAT(
      texts(run),
      ElementsAre("largest micro-batch = 48,000 tokens: 24 x 2,000, as if all were as long as the "
                  "longest: 90,000,000 samples in 3 epochs are too many to look for more; on "
                  "average 2, which times are forecast for"));
}

TEST(ShapeClasses, AreSixteenthsOfLargeBatchesAndEighthsOfOthers) {
  const auto classes = [](std::int64_t max_rows) {
    Request request = test::two_layer_request(0, 1);
    request.max_rows = max_rows;
    return make_plan(request).schedule.shape_classes;
  };

  EXPECT_THAT(classes(8191), ElementsAre(1024, 2048, 3072, 4096, 5120, 6144, 7168, 8191));
  EXPECT_THAT(classes(8192), ElementsAre(512, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 4608, 5120,
                                         5632, 6144, 6656, 7168, 7680, 8192));
  EXPECT_THAT(classes(11913), ElementsAre(768, 1536, 2304, 3072, 3840, 4480, 5248, 6016, 6784, 7552,
                                          8192, 8960, 9728, 10496, 11264, 11913));
}

}  // namespace
}  // namespace underkeel::planner
