// A run file whose model is not on this machine, and folders that a finished run left: what is told, and what is not.

#include <gmock/gmock.h>

#include "doctor/files.h"
#include "doctor/folder_rules.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

using testing::HasSubstr;

std::string run_of(const std::string& model) {
  return "model_name_or_path: " + model +
         "\nstage: sft\nfinetuning_type: full\nbf16: true\ndataset: d\ntemplate: llama3\n";
}

TEST(ModelElsewhere, IsWarnedOfWithWhatIsNotKnown) {
  for (const char* model : {"nobody-has/Such-A-Model-9B", "models/none", "/no/such/folder"}) {
    Files files;
    files.write("train.yaml", run_of(model));

    const Diagnosis diagnosis = files.diagnose();

    const auto all = found(diagnosis, "model-elsewhere", "model_name_or_path");
    ASSERT_EQ(all.size(), 1u) << model << "\n" << messages(diagnosis);
    EXPECT_EQ(all[0].severity, Severity::warning);
    EXPECT_EQ(all[0].line, 1);
    EXPECT_THAT(message_of(all[0], Language::english),
                HasSubstr("neither memory nor the data's lengths nor its template are judged"));
    EXPECT_THAT(fix_of(all[0], Language::english), HasSubstr("config.json beside the run file"));
    EXPECT_TRUE(found(diagnosis, "memory-without-model").empty()) << messages(diagnosis);
    for (const Engine engine : {Engine::underkeel, Engine::deepspeed})
      EXPECT_EQ(exit_code_of(diagnosis, engine), 0) << messages(diagnosis);
  }
}

TEST(ModelElsewhere, OfTheHubIsFetchedByACommand) {
  Files files;
  files.write("train.yaml", run_of("nobody-has/Such-A-Model-9B"));

  const std::string text = says(files.diagnose(), "model-elsewhere");

  EXPECT_THAT(text, HasSubstr("neither a folder nor in the local Hugging Face cache"));
  EXPECT_THAT(text, HasSubstr("hf download nobody-has/Such-A-Model-9B"));
}

TEST(ModelElsewhere, IsNoNewsWhereItsDescriptionIsGiven) {
  Files files;
  files.write("train.yaml", run_of("nobody-has/Such-A-Model-9B"));
  files.write("model.json", model_json(qwen_half));

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_TRUE(found(diagnosis, "model-elsewhere").empty()) << messages(diagnosis);
}

// The same tensors may be computed with otherwise: with heads of another width, another epsilon, another base of angles.
TEST(ModelElsewhere, IsHeldAgainstTheDescriptionFieldByField) {
  const std::string own = model_json({256, 64, 2, 128, 4, 2, 0, false, true});
  const auto with = [&](const std::string& more) {
    return own.substr(0, own.rfind('}')) + ", " + more + "}";
  };
  const auto asked = [&](const std::string& of_folder) {
    Files files;
    files.write("folder/config.json", of_folder);
    files.write("model.json", with(R"("rms_norm_eps": 1e-5, "rope_theta": 10000.0)"));
    files.write("train.yaml", run_of(files.at("folder").string()));
    files.question.paths.erase(files.question.paths.begin());
    return files.diagnose();
  };

  const Diagnosis same = asked(with(R"("rms_norm_eps": 1e-05, "rope_theta": 10000)"));
  const Diagnosis other = asked(with(R"("rms_norm_eps": 1e-6, "rope_theta": 500000.0)"));

  EXPECT_TRUE(found(same, "model-config-differs").empty()) << messages(same);
  EXPECT_THAT(says(other, "model-config-differs"),
              HasSubstr("rms_norm_eps 1e-05 / 1e-06, rope_theta 10000 / 500000"));
}

TEST(FinishedRun, NamesItsNewestCheckpointAsDeepspeedDoes) {
  test::TemporaryFolder ours;
  std::filesystem::create_directory(ours / "checkpoint-30");
  test::write_text(ours / "checkpoint-30/manifest.json", "{}");
  test::write_text(ours / "latest", "checkpoint-30\n");
  EXPECT_FALSE(holds_deepspeed_state(ours.path().string()));

  test::TemporaryFolder deepspeed;
  std::filesystem::create_directory(deepspeed / "global_step30");
  test::write_text(deepspeed / "latest", "global_step30");
  EXPECT_TRUE(holds_deepspeed_state(deepspeed.path().string()));

  test::TemporaryFolder gone;
  test::write_text(gone / "latest", "global_step30");
  EXPECT_TRUE(holds_deepspeed_state(gone.path().string()));
}

TEST(FinishedRun, WroteFilesThatAreNoConfigs) {
  const std::pair<const char*, const char*> records[] = {
      {"trainer_state.json",
       R"({"global_step": 3, "log_history": [], "train_batch_size": 2, "logging_steps": 1})"},
      {"training_args.json", R"({"stage": {"value": "sft", "source": "run.yaml"},
        "bf16": {"value": true, "source": "run.yaml"}})"},
      {"all_results.json", "{\n\"epoch\": 1.0,\n\"train_loss\": 2.0,\n\"train_runtime\": 3.5}"},
      {"eval_results.json", "{\n\"epoch\": 1.0,\n\"eval_loss\": 2.0,\n\"eval_runtime\": 3.5}"},
      {"memory.json", R"({"about": "bytes", "ranks": [{"rank": 0}]})"},
      {"tokenizer.json", R"({"version": "1.0", "added_tokens": [], "pre_tokenizer": null})"}};
  for (const auto& [name, text] : records) {
    Files files;
    files.write(name, text);

    const Diagnosis diagnosis = files.diagnose();

    ASSERT_EQ(diagnosis.findings.size(), 1u) << name << "\n" << messages(diagnosis);
    EXPECT_EQ(diagnosis.findings[0].id, "file-of-a-run") << name;
    EXPECT_EQ(diagnosis.findings[0].severity, Severity::info) << name;
  }
}

}  // namespace
}  // namespace underkeel::doctor
