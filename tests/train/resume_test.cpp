// What a checkpoint keeps of the loop, read back.

#include "train/resume.h"

#include <functional>

#include <gmock/gmock.h>

#include "support/model_folder.h"
#include "support/temporary_folder.h"
#include "support/text_files.h"
#include "support/value_of.h"
#include "train/same_run.h"

namespace underkeel::train {
namespace {

using testing::HasSubstr;

Progress some_progress() {
  return {.step = 7,
          .position = {.epoch = 1, .samples = 24},
          .trainer_state = R"({"epoch": 1.5})",
          .data = DataIdentity{.samples = "00112233445566ff",
                               .sample_count = 48,
                               .seed = 42,
                               .shuffle = true,
                               .drop_last = false}};
}

TEST(LoopState, ComesBackAsItWasWritten) {
  const Progress written = some_progress();

  const Progress read = test::value_of(Progress::from_json(written.to_json(), "here"));

  EXPECT_EQ(read.step, written.step);
  EXPECT_EQ(read.position, written.position);
  EXPECT_EQ(read.trainer_state, written.trainer_state);
  EXPECT_EQ(read.data, written.data);
}

TEST(LoopState, OfAnOlderVersionNamesNoSamples) {
  Progress written = some_progress();
  written.data.reset();

  EXPECT_FALSE(test::value_of(Progress::from_json(written.to_json(), "here")).data);
}

TEST(LoopState, ThatNoRunComesToIsRefused) {
  Progress negative = some_progress();
  negative.step = -1;
  Progress too_many_epochs = some_progress();
  too_many_epochs.position.epoch = 8;
  Progress beyond_the_epoch = some_progress();
  beyond_the_epoch.position.samples = 48;
  Progress before_its_start = some_progress();
  before_its_start.position.samples = -3;

  for (const Progress& wild : {negative, too_many_epochs, beyond_the_epoch, before_its_start}) {
    const auto read = Progress::from_json(wild.to_json(), "here");

    ASSERT_FALSE(read) << wild.to_json();
    EXPECT_EQ(read.error().code, ErrorCode::bad_file);
    EXPECT_THAT(read.error().what, HasSubstr("is impossible"));
  }
}

TEST(LoopState, ThatIsNoneIsRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"step": 1, "epoch": 0, "samples": 0})",
        R"({"step": 1.5, "epoch": 0, "samples": 0, "trainer_state": ""})",
        R"({"step": "1", "epoch": 0, "samples": 0, "trainer_state": ""})",
        R"({"step": 1, "epoch": 0, "samples": 0, "trainer_state": "", "data": 3})",
        R"({"step": 1, "epoch": 0, "samples": 0, "trainer_state": "", "data": {"count": 1}})",
        R"({"step": 1e30, "epoch": 0, "samples": 0, "trainer_state": ""})"}) {
    const auto read = Progress::from_json(text, "here");

    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().where, "here");
  }
}

/// A checkpoint with nothing but the description of its model, and a run that goes on from it.
class SameRun : public testing::Test {
 protected:
  Result<std::vector<std::string>> check(const std::function<void(spec::ModelSpec&)>& change) {
    spec::ModelSpec model = test::value_of(spec::read_model_config(folder_.path()));
    change(model);
    Resume resume;
    resume.checkpoint.folder = folder_.path().string();
    resume.progress = some_progress();
    return check_same_run(
        files_, resume,
        {.run = run_, .model = model, .data = *resume.progress.data, .sequences_per_step = 8});
  }
  void write_config(const std::string& rope) {
    std::string config = test::tiny_model_json();
    config.insert(config.rfind('}'), rope);
    test::write_text(folder_ / "config.json", test::complete_config(config));
  }
  test::TemporaryFolder folder_;
  io::FileSystem files_;
  spec::RunConfig run_;
};

TEST_F(SameRun, IsNotOneOfAnotherModelWhateverDiffers) {
  write_config(R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                     "original_max_position_embeddings": 32})");
  ASSERT_TRUE(check([](spec::ModelSpec&) {}));
  const std::map<std::string, std::function<void(spec::ModelSpec&)>> changes = {
      {"architectures", [](auto& m) { m.architecture = "Other"; }},
      {"vocab_size", [](auto& m) { ++m.vocabulary; }},
      {"hidden_size", [](auto& m) { ++m.width; }},
      {"intermediate_size", [](auto& m) { ++m.feed_forward; }},
      {"num_hidden_layers", [](auto& m) { ++m.layers; }},
      {"num_attention_heads", [](auto& m) { ++m.query_heads; }},
      {"num_key_value_heads", [](auto& m) { ++m.key_heads; }},
      {"head_dim", [](auto& m) { ++m.head_width; }},
      {"rms_norm_eps", [](auto& m) { m.norm_epsilon *= 2; }},
      {"attention_bias of q, k, v", [](auto& m) { m.qkv_bias ^= true; }},
      {"attention_bias of o", [](auto& m) { m.output_bias ^= true; }},
      {"mlp_bias", [](auto& m) { m.mlp_bias ^= true; }},
      {"norms of q and k", [](auto& m) { m.qk_norm ^= true; }},
      {"tie_word_embeddings", [](auto& m) { m.tied_head ^= true; }},
      {"sliding windows", [](auto& m) { m.windows[0] = 7; }},
      {"rope_type", [](auto& m) { m.rope.type = spec::RopeType::linear; }},
      {"rope_theta", [](auto& m) { m.rope.theta += 1; }},
      {"rope factor", [](auto& m) { m.rope.factor += 1; }},
      {"rope original_max_position_embeddings",
       [](auto& m) { ++m.rope.original_max_position_embeddings; }},
      {"rope beta_fast", [](auto& m) { m.rope.beta_fast += 1; }},
      {"rope beta_slow", [](auto& m) { m.rope.beta_slow += 1; }},
      {"rope truncate", [](auto& m) { m.rope.truncate ^= true; }},
      {"rope attention_factor", [](auto& m) { m.rope.attention_scaling += 1; }}};
  for (const auto& [name, change] : changes) {
    const auto checked = check(change);

    ASSERT_FALSE(checked) << name;
    EXPECT_EQ(checked.error().code, ErrorCode::bad_config);
    EXPECT_THAT(checked.error().what, HasSubstr(name + " was"));
  }
}

TEST_F(SameRun, DoesNotMindValuesThatPlainRotationDoesNotRead) {
  write_config("");

  EXPECT_TRUE(check([](spec::ModelSpec& model) {
    model.rope.original_max_position_embeddings *= 2;
    model.max_position_embeddings *= 2;
    model.rope.factor = 3;
  }));
}

TEST_F(SameRun, TellsAnotherSizeOfAStepAndHowToKeepIt) {
  write_config("");
  Resume resume;
  resume.checkpoint.folder = folder_.path().string();
  resume.progress = some_progress();
  resume.progress.sequences_per_step = 16;
  run_.accumulation_steps = 2;

  const auto notes =
      check_same_run(files_, resume,
                     {.run = run_,
                      .model = test::value_of(spec::read_model_config(folder_.path())),
                      .data = *resume.progress.data,
                      .sequences_per_step = 8});

  ASSERT_TRUE(notes);
  EXPECT_THAT(*notes, testing::Contains(HasSubstr("took 16 sequences and takes 8")));
  EXPECT_THAT(*notes, testing::Contains(HasSubstr("gradient_accumulation_steps=4")));
}

}  // namespace
}  // namespace underkeel::train
