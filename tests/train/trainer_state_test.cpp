#include "train/trainer_state.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/value_of.h"

namespace underkeel::train {
namespace {

using nlohmann::json;
using test::value_of;

TrainerState some_state() {
  TrainerState state;
  state.step = 4;
  state.total_steps = 10;
  state.epoch = 1.0 / 3;
  state.epochs_planned = 2.5;
  state.logging_steps = 2;
  state.save_steps = 4;
  state.evaluation_steps = 5;
  state.sequences_per_micro_batch = 8;
  state.tokens_seen = 1'234'567'890'123;
  state.flops = 1.5e18;
  state.logging_loss_sum = 0.1 + 0.2;
  state.logging_loss_count = 1;
  state.loss_sum = 12.25;
  state.elapsed_s = 1e-5;
  state.history = {
      {.kind = LogEntry::Kind::training, .step = 2, .epoch = 0.1, .values = {0.7, 5e-5, 2.0}},
      {.kind = LogEntry::Kind::evaluation, .step = 4, .epoch = 0.2, .values = {1.0 / 7, 1, 2, 3}},
      {.kind = LogEntry::Kind::summary, .step = 4, .epoch = 0.2, .values = {1, 2, 3, 4, 5}}};
  return state;
}

TEST(TrainerState, ReadsBackToTheSameBits) {
  const TrainerState state = some_state();

  EXPECT_EQ(value_of(TrainerState::from_json(state.to_json(), "manifest.json")), state);
}

TEST(TrainerState, TextIsWhatSortedJsonWithTwoSpacesIs) {
  for (TrainerState state : {TrainerState(), some_state()}) {
    const std::string text = state.to_json();

    // nlohmann sorts keys and prints as Python's json.dumps(indent=2, sort_keys=True) does.
    EXPECT_EQ(text, json::parse(text).dump(2) + "\n");
  }
}

TEST(TrainerState, HasTheFieldsOfTransformersAndNoOthers) {
  const json root = json::parse(some_state().to_json());

  std::vector<std::string> keys;
  for (const auto& item : root.items()) keys.push_back(item.key());
  const std::vector<std::string> expected{"best_global_step",
                                          "best_metric",
                                          "best_model_checkpoint",
                                          "epoch",
                                          "eval_steps",
                                          "global_step",
                                          "is_hyper_param_search",
                                          "is_local_process_zero",
                                          "is_world_process_zero",
                                          "log_history",
                                          "logging_steps",
                                          "max_steps",
                                          "num_input_tokens_seen",
                                          "num_train_epochs",
                                          "save_steps",
                                          "stateful_callbacks",
                                          "total_flos",
                                          "train_batch_size",
                                          "trial_name",
                                          "trial_params"};
  EXPECT_EQ(keys, expected);
  EXPECT_EQ(root.at("log_history").at(0),
            json::parse(R"({"epoch": 0.1, "grad_norm": 0.7, "learning_rate": 5e-05,
                            "loss": 2.0, "step": 2})"));
}

TEST(TrainerState, AValueThatIsNotFiniteBecomesNull) {
  TrainerState state = some_state();
  state.history[0].values[0] = std::numeric_limits<double>::infinity();

  const TrainerState back = value_of(TrainerState::from_json(state.to_json(), "manifest.json"));

  EXPECT_TRUE(std::isnan(back.history[0].value("grad_norm")));
  EXPECT_EQ(back.history[0].value("loss"), 2.0);
}

TEST(TrainerState, ReadsAFileOfTheTrainerWithEntriesOfItsOwn) {
  const TrainerState state = value_of(TrainerState::from_json(
      R"({"global_step": 3, "max_steps": 6, "epoch": 1.5, "train_batch_size": null,
          "log_history": [{"step": 1, "epoch": 0.5, "loss": 3.5, "learning_rate": 0.1},
                          {"step": 2, "rewards": 1}]})",
      "trainer_state.json"));

  EXPECT_EQ(state.step, 3);
  ASSERT_EQ(state.history.size(), 1u);
  EXPECT_EQ(state.history[0].value("loss"), 3.5);
  EXPECT_TRUE(std::isnan(state.history[0].value("grad_norm")));
}

TEST(TrainerState, NamesTheFileWhenItCannotBeRead) {
  for (const char* text : {"", "[]", "{}", R"({"global_step": "three", "log_history": []})"}) {
    const auto state = TrainerState::from_json(text, "checkpoint-3/manifest.json");

    ASSERT_FALSE(state) << text;
    EXPECT_EQ(state.error().code, ErrorCode::bad_file);
    EXPECT_EQ(state.error().where, "checkpoint-3/manifest.json");
  }
}

TEST(TrainerState, IsWrittenInPiecesOfBoundedSizeHoweverLongItsHistoryIs) {
  TrainerState state;
  state.best = {.value = 1.5, .step = 7, .checkpoint = "out/checkpoint-7", .evaluations_since = 2};
  for (std::int64_t step = 1; step <= 5000; ++step)
    state.history.push_back({.kind = LogEntry::Kind::training,
                             .step = step,
                             .epoch = static_cast<double>(step) / 3,
                             .values = {0.5, 1e-3, 2.0}});
  std::string text;
  std::size_t longest = 0;

  value_of(state.write_json([&](std::string_view piece) -> Result<void> {
    longest = std::max(longest, piece.size());
    text += piece;
    return {};
  }));

  EXPECT_GT(text.size(), 500'000u);
  EXPECT_LT(longest, 70'000u);
  EXPECT_EQ(text, state.to_json());
  EXPECT_EQ(value_of(TrainerState::from_json(text, "trainer_state.json")), state);
  const TrainerState small = state.without_history();
  EXPECT_EQ(small.best, state.best);
  EXPECT_TRUE(small.history.empty());
}

TEST(TrainerState, StopsWritingAtTheFirstError) {
  TrainerState state;
  const auto written = state.write_json(
      [](std::string_view) { return fail(ErrorCode::io, "disk full", "trainer_state.json"); });

  EXPECT_EQ(written.error().code, ErrorCode::io);
}

TEST(JsonNumber, KeepsAPointOrAnExponent) {
  EXPECT_EQ(json_number(1), "1.0");
  EXPECT_EQ(json_number(-0.25), "-0.25");
  EXPECT_EQ(json_number(5e-5), "5e-05");
  EXPECT_EQ(json_number(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(json_number(std::numeric_limits<double>::quiet_NaN()), "null");
}

}  // namespace
}  // namespace underkeel::train
