#include "io/checkpoint_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.h"

namespace underkeel::io {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A 7B model: 6,738,415,616 parameters, 16-bit weights and fp32 state.
SpaceNeed seven_billion(std::int64_t save_total_limit) {
  return {.checkpoint_bytes = 6'738'415'616 * 14,
          .save_count = 10,
          .save_total_limit = save_total_limit};
}

TEST(CheckpointSpace, CountsTheOneBeingWrittenBesideTheLimit) {
  EXPECT_EQ(checkpoints_at_once(seven_billion(3)), 4);
  EXPECT_EQ(needed_bytes(seven_billion(3)), 4 * 6'738'415'616 * 14);
}

TEST(CheckpointSpace, KeepsAllWithoutALimit) {
  EXPECT_EQ(checkpoints_at_once(seven_billion(0)), 10);
  EXPECT_EQ(checkpoints_at_once({.save_count = 2, .save_total_limit = 5}), 2);
}

TEST(CheckpointSpace, HoldsTheFinalModelAgainstTheCheckpointsThatAreKept) {
  SpaceNeed need = seven_billion(3);
  need.export_bytes = 6'738'415'616 * 2;
  // Four while the last is written; afterwards three and the model, which is less.
  EXPECT_EQ(needed_bytes(need), 377'351'274'496);
  need.export_bytes = 6'738'415'616 * 28;
  EXPECT_EQ(needed_bytes(need), (3 * 14 + 28) * 6'738'415'616);
  need.afterwards_bytes = 7;
  EXPECT_EQ(needed_bytes(need), (3 * 14 + 28) * 6'738'415'616 + 7);
  need.save_total_limit = 0;  // all ten stay
  EXPECT_EQ(needed_bytes(need), (10 * 14 + 28) * 6'738'415'616 + 7);
}

TEST(CheckpointSpace, KeepsTheBestOneBesideTheNewest) {
  SpaceNeed need = seven_billion(1);
  need.spared_count = 1;
  EXPECT_EQ(checkpoints_at_once(need), 3);  // the best, the last and the one being written
  EXPECT_EQ(checkpoints_at_end(need), 2);
  EXPECT_EQ(most_at_once(need), 3);
  need.save_total_limit = 3;  // the best one is among them
  EXPECT_EQ(checkpoints_at_once(need), 4);
  EXPECT_EQ(checkpoints_at_end(need), 3);
  need.save_count = 2;
  EXPECT_EQ(checkpoints_at_once(need), 2);

  need.save_count = 10;
  need.save_total_limit = 1;
  EXPECT_THAT(check_space(need, 250 * gibibyte, "out").error().what,
              HasSubstr("3 checkpoints of 94,337,818,624 bytes (87.9 GiB) stand there at once "
                        "(save_total_limit 1, the best one and the one being written)"));
}

TEST(CheckpointSpace, CountsWhatStandsThereAlready) {
  SpaceNeed need{
      .checkpoint_bytes = 10, .save_count = 8, .save_total_limit = 3, .standing_count = 3};
  EXPECT_EQ(needed_bytes(need), 10);
  need.standing_count = 5;  // from a run with a larger limit
  EXPECT_EQ(needed_bytes(need), 10);
  need.standing_count = 1;
  EXPECT_EQ(needed_bytes(need), 30);
  need.save_count = 0;
  need.export_bytes = 7;
  EXPECT_EQ(needed_bytes(need), 7);
}

TEST(CheckpointSpace, RefusesWithTheLargestLimitThatFits) {
  const auto result = check_space(seven_billion(3), 250 * gibibyte, "out");

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::does_not_fit);
  EXPECT_THAT(result.error().what, HasSubstr("377,351,274,496 bytes (351 GiB) needed"));
  EXPECT_THAT(result.error().what, HasSubstr("268,435,456,000 bytes (250 GiB) free"));
  EXPECT_THAT(result.error().what, HasSubstr("4 checkpoints of 94,337,818,624 bytes"));
  EXPECT_THAT(result.error().fix, HasSubstr("save_total_limit: 1"));
  EXPECT_EQ(result.error().where, "out");
  EXPECT_TRUE(check_space(seven_billion(1), 250 * gibibyte, "out"));
}

TEST(CheckpointSpace, SaysHowMuchToFreeWhenNoLimitHelps) {
  const auto result = check_space(seven_billion(3), 100 * gibibyte, "out");

  EXPECT_THAT(result.error().fix, HasSubstr("free 269,977,092,096 bytes"));
}

TEST(CheckpointSpace, NamesEachKeyThatFitsWithWhatIsThenNeeded) {
  SpaceNeed need = seven_billion(3);
  need.export_bytes = 6'738'415'616 * 2;

  const auto roomy = check_space(need, 120 * gibibyte, "out");
  const auto narrow = check_space(need, 20 * gibibyte, "out");
  const auto none = check_space(need, 10 * gibibyte, "out");

  EXPECT_THAT(roomy.error().what,
              HasSubstr(", then 3 and the final model of 13,476,831,232 bytes"));
  EXPECT_THAT(roomy.error().fix, Not(HasSubstr("save_total_limit")));
  EXPECT_THAT(roomy.error().fix,
              HasSubstr("save_only_model: true (nothing to resume from) -> 53,907,324,928 bytes"));
  EXPECT_THAT(roomy.error().fix, HasSubstr("save_strategy: \"no\" (the final model alone) -> "
                                           "13,476,831,232 bytes"));
  EXPECT_THAT(narrow.error().fix, Not(HasSubstr("save_only_model")));
  EXPECT_THAT(narrow.error().fix, HasSubstr("save_strategy: \"no\""));
  EXPECT_THAT(check_space(need, 50 * gibibyte, "out").error().fix,
              HasSubstr("save_only_model: true (nothing to resume from) and save_total_limit: 2 -> "
                        "40,430,493,696 bytes"));
  EXPECT_THAT(none.error().fix, testing::StartsWith("free "));
}

TEST(CheckpointSpace, OfARunThatSavesNothingIsTheFinalModel) {
  const auto result = check_space({.checkpoint_bytes = 100, .export_bytes = 20}, 10, "out");

  EXPECT_THAT(result.error().what,
              HasSubstr("the model that is saved at the end does not fit the disk: 20 bytes"));
  EXPECT_EQ(result.error().fix, "free 10 bytes (10 B)");
}

}  // namespace
}  // namespace underkeel::io
