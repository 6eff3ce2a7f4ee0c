// Checkpoints of DeepSpeed and the Trainer that look whole and are not: each by one file changed of a whole one.

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const std::string empty_weights = std::string("\x02\0\0\0\0\0\0\0{}", 10);

void write_state(const fs::path& folder, int step) {
  test::write_text(folder / "trainer_state.json", fmt::format(R"({{"global_step": {}}})", step));
}

/// What DeepSpeed writes on four ranks.
void write_shards(const fs::path& folder, int stage) {
  const fs::path tag = folder / "global_step10";
  test::write_text(folder / "latest", "global_step10");
  for (int rank = 0; rank < 4; ++rank) {
    const auto name = [&](std::string_view front, std::string_view part) {
      return fmt::format("{}zero_pp_rank_{}_mp_rank_00_{}_states.pt", front, rank, part);
    };
    test::write_text(tag / name("bf16_", "optim"), std::string(1000, 'o'));
    if (stage == 3) test::write_text(tag / name("", "model"), std::string(500, 'm'));
  }
  if (stage < 3) test::write_text(tag / "mp_rank_00_model_states.pt", std::string(900, 'm'));
}

/// What the Trainer writes without DeepSpeed.
void write_trainers(const fs::path& folder, int step) {
  write_state(folder, step);
  test::write_text(folder / "model.safetensors", empty_weights);
  for (const char* name : {"optimizer.pt", "scheduler.pt"}) test::write_text(folder / name, "x");
}

struct Damage {
  const char* what;
  int stage;
  std::function<void(const fs::path&)> to;
  const char* id;
  const char* says;
};

const char* optimizer_file = "global_step10/bf16_zero_pp_rank_{}_mp_rank_00_optim_states.pt";

fs::path optimizer_of(const fs::path& folder, int rank) {
  return folder / fmt::format(fmt::runtime(optimizer_file), rank);
}

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all = {
      {"one in the middle", 3, [](const fs::path& f) { fs::remove(optimizer_of(f, 1)); },
       "checkpoint-lacks-ranks", "of 3 of 4 ranks"},
      {"the last, whose model file is there", 3,
       [](const fs::path& f) { fs::remove(optimizer_of(f, 3)); }, "checkpoint-lacks-ranks",
       "missing is that of rank 3"},
      {"an empty one", 3, [](const fs::path& f) { test::write_text(optimizer_of(f, 1), ""); },
       "checkpoint-file-empty", "hold nothing: 1, the first is bf16_zero_pp_rank_1"},
      {"a third of one", 3,
       [](const fs::path& f) { test::write_text(optimizer_of(f, 2), std::string(304, 'o')); },
       "checkpoint-file-cut", "with 304 B, while the largest of its kind has 1.0 KB"},
      {"one without an archive's end", 2,
       [](const fs::path& f) {
         const std::string end = std::string("PK\x05\x06") + std::string(18, '\0');
         for (const int rank : {0, 1, 3})
           test::write_text(optimizer_of(f, rank), std::string(978, 'o') + end);
       },
       "checkpoint-file-cut", "bf16_zero_pp_rank_2"},
      {"a rank's model file", 3,
       [](const fs::path& f) {
         fs::remove(f / "global_step10/zero_pp_rank_2_mp_rank_00_model_states.pt");
       },
       "checkpoint-lacks-model-states", "missing is that of rank 2"},
      {"the model file", 2,
       [](const fs::path& f) { fs::remove(f / "global_step10/mp_rank_00_model_states.pt"); },
       "checkpoint-without-model-states", "no model file"},
      {"`latest`", 3, [](const fs::path& f) { fs::remove(f / "latest"); },
       "checkpoint-without-latest", "write global_step10 into a file `latest`"},
      {"all files", 3,
       [](const fs::path& f) {
         fs::remove_all(f / "global_step10");
         fs::create_directories(f / "global_step10");
       },
       "checkpoint-tag-empty", "none of DeepSpeed's files"},
  };
  return all;
}

TEST(Checkpoint, FindsEachFileOfDeepspeedThatIsMissingOrCut) {
  for (const Damage& damage : damages()) {
    Files files;
    files.question.paths = {files.at("ds")};
    write_shards(files.at("ds"), damage.stage);
    EXPECT_EQ(found(files.diagnose(), "checkpoint-whole").size(), 1u) << damage.what;
    EXPECT_TRUE(found(files.diagnose(), damage.id).empty()) << damage.what;
    damage.to(files.at("ds"));

    const Diagnosis diagnosis = files.diagnose();

    EXPECT_THAT(says(diagnosis, damage.id), HasSubstr(damage.says)) << damage.what;
    // Who calls DeepSpeed may name the tag.
    const bool is_open = std::string_view(damage.id) == "checkpoint-without-latest";
    EXPECT_EQ(exit_code_of(diagnosis, Engine::deepspeed), is_open ? 0 : 2) << damage.what;
    EXPECT_EQ(found(diagnosis, "checkpoint-whole").empty(), !is_open) << damage.what;
  }
}

TEST(Checkpoint, CallsNoneTheNewestCompleteOneThatItFindsFaultWith) {
  for (const Damage& damage : damages()) {
    Files files;
    files.question.paths = {files.at("out")};
    for (const int step : {100, 200}) {
      const fs::path folder = files.at("out") / fmt::format("checkpoint-{}", step);
      write_shards(folder, damage.stage);
      write_state(folder, step);
    }
    EXPECT_THAT(says(files.diagnose(), "checkpoint-newest"), HasSubstr("step 200"));
    damage.to(files.at("out/checkpoint-200"));

    const Diagnosis diagnosis = files.diagnose();

    EXPECT_THAT(says(diagnosis, damage.id), HasSubstr(damage.says)) << damage.what;
    EXPECT_EQ(found(diagnosis, damage.id)[0].file, "checkpoint-200");
    EXPECT_THAT(says(diagnosis, "checkpoint-newest"), HasSubstr("step 100")) << damage.what;
    const std::string text = to_text(diagnosis, Language::english);
    EXPECT_THAT(text, Not(HasSubstr("of step 200"))) << damage.what;
    // By itself it is judged alike, and told once.
    files.question.paths = {files.at("out/checkpoint-200")};
    const Diagnosis alone = files.diagnose();
    EXPECT_EQ(found(alone, damage.id).size(), 1u) << damage.what << messages(alone);
    EXPECT_EQ(exit_code_of(alone, Engine::deepspeed), 2) << damage.what;
  }
}

TEST(Checkpoint, FindsEachFileOfTheTrainersThatIsMissingOrCut) {
  const std::vector<Damage> of_trainer = {
      {"half the weights", 0,
       [](const fs::path& f) {
         test::write_text(f / "model.safetensors", empty_weights.substr(0, 9));
       },
       "checkpoint-weights-broken", "model.safetensors"},
      {"half the state", 0,
       [](const fs::path& f) {
         test::write_text(f / "trainer_state.json", R"({"global_step": 2)");
       },
       "checkpoint-state-broken", "trainer_state.json (17 B) cannot be read"},
      {"another step", 0, [](const fs::path& f) { write_state(f, 999); }, "checkpoint-step-differs",
       "says step 999, the folder's name step 20"},
      {"no optimizer", 0, [](const fs::path& f) { fs::remove(f / "optimizer.pt"); },
       "checkpoint-weights-alone", "it has no optimizer.pt"},
      {"no schedule", 0, [](const fs::path& f) { fs::remove(f / "scheduler.pt"); },
       "checkpoint-weights-alone", "it has no scheduler.pt"},
      {"an empty optimizer", 0, [](const fs::path& f) { test::write_text(f / "optimizer.pt", ""); },
       "checkpoint-file-empty", "the first is optimizer.pt"},
      {"no weights", 0, [](const fs::path& f) { fs::remove(f / "model.safetensors"); },
       "checkpoint-not-complete", "no weights"},
  };
  for (const Damage& damage : of_trainer) {
    Files files;
    files.question.paths = {files.at("out")};
    for (const int step : {10, 20})
      write_trainers(files.at("out") / fmt::format("checkpoint-{}", step), step);
    EXPECT_THAT(says(files.diagnose(), "checkpoint-newest"), HasSubstr("step 20"));
    damage.to(files.at("out/checkpoint-20"));

    const Diagnosis diagnosis = files.diagnose();

    EXPECT_THAT(says(diagnosis, damage.id), HasSubstr(damage.says)) << damage.what;
    EXPECT_THAT(says(diagnosis, "checkpoint-newest"), HasSubstr("step 10")) << damage.what;
  }
}

// Python writes a loss that is no number as NaN, which strict JSON has not.
TEST(Checkpoint, TakesAStateWithALossThatIsNoNumber) {
  Files files;
  files.question.paths = {files.at("out")};
  write_trainers(files.at("out/checkpoint-20"), 20);
  test::write_text(files.at("out/checkpoint-20/trainer_state.json"),
                   "{\"global_step\": 20, \"log_history\": [{\"loss\": NaN}]}\n");

  EXPECT_THAT(says(files.diagnose(), "checkpoint-newest"), HasSubstr("step 20"));
}

TEST(Checkpoint, TakesStageZeroForWholeWhereTheConfigSaysSo) {
  Files files;
  test::write_text(files.at("ds/latest"), "global_step10");
  test::write_text(files.at("ds/global_step10/mp_rank_00_model_states.pt"), "x");
  files.question.paths = {files.at("ds")};
  EXPECT_THAT(says(files.diagnose(), "checkpoint-without-optimizer"), HasSubstr("of stage 0"));
  files.write("ds.json", R"({"train_batch_size": 8, "zero_optimization": {"stage": 0}})");
  EXPECT_TRUE(found(files.diagnose(), "checkpoint-without-optimizer").empty());
}

TEST(Checkpoint, SeesThatARunGoesOnByItself) {
  Files files;
  const auto write_run = [&](const std::string& more) {
    files.question.paths.clear();
    files.write("train.yaml",
                "model_name_or_path: m\nfinetuning_type: full\ndo_train: true\noutput_dir: " +
                    files.at("out").string() + "\n" + more);
  };
  write_run("");
  EXPECT_TRUE(found(files.diagnose(), "resume-by-itself").empty());
  for (const int step : {9, 100}) {
    write_shards(files.at("out") / fmt::format("checkpoint-{}", step), 3);
    write_state(files.at("out") / fmt::format("checkpoint-{}", step), step);
  }
  files.question.ranks = 4;
  const Diagnosis whole = files.diagnose();
  EXPECT_THAT(says(whole, "resume-by-itself"), HasSubstr("output_dir holds checkpoint-100,"));
  EXPECT_NE(whole.deepspeed.verdict, Verdict::fails) << messages(whole);
  files.question.ranks = 8;
  EXPECT_EQ(found(files.diagnose(), "checkpoint-of-other-ranks").size(), 1u);
  for (const char* more : {"overwrite_output_dir: true\n", "resume_from_checkpoint: elsewhere\n"}) {
    write_run(more);
    EXPECT_TRUE(found(files.diagnose(), "resume-by-itself").empty()) << more;
  }

  write_run("");
  files.question.ranks = 4;
  fs::remove(optimizer_of(files.at("out/checkpoint-100"), 1));
  const Diagnosis lacks = files.diagnose();
  EXPECT_THAT(says(lacks, "checkpoint-lacks-ranks"), HasSubstr("3 of 4"));
  EXPECT_EQ(lacks.deepspeed.verdict, Verdict::fails);

  // The Trainer's own is none for a run with a DeepSpeed config.
  write_trainers(files.at("out/checkpoint-200"), 200);
  EXPECT_TRUE(found(files.diagnose(), "checkpoint-of-no-deepspeed").empty());
  files.write("ds.json", R"({"train_batch_size": 8, "zero_optimization": {"stage": 3}})");
  EXPECT_EQ(found(files.diagnose(), "checkpoint-of-no-deepspeed").size(), 1u);
}

constexpr Shape untied = {256, 64, 2, 128, 4, 2};

/// Weights of `untied` under the names that `rename` gives; no name leaves a tensor out.
Diagnosis with_names(const std::function<std::string(const std::string&)>& rename) {
  std::string header = "{";
  std::size_t bytes = 0;
  for (const spec::Parameter& parameter : spec::parameters_of(model_of(untied))) {
    const std::string name = rename(parameter.name);
    if (name.empty()) continue;
    std::string dims;
    for (const std::int64_t size : parameter.shape())
      dims += (dims.empty() ? "" : ",") + std::to_string(size);
    const std::size_t end = bytes + 2 * static_cast<std::size_t>(parameter.element_count());
    header += fmt::format("{}\"{}\":{{\"dtype\":\"BF16\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          bytes == 0 ? "" : ",", name, dims, bytes, end);
    bytes = end;
  }
  header += "}";
  std::string size(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) size[i] = static_cast<char>(header.size() >> (8 * i));
  Files files;
  files.write("model.json", model_json(untied));
  files.write("model.safetensors", size + header + std::string(bytes, '\1'));
  return files.diagnose();
}

TEST(WeightNames, NameTheCauseWhereTheyShowIt) {
  for (const std::string prefix : {"module.", "base_model.model."}) {
    const Diagnosis wrapped = with_names([&](const std::string& name) { return prefix + name; });
    EXPECT_THAT(says(wrapped, "weights-prefixed"),
                HasSubstr("21 tensors are missing by their names, and 21 of them are there with `" +
                          prefix + "`"));
    EXPECT_TRUE(found(wrapped, "weights-missing").empty());
  }
  const auto without = [](std::string_view left_out) {
    return with_names([=](const std::string& name) { return name == left_out ? "" : name; });
  };
  EXPECT_THAT(says(without("lm_head.weight"), "weights-missing-head"),
              HasSubstr("\"tie_word_embeddings\": true"));
  EXPECT_EQ(found(without("model.norm.weight"), "weights-missing").size(), 1u);
}

TEST(WeightNames, TellADownloadThatWasNotFinished) {
  Files files;
  files.write("model/config.json", model_json(untied));
  files.write("model/model.safetensors.incomplete", std::string(100, 'x'));
  files.question.paths = {files.at("model")};

  EXPECT_THAT(says(files.diagnose(), "weights-download-unfinished"),
              HasSubstr("model.safetensors.incomplete (100 B)"));
}

}  // namespace
}  // namespace underkeel::doctor
