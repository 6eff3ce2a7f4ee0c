#include "apps/command_line.h"

#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "apps/made_checkpoint.h"
#include "base/units.h"
#include "support/case.h"
#include "support/model_folder.h"
#include "support/temporary_folder.h"
#include "support/text_files.h"

namespace underkeel {
namespace {

using test::Ran;
using test::run_underkeel;
using testing::HasSubstr;

TEST(CommandLine, ToldItsVersionNamesTheBackends) {
  const Ran ran = run_underkeel("--version");

  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, HasSubstr("backends: cpu yes, cuda no, mpi "));
}

TEST(CommandLine, NamesTheNearestSubcommandAndFlag) {
  const Ran command = run_underkeel("trian run.yaml");
  const Ran flag = run_underkeel("inspect --verfy folder");

  EXPECT_EQ(command.exit_code, 2);
  EXPECT_EQ(command.error,
            "error: unknown subcommand `trian`\nwhere: command line\n"
            "try:   the nearest is `train`; all of them: underkeel --help\n");
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_EQ(flag.error,
            "error: unknown flag `--verfy`\nwhere: command line\n"
            "try:   the nearest is `--verify`; all of them: underkeel inspect --help\n");
}

TEST(CommandLine, ShowsHelpOfEverySubcommand) {
  for (const std::string command : {"train", "plan", "inspect", "export", "generate"}) {
    const Ran ran = run_underkeel(command + " --help");
    EXPECT_EQ(ran.exit_code, 0) << command;
    EXPECT_THAT(ran.out, HasSubstr("underkeel " + command));
  }
}

TEST(CommandLine, RefusesBudgetsThatAreNone) {
  const Ran ran = run_underkeel("plan run.yaml --memory gpu=80GiB");

  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(ran.error,
            "error: `gpu=80GiB` is no budget\nwhere: --memory\n"
            "try:   write SPACE=SIZE[,SPACE=SIZE], such as device=80GiB,host=100GiB\n");
  for (const std::string budgets : {"''", "host=0", "device=0,host=1GiB"})
    EXPECT_EQ(run_underkeel("plan run.yaml --memory " + budgets).exit_code, 2) << budgets;
  for (const std::string budgets : {"''", ",", "' , '"})
    EXPECT_THAT(run_underkeel("plan run.yaml --memory " + budgets).error,
                HasSubstr("no budget is given"))
        << budgets;
}

TEST(CommandLine, RefusesASizeWithoutAUnitThatNoRunTakes) {
  for (const std::string command :
       {"plan run.yaml --memory", "plan run.yaml --fit", "doctor x --memory"}) {
    const Ran ran = run_underkeel(command + " device=24,host=100GiB");

    EXPECT_EQ(ran.exit_code, 2) << command;
    EXPECT_THAT(ran.error, HasSubstr("`device=24` is 24 bytes; no run takes so little")) << command;
    EXPECT_THAT(ran.error, HasSubstr("write a unit: device=24MiB / device=24GiB")) << command;
  }
}

TEST(CommandLine, RefusesFlagsThatAreGivenWithoutAValue) {
  for (const std::string command : {"doctor x --memory ''", "doctor x --hardware ''",
                                    "plan run.yaml --hardware ''", "generate --memory '' x"}) {
    const Ran ran = run_underkeel(command);

    EXPECT_EQ(ran.exit_code, 2) << command;
    EXPECT_THAT(ran.error,
                testing::AnyOf(HasSubstr("no budget is given"), HasSubstr("no file is given"),
                               HasSubstr("without a value")))
        << command;
  }
}

TEST(CommandLine, RefusesTwoBudgetsForOneSpace) {
  const Ran ran = run_underkeel("plan run.yaml --fit device=80GiB --memory device=24GiB");

  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.error, HasSubstr("`device` has two budgets: 80GiB and 24GiB"));
  EXPECT_THAT(ran.error, HasSubstr("--fit and --memory"));
}

TEST(CommandLine, TakesBudgetsAsPeopleWriteThem) {
  const auto run = test::complete_case("tied_head", {.with_weights = false});
  for (const std::string budgets :
       {"device=64MiB,host=4GiB,", "'device=64MiB, host=4GiB'", "' device = 64 mib ,host= 4gib'",
        "device=64MIB,,host=4GIB", "device=64MiB --memory host=4GiB,"}) {
    const Ran ran = run_underkeel("plan " + run.run_file.string() + " --json --memory " + budgets);

    ASSERT_EQ(ran.exit_code, 0) << budgets << "\n" << ran.error;
    const auto plan = nlohmann::json::parse(ran.out);
    EXPECT_EQ(plan["spaces"]["device"]["budget_bytes"], 64 * mebibyte) << budgets;
  }
}

TEST(CommandLine, RefusesTwoBudgetsOfOneSpaceAndNumbersThatAreNone) {
  const Ran twice = run_underkeel("plan run.yaml --memory host=1GiB,host=2GiB");
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.error, HasSubstr("`host` has two budgets: 1GiB and 2GiB"));
  const Ran apart = run_underkeel("plan run.yaml --memory host=1GiB --memory host=2GiB");
  EXPECT_EQ(apart.exit_code, 2);
  EXPECT_THAT(apart.error, HasSubstr("`host` has two budgets"));

  const Ran tiny = run_underkeel("plan run.yaml --memory device=1B");
  EXPECT_EQ(tiny.exit_code, 2);
  EXPECT_THAT(tiny.error, HasSubstr("`device=1B` is 1 byte, less than a page of memory"));

  const Ran doctor = run_underkeel("doctor run.yaml --memory host=1GiB,host=2GiB");
  EXPECT_EQ(doctor.exit_code, 2);
  EXPECT_THAT(doctor.error, HasSubstr("`host` has two budgets"));

  for (const std::string flag : {"--temperature nan", "--top-p NaN", "--temperature inf",
                                 "--seed -1", "--seed 99999999999999999999"}) {
    const Ran ran = run_underkeel("generate folder --prompt a " + flag);
    EXPECT_EQ(ran.exit_code, 2) << flag;
  }
}

TEST(CommandLine, NamesWhoSaysMoreOfProblemsThatBringNoCure) {
  const auto run = test::complete_case("tied_head", {.with_weights = false});
  const std::string file = run.run_file.string();
  const std::string cure =
      "\ntry:   mend what is named; `underkeel doctor " + file + "` says what comes of it\n";

  const Ran several = run_underkeel("plan " + file + " learning_rate=abc cutoff_len=x");
  const Ran one = run_underkeel("plan " + file + " learning_rate=abc");
  const Ran with_own = run_underkeel("plan " + file + " learning_rat=1");

  EXPECT_THAT(several.error, HasSubstr("error: 2 problems\n"));
  EXPECT_THAT(several.error, HasSubstr(cure));
  EXPECT_THAT(one.error, HasSubstr(cure));
  EXPECT_THAT(with_own.error, HasSubstr("try:   the nearest is `learning_rate`"));
}

TEST(CommandLine, PlanNeedsNoWeightsAndGivesTheShapeOfItsJson) {
  const auto run = test::complete_case("tied_head", {.with_weights = false});

  const Ran ran = run_underkeel("plan " + run.run_file.string() + " --ranks 2 --json");

  ASSERT_EQ(ran.exit_code, 0) << ran.error;
  const auto json = nlohmann::json::parse(ran.out);
  for (const char* key : {"fits", "ranks", "parameters", "spaces", "phases", "program", "decisions",
                          "suggestions", "plan_hash"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["parameters"], 90'432);
  const auto device = json["spaces"]["device"];
  std::int64_t sum = 0;
  for (const auto& [kind, size_bytes] : device["by_kind"].items())
    sum += size_bytes.get<std::int64_t>();
  EXPECT_EQ(device["peak_bytes"], sum);
}

TEST(CommandLine, EveryChangeThatAPlanNamesMakesTheSameCommandPass) {
  const auto run = test::complete_case("tied_head", {.with_weights = false});
  const std::string command = "plan " + run.run_file.string() + " --ranks 2 --json ";
  const auto whole = nlohmann::json::parse(run_underkeel(command).out);
  const auto budget = whole["spaces"]["device"]["peak_bytes"].get<std::int64_t>() * 9 / 10;
  const std::string limited = command + "--memory device=" + std::to_string(budget) + " ";

  const Ran refused = run_underkeel(limited);

  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("error: the plan does not fit: device peak"));
  const auto suggestions = nlohmann::json::parse(refused.out)["suggestions"];
  ASSERT_GE(suggestions.size(), 2u) << refused.error;
  for (const auto& suggestion : suggestions) {
    const std::string change = suggestion["change"];
    EXPECT_THAT(refused.error, HasSubstr(change));
    const Ran changed = run_underkeel(limited + change);
    ASSERT_EQ(changed.exit_code, 0) << change << "\n" << changed.error;
    EXPECT_EQ(nlohmann::json::parse(changed.out)["spaces"]["device"]["peak_bytes"],
              suggestion["peak_bytes"]);
  }
}

TEST(CommandLine, PlanRefusesAModelWhoseStateIsLargerThanTheCardWithTheFigures) {
  const auto run = test::complete_case("state_above_card", {.with_weights = false});

  const Ran ran = run_underkeel("plan " + run.run_file.string() + " --hardware " +
                                run.hardware_file->string() + " --json");

  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.error, HasSubstr("allowed 79.0 GiB"));
  EXPECT_THAT(ran.error, HasSubstr("the smallest reachable peak is"));
  // 16 bytes a parameter: 128.5 GB of model state.
  const auto kinds = nlohmann::json::parse(ran.out)["spaces"]["device"]["by_kind"];
  const double state = kinds["weights"].get<double>() + kinds["optimizer"].get<double>();
  EXPECT_NEAR(state, 14.0 * 8'030'261'248, 0.01e9);
}

TEST(CommandLine, PlanLoadsOnManyRanksThroughOneStagingRingEach) {
  const auto run =
      test::complete_case("load_on_many_ranks", {.with_weights = false, .zero_stage = 3});
  const auto planned = [&](int ranks) {
    const Ran ran =
        run_underkeel("plan " + run.run_file.string() + " --ranks " + std::to_string(ranks) +
                      " --hardware " + run.hardware_file->string() + " --json");
    EXPECT_EQ(ran.exit_code, 0) << ran.error;
    return nlohmann::json::parse(ran.out);
  };

  const auto plan = planned(8);

  // 13B in 16 bits are 26.0 GB; what a rank loads through does not depend on that.
  EXPECT_EQ(plan["parameters"], 13'015'864'320);
  const auto& load = plan["phases"]["load"];
  EXPECT_LE(load.value("host", 0.0) + load.value("pinned_host", 0.0), 64.0 * (1 << 20));
  // Its share of weights, master copies and moments, and of the gradient; and no second copy.
  const double state = 18.0 * 13'015'864'320 / 8;
  EXPECT_LT(load["device"].get<double>(), 1.05 * state);
}

TEST(CommandLine, PlanRefusesCheckpointsThatDoNotFitTheDisk) {
  const auto run = test::complete_case("tied_head", {.with_weights = false});
  const test::TemporaryFolder folder;
  test::write_text(folder / "hardware.yaml", "host_ram_gib: 16\nout_free_gib: 0.001\n");
  const std::string command = "plan " + run.run_file.string() + " --hardware " +
                              (folder / "hardware.yaml").string() + " save_steps=2 max_steps=8 ";

  const Ran refused = run_underkeel(command + "save_total_limit=3");
  const Ran as_json = run_underkeel(command + "save_total_limit=3 --json --html " +
                                    (folder / "page.html").string());
  const Ran fitting = run_underkeel(command + "save_strategy=no --json");

  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("4 checkpoints"));
  EXPECT_THAT(refused.error, HasSubstr("out_free_gib"));
  EXPECT_EQ(as_json.exit_code, 2);
  const auto json = nlohmann::json::parse(as_json.out);
  EXPECT_EQ(json["fits"], false);
  EXPECT_EQ(json["disk"]["checkpoints_at_once"], 4);
  EXPECT_GT(json["disk"]["needed_bytes"], json["disk"]["free_bytes"]);
  const std::string page = test::read_text(folder / "page.html");
  EXPECT_THAT(page, HasSubstr("\"fits\":false,\"refusal\":\"error: the checkpoints do not fit"));
  EXPECT_EQ(fitting.exit_code, 0) << fitting.error;
  EXPECT_EQ(nlohmann::json::parse(fitting.out)["fits"], true);
}

TEST(CommandLine, RefusesAModelFolderThatHoldsAdaptersToo) {
  const auto made = test::complete_case("disk_fills_in_save", {.model_file = "none"});
  test::write_text(made.model / "adapter_config.json", R"({"peft_type": "LORA", "r": 4})");
  const std::string run = made.run_file.string();

  for (const std::string& command :
       {"plan " + run, "train " + run + " max_steps=1",
        "generate " + made.model.string() + " --prompt a", "doctor " + run}) {
    SCOPED_TRACE(command);
    const Ran refused = run_underkeel(command);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.out + refused.error, HasSubstr("holds adapters (`adapter_config.json`)"));
    EXPECT_THAT(refused.out + refused.error, HasSubstr("merge_and_unload"));
  }
  EXPECT_FALSE(std::filesystem::exists(made.output / "trainer_log.jsonl"));
}

TEST(CommandLine, PlanKeepsALossOverALargeVocabularySmall) {
  const auto run = test::complete_case("one_big_batch", {.with_weights = false, .zero_stage = 3});
  const auto workspace = [&](const std::string& change) {
    const Ran ran = run_underkeel("plan " + run.run_file.string() + " --ranks 8 --hardware " +
                                  run.hardware_file->string() + " --json " + change);
    return nlohmann::json::parse(ran.out)["spaces"]["device"]["by_kind"]["workspace"].get<double>();
  };

  // Whole logits in f32 would be 48.8 GB.
  EXPECT_LT(workspace(""), 2.0 * (1 << 30));
}

TEST(CommandLine, TrainRefusesWhatDoesNotFitBeforeAnythingIsWritten) {
  const auto run = test::complete_case("tied_head");

  const Ran ran = run_underkeel("train " + run.run_file.string() + " --memory device=300KiB");

  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.error, HasSubstr("error: the plan does not fit: device peak"));
  EXPECT_THAT(ran.error, HasSubstr("allowed 300 KiB (--memory device)"));
  EXPECT_FALSE(std::filesystem::exists(run.output));
}

TEST(CommandLine, InspectEndsWithTwoWhenAFileIsWrong) {
  const test::TemporaryFolder folder;
  test::write_model_folder(folder.path(), test::tiny_model_json());
  const Ran sound = run_underkeel("inspect --verify " + folder.path().string());
  std::filesystem::resize_file(folder / "model.safetensors", 1000);
  const Ran broken = run_underkeel("inspect --verify " + folder.path().string());

  EXPECT_EQ(sound.exit_code, 0);
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_THAT(broken.out, HasSubstr("model.safetensors"));
}

/// "this process needed at most 12.3 MiB of memory".
std::int64_t peak_of(const std::string& text) {
  const std::string before = "this process needed at most ";
  const auto begin = text.find(before) + before.size();
  return test::value_of(parse_bytes(text.substr(begin, text.find(" of memory") - begin), "peak"));
}

TEST(CommandLine, ExportNeedsTheSameMemoryForTwoLayersAndForSixteen) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer holds freed memory back";
#endif
  const test::TemporaryFolder folder;
  auto deep = nlohmann::json::parse(test::tiny_model_json());
  deep["num_hidden_layers"] = 16;
  const auto export_of = [&](const std::string& name, const std::string& model) {
    const std::string from = test::make_checkpoint(folder / name, model);
    const Ran ran = run_underkeel("export " + from + " " + (folder / (name + "-out")).string() +
                                  " --dtype f32 --max-shard-size 64KiB");
    EXPECT_EQ(ran.exit_code, 0) << ran.error;
    return peak_of(ran.out);
  };

  const std::int64_t two = export_of("two", test::tiny_model_json());
  const std::int64_t sixteen = export_of("sixteen", deep.dump());

  // 16 layers have 4.5 times the weights of the checkpoint: 2.4 MB of master copies against 0.4.
  EXPECT_NEAR(static_cast<double>(sixteen), static_cast<double>(two), double{mebibyte});
}

// Where a path that was given is not there, what to do is told.
TEST(CommandLine, OfAPathThatIsNotThereSaysWhereToLook) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "finetune.yaml", "stage: pt\n");
  for (const auto& [words, fix] : std::vector<std::pair<std::string, std::string>>{
           {"plan nothere-at-all.yaml", "paths count from the working folder, "},
           {"train nothere-at-all.yaml", "paths count from the working folder, "},
           {"plan " + (folder / "finetun.yaml").string(),
            "the nearest that is there: " + (folder / "finetune.yaml").string()},
           {"plan examples/tiny/finetune.yaml --hardware /nope/none/here.yaml",
            "look at the path: of its folders / is there"},
           {"report /nope/none", "look at the path: of its folders / is there"}}) {
    const Ran ran = run_underkeel(words);

    EXPECT_EQ(ran.exit_code, 2) << words;
    EXPECT_THAT(ran.error, HasSubstr("\ntry:   " + fix)) << words;
  }
}

}  // namespace
}  // namespace underkeel
