// doctor on one checkpoint folder: the whole state, not its weights alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "apps/made_checkpoint.h"

namespace underkeel::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class DoctorCheckpoint : public testing::Test {
 protected:
  Json ask(int exit_code, const std::string& more = "") const {
    const Ran ran = run_underkeel("doctor --json " + folder_ + more);
    EXPECT_EQ(ran.exit_code, exit_code) << ran.out << ran.error;
    return Json::parse(ran.out)["findings"];
  }
  static std::string message(const Json& findings, std::string_view id) {
    for (const Json& finding : findings)
      if (finding["id"] == id) return finding["message"];
    return "no " + std::string(id) + ": " + findings.dump();
  }
  /// Rewrites the manifest as `change` makes it.
  template <class Change>
  void change_manifest(Change&& change) const {
    Json manifest = Json::parse(read_text(folder_ + "/manifest.json"));
    change(manifest);
    write_text(folder_ + "/manifest.json", manifest.dump());
  }

  TemporaryFolder output_;
  std::string folder_ = make_checkpoint(output_.path(), tiny_model_json());
};

TEST_F(DoctorCheckpoint, SeesAWholeState) {
  const Json findings = ask(0);

  EXPECT_THAT(message(findings, "checkpoint-state-whole"),
              HasSubstr("weights, master, exp_avg, exp_avg_sq"));
  EXPECT_THAT(message(findings, "checkpoint-checksums"), HasSubstr("all of it"));
  EXPECT_THAT(message(findings, "weights-finite"), HasSubstr("all of it"));
}

TEST_F(DoctorCheckpoint, SeesThatATensorOfTheStateIsMissing) {
  change_manifest([](Json& manifest) {
    auto& tensors = manifest["tensors"];
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i]["name"] == "exp_avg.model.norm.weight") {
        tensors.erase(i);
        break;
      }
  });

  const Json findings = ask(2);

  EXPECT_THAT(message(findings, "checkpoint-state-lacks"),
              HasSubstr("tensors of exp_avg are missing; the first is exp_avg.model.norm.weight"));
}

TEST_F(DoctorCheckpoint, SeesThatAMomentIsMissingAltogether) {
  change_manifest([](Json& manifest) {
    Json kept = Json::array();
    for (const Json& tensor : manifest["tensors"])
      if (!tensor["name"].get<std::string>().starts_with("exp_avg_sq.")) kept.push_back(tensor);
    manifest["tensors"] = kept;
  });

  EXPECT_THAT(message(ask(2), "checkpoint-state-lacks"), HasSubstr("tensors of exp_avg_sq"));
}

TEST_F(DoctorCheckpoint, SeesThatAFileIsGone) {
  std::filesystem::remove(folder_ + "/exp_avg.safetensors");

  EXPECT_THAT(message(ask(2), "checkpoint-broken"), HasSubstr("exp_avg.safetensors"));
}

TEST_F(DoctorCheckpoint, OffersTheWeightsAloneWhereTheyAreWhole) {
  const std::string output = output_.path().string();
  const auto ask_output = [&] {
    return Json::parse(run_underkeel("doctor --json " + output).out)["findings"];
  };
  std::filesystem::remove(folder_ + "/master.safetensors");

  const Json findings = ask_output();

  EXPECT_THAT(message(findings, "checkpoint-lacks-state"), HasSubstr("master.safetensors"));
  EXPECT_THAT(message(findings, "checkpoint-not-complete"), HasSubstr("no checkpoint-not"));
  EXPECT_THAT(run_underkeel("doctor " + output).out,
              HasSubstr("resume_from_checkpoint: " + folder_ +
                        " with underkeel.resume_weights_only: true"));
  std::filesystem::remove(folder_ + "/model.safetensors");
  EXPECT_THAT(message(ask_output(), "checkpoint-not-complete"), HasSubstr("never to be resumed"));
}

TEST_F(DoctorCheckpoint, OffersNoWeightsWhoseMasterCopyIsCutOff) {
  const std::string output = output_.path().string();
  const auto told = [&](const std::string& path) { return run_underkeel("doctor " + path).out; };
  const std::string bytes = read_text(folder_ + "/master.safetensors");
  // A resume with weights alone reads the master copy wherever it stands.
  write_text(folder_ + "/master.safetensors", bytes.substr(0, 1000));
  EXPECT_THAT(told(output), testing::Not(HasSubstr("resume_weights_only")));
  EXPECT_THAT(told(folder_), testing::Not(HasSubstr("resume_weights_only")));
  write_text(folder_ + "/master.safetensors", bytes);

  const std::string moment = read_text(folder_ + "/exp_avg.safetensors");
  write_text(folder_ + "/exp_avg.safetensors", moment.substr(0, 1000));
  EXPECT_THAT(told(output), HasSubstr("underkeel.resume_weights_only: true"));
  EXPECT_THAT(told(folder_), HasSubstr("whose files are sound: resume_from_checkpoint: " + folder_ +
                                       " with underkeel.resume_weights_only: true"));
  write_text(folder_ + "/exp_avg.safetensors", moment);
  std::string changed = bytes;
  changed[bytes.size() - 5] = static_cast<char>(changed[bytes.size() - 5] ^ 1);
  write_text(folder_ + "/master.safetensors", changed);
  EXPECT_THAT(told(folder_), testing::Not(HasSubstr("resume_weights_only")));
}

TEST_F(DoctorCheckpoint, SeesThatItsGlobalBatchIsAnother) {
  change_manifest([](Json& manifest) { manifest["state"] = R"({"sequences_per_step": 12})"; });
  const std::string run = (output_.path() / "train.yaml").string();
  write_text(run,
             "stage: sft\nfinetuning_type: full\ndataset: data\nper_device_train_batch_size: 1\n"
             "gradient_accumulation_steps: 3\nresume_from_checkpoint: " +
                 folder_ + "\n");
  const auto ask_ranks = [&](const char* ranks) {
    return Json::parse(run_underkeel("doctor --json " + run + " --ranks " + ranks).out)["findings"];
  };

  EXPECT_THAT(message(ask_ranks("6"), "checkpoint-of-other-batch"),
              HasSubstr("a global batch of 12, while this run has 1 x 3 x 6 = 18"));
  EXPECT_THAT(run_underkeel("doctor " + run + " --ranks 6").out,
              HasSubstr("gradient_accumulation_steps: 2"));
  EXPECT_THAT(message(ask_ranks("4"), "checkpoint-of-other-batch"), HasSubstr("no checkpoint-of"));
}

TEST_F(DoctorCheckpoint, SeesAManifestThatEndsInTheMiddle) {
  const std::string text = read_text(folder_ + "/manifest.json");
  write_text(folder_ + "/manifest.json", text.substr(0, text.size() / 2));

  EXPECT_THAT(message(ask(2), "checkpoint-broken"), HasSubstr("manifest.json"));
}

TEST_F(DoctorCheckpoint, SeesAChangedByteByItsChecksum) {
  std::string bytes = read_text(folder_ + "/master.safetensors");
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 1);
  write_text(folder_ + "/master.safetensors", bytes);

  EXPECT_THAT(message(ask(2), "checkpoint-broken"), HasSubstr("master.safetensors"));
}

TEST_F(DoctorCheckpoint, SeesThatTheManifestWasNeverWritten) {
  write_text(folder_ + "/training_args.json", "{}");
  std::filesystem::remove(folder_ + "/manifest.json");

  EXPECT_THAT(message(ask(0), "checkpoint-not-complete"), HasSubstr("manifest.json"));
}

TEST_F(DoctorCheckpoint, SaysItInChineseWithTheSameNumbers) {
  std::filesystem::remove(folder_ + "/exp_avg.safetensors");

  const Ran ran = run_underkeel("doctor --lang zh " + folder_);

  EXPECT_THAT(ran.out, HasSubstr("检查点已损坏"));
}

}  // namespace
}  // namespace underkeel::test
