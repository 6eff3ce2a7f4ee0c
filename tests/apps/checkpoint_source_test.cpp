#include "train/checkpoint_source.h"

#include <filesystem>
#include <vector>

#include <gmock/gmock.h>

#include "apps/made_checkpoint.h"
#include "io/checkpoint.h"
#include "support/temporary_folder.h"
#include "support/tensor_files.h"

namespace underkeel::train {
namespace {

using test::value_of;
using testing::HasSubstr;

constexpr std::int64_t norm_elements = 64;
const plan::UnitTensor final_norm{
    .name = "model.norm.weight", .shape = {norm_elements}, .element_count = norm_elements};

class CheckpointSourceOfWeights : public testing::Test {
 protected:
  CheckpointSource source_without(const std::string& file) {
    const std::string checkpoint = test::make_checkpoint(folder_ / "run", test::tiny_model_json());
    io::Manifest manifest = value_of(io::read_manifest(files_, checkpoint));
    std::filesystem::remove(std::filesystem::path(checkpoint) / file);
    return CheckpointSource(files_, {.folder = checkpoint, .manifest = std::move(manifest)});
  }

  test::TemporaryFolder folder_;
  io::FileSystem files_;
  std::vector<float> values_ = std::vector<float>(norm_elements, -7.0f);
};

TEST_F(CheckpointSourceOfWeights, AreTheStoredWeightsWhenTheMasterFileIsGone) {
  CheckpointSource source = source_without("master.safetensors");

  const auto read =
      source.read(final_norm, plan::StatePart::weights, 0, norm_elements, values_.data());

  ASSERT_TRUE(read) << to_text(read.error());
  EXPECT_THAT(values_, testing::Each(testing::Ne(-7.0f)));
}

TEST_F(CheckpointSourceOfWeights, SaysThatMomentsAreMissingWhenTheirFileIsGone) {
  CheckpointSource source = source_without("exp_avg.safetensors");

  const auto read =
      source.read(final_norm, plan::StatePart::moment1, 0, norm_elements, values_.data());

  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().what, HasSubstr("exp_avg.model.norm.weight"));
  EXPECT_THAT(read.error().fix, HasSubstr("resume_weights_only"));
}

}  // namespace
}  // namespace underkeel::train
