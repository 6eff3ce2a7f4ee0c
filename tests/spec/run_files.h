#pragma once
// Run files in a folder of their own, for the tests of the run file and of the DeepSpeed config.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "spec/run_config.h"

namespace underkeel::spec {

class RunFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ =
        std::filesystem::temp_directory_path() / ("underkeel_" + std::to_string(::getpid()) + "_" +
                                                  test->test_suite_name() + "_" + test->name());
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
    return (root_ / name).string();
  }

  /// A run file that is complete, with `extra` lines.
  static std::string minimal(const std::string& extra = "") {
    return "model_name_or_path: models/tiny\noutput_dir: out\nstage: pt\nfinetuning_type: full\n"
           "do_train: true\ndataset: text\n" +
           extra;
  }
  Result<RunConfig> read(const std::string& yaml, const std::vector<std::string>& overrides = {},
                         const std::optional<WorldSize>& world = std::nullopt) {
    return read_run_file(write("train.yaml", yaml), overrides, world);
  }
  /// The minimal run file with a DeepSpeed JSON beside it.
  Result<RunConfig> read_with(const std::string& json, const std::string& extra = "",
                              const std::optional<WorldSize>& world = std::nullopt,
                              const std::vector<std::string>& overrides = {}) {
    const std::string path = write("ds_config.json", json);
    return read(minimal(extra + "deepspeed: " + path + "\n"), overrides, world);
  }
  static std::string text_of(const Result<RunConfig>& run) {
    return run ? "accepted" : to_text(run.error());
  }

  std::filesystem::path root_;
};

inline bool has_note(const RunConfig& run, const std::string& part) {
  for (const std::string& note : run.notes)
    if (note.find(part) != std::string::npos) return true;
  return false;
}

inline std::string source_of_key(const RunConfig& run, const std::string& key) {
  for (const Provenance& entry : run.provenance)
    if (entry.key == key) return entry.value + " from " + entry.source;
  return "absent";
}

}  // namespace underkeel::spec
