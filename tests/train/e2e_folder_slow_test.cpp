// What a run does with an output folder that is not its own alone: another run's checkpoints, a damaged
// one, another run at the same time.

#include <functional>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include "support/tensor_files.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class OutputFolder : public testing::Test {
 protected:
  Ended run_to(int steps, std::vector<std::string> changes) {
    changes.push_back("max_steps=" + std::to_string(steps));
    return run_training(made_, {.changes = std::move(changes)});
  }
  RunnableCase made_ = complete_case("save_after_each_step");
};

TEST_F(OutputFolder, KeepsAnEarlierRunsCheckpointsOutOfRotationAndResume) {
  ASSERT_EQ(run_to(6, {"save_steps=3"}).exit_code, 0);

  const Ended anew = run_to(4, {"save_steps=1", "save_total_limit=2", "overwrite_output_dir=true"});

  EXPECT_EQ(anew.exit_code, 0) << anew.output;
  EXPECT_THAT(complete_steps(made_.output), ElementsAre(4, 3));
  EXPECT_THAT(complete_steps(made_.output / "earlier"), ElementsAre(6, 3));
  EXPECT_THAT(anew.output, HasSubstr("set aside as"));
  EXPECT_THAT(anew.output, HasSubstr("earlier now holds 2 checkpoints with "));
  const Ended further = run_to(5, {"save_steps=1", "overwrite_output_dir=false"});
  EXPECT_THAT(further.output, HasSubstr("going on after step 4 of 5"));
}

TEST_F(OutputFolder, WithADamagedCheckpointIsRefusedBeforeAStepIsTaken) {
  ASSERT_EQ(run_to(2, {"save_steps=1"}).exit_code, 0);
  const fs::path file = made_.output / "checkpoint-2/exp_avg_sq.safetensors";
  std::string bytes = read_text(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_text(file, bytes);

  const Ended ended = run_to(4, {"save_steps=1", "overwrite_output_dir=false"});

  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("the checkpoint is damaged"));
  EXPECT_THAT(ended.output, HasSubstr("exp_avg_sq.safetensors"));
  const Ended older =
      run_to(4, {"save_steps=1", "overwrite_output_dir=false",
                 "resume_from_checkpoint=" + (made_.output / "checkpoint-1").string()});
  EXPECT_EQ(older.exit_code, 0) << older.output;
}

TEST_F(OutputFolder, SaysWhyItsNewestCheckpointIsPassedOver) {
  ASSERT_EQ(run_to(2, {"save_steps=1"}).exit_code, 0);
  ASSERT_TRUE(fs::remove(made_.output / "checkpoint-2/exp_avg.safetensors"));

  const Ended ended = run_to(3, {"save_steps=1", "overwrite_output_dir=false"});

  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("checkpoint-2 is no checkpoint to go on from: "));
  EXPECT_THAT(ended.output, HasSubstr("going on after step 1 of 3"));
}

TEST_F(OutputFolder, IsRefusedWhileAnotherRunHoldsIt) {
  fs::create_directories(made_.output);
  const int held = ::open(made_.output.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);

  const Ended ended = run_to(2, {});

  ::close(held);
  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("another run writes into this output folder"));
}

class ModelFolder : public testing::Test {
 protected:
  void change(const std::function<void(StoredTensors&)>& how) {
    StoredTensors tensors = read_tensors(made_.model / "model.safetensors");
    how(tensors);
    write_tensors(made_.model / "model.safetensors", tensors);
  }
  Ended run() { return run_training(made_, {.changes = {"max_steps=1"}}); }
  RunnableCase made_ = complete_case("tied_head");
};

TEST_F(ModelFolder, WithTensorsThatTheModelHasNoPlaceForIsUsedAndToldSo) {
  change([](StoredTensors& tensors) {
    tensors["v_head.summary.weight"] = stored(DType::f32, {2}, {1, 2});
  });

  const Ended ended = run();

  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("not part of this model and passed over: 1 tensor"));
  EXPECT_THAT(ended.output, HasSubstr("v_head.summary.weight"));
}

TEST_F(ModelFolder, WhoseTiedHeadIsAnotherTensorIsRefusedBeforeTheDataAreRead) {
  change([](StoredTensors& tensors) {
    StoredTensor head = tensors.at("model.embed_tokens.weight");
    head.bytes[0] ^= std::byte{1};
    tensors["lm_head.weight"] = head;
  });

  const Ended ended = run();

  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("differ, though the model ties them"));
  EXPECT_FALSE(fs::exists(made_.output / "token_cache"));
}

TEST_F(ModelFolder, WithOneTensorTooFewIsRefusedBeforeTheDataAreRead) {
  change([](StoredTensors& tensors) { tensors.erase("model.norm.weight"); });

  const Ended ended = run();

  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("model.norm.weight"));
  EXPECT_FALSE(fs::exists(made_.output / "token_cache"));
}

TEST_F(ModelFolder, IsNotTrainedOnEmptyTexts) {
  write_text(made_.data / "empty.txt", "\n\n\n\n");
  write_text(made_.data / "dataset_info.json",
             R"({"empty": {"file_name": "empty.txt", "columns": {"prompt": "text"}}})");

  const Ended ended =
      run_training(made_, {.changes = {"max_steps=1", "dataset=empty", "packing=false"}});

  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("none of 4 texts has a token to predict"));
}

}  // namespace
}  // namespace underkeel::test
