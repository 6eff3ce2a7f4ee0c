#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "spec/model_spec.h"

namespace underkeel::spec {
namespace {

namespace fs = std::filesystem;

/// A folder of its own with a cache of Hugging Face in it; the environment points there.
class ModelFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() /
            ("underkeel_model_folder_" + std::to_string(::getpid()) + "_" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_);
    ::setenv("HF_HOME", root_.c_str(), 1);
    ::unsetenv("HF_HUB_CACHE");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
};

constexpr const char* tiny_llama = R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 8,
  "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2})";

TEST_F(ModelFolder, IsTheFolderItselfWhenItExists) {
  write("model/config.json", tiny_llama);

  const auto model = read_model_config(root_ / "model");

  ASSERT_TRUE(model.has_value()) << to_text(model.error());
  EXPECT_EQ(model->width, 8);
}

TEST_F(ModelFolder, IsTheSnapshotOfAHubNameInTheCache) {
  write("hub/models--org--tiny.v1/refs/main", "abc123\n");
  write("hub/models--org--tiny.v1/snapshots/abc123/config.json", tiny_llama);

  const auto folder = find_model_folder("org/tiny.v1");

  ASSERT_TRUE(folder.has_value()) << to_text(folder.error());
  EXPECT_EQ(*folder, root_ / "hub/models--org--tiny.v1/snapshots/abc123");
  EXPECT_TRUE(read_model_config("org/tiny.v1").has_value());
}

TEST_F(ModelFolder, LooksInTheCacheThatTheEnvironmentNames) {
  ::setenv("HF_HUB_CACHE", (root_ / "other").c_str(), 1);
  write("other/models--org--tiny/refs/main", "f00");
  write("other/models--org--tiny/snapshots/f00/config.json", tiny_llama);

  EXPECT_TRUE(find_model_folder("org/tiny").has_value());
  ::unsetenv("HF_HUB_CACHE");
}

TEST_F(ModelFolder, SaysHowToDownloadAHubNameThatIsNotThere) {
  const auto folder = find_model_folder("org/absent");

  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().code, ErrorCode::not_found);
  EXPECT_EQ(folder.error().what,
            "`org/absent` is neither a folder nor in the local Hugging Face cache");
  EXPECT_EQ(folder.error().where, (root_ / "hub/models--org--absent").string());
  EXPECT_EQ(folder.error().fix, "hf download org/absent");
}

TEST_F(ModelFolder, LooksForAHubNameWithoutAnOwnerInTheCacheToo) {
  write("hub/models--gpt-tiny/refs/main", "f00");
  write("hub/models--gpt-tiny/snapshots/f00/config.json", tiny_llama);

  EXPECT_TRUE(find_model_folder("gpt-tiny").has_value());
  const auto absent = find_model_folder("gpt-absent");
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().what,
            "`gpt-absent` is neither a folder nor in the local Hugging Face cache");
  EXPECT_EQ(absent.error().where, (root_ / "hub/models--gpt-absent").string());
  EXPECT_EQ(absent.error().fix, "hf download gpt-absent");
}

TEST_F(ModelFolder, NeverFollowsAReferenceOutOfTheCache) {
  write("hub/models--org--evil/refs/main", "../../../..");

  EXPECT_FALSE(find_model_folder("org/evil").has_value());
}

TEST_F(ModelFolder, RefusesPathsThatAreNoFolder) {
  write("model/config.json", tiny_llama);
  write("adapter/adapter_config.json", "{}");

  EXPECT_EQ(find_model_folder((root_ / "model/config.json").string()).error().what,
            "a model folder is wanted, this is a file");
  EXPECT_EQ(find_model_folder("./missing/folder").error().what, "the model folder is not there");
  EXPECT_EQ(find_model_folder("../evil").error().what, "the model folder is not there");
  const auto adapter = read_model_config(root_ / "adapter");
  EXPECT_EQ(adapter.error().what, "the model folder has no config.json");
  EXPECT_EQ(adapter.error().fix, "this folder holds an adapter: name the base model's folder");
}

}  // namespace
}  // namespace underkeel::spec
