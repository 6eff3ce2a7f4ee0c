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
