// plan --fit as a user runs it: what it prints is accepted by the same command.

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "support/case.h"
#include "support/places.h"

namespace underkeel::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

/// A case and budgets under which it does not fit as it is.
struct Squeezed {
  RunnableCase run = complete_case("tied_head", {.with_weights = false});
  std::string budgets;
  std::string machine;  // --hardware FILE, or nothing

  explicit Squeezed(const std::string& more_flags = "", int percent = 90) : machine(more_flags) {
    const Json whole = Json::parse(run_underkeel("plan " + words() + " --json").out);
    const auto peak = whole["spaces"]["device"]["peak_bytes"].get<std::int64_t>();
    // Of a GPU's budget 1 GiB is its driver's.
    const std::int64_t for_driver = machine.empty() ? 0 : std::int64_t{1} << 30;
    budgets = "device=" + std::to_string(peak * percent / 100 + for_driver) + ",host=8GiB";
  }
  std::string words() const { return run.run_file.string() + " --ranks 2 " + machine; }
  std::string fit(const std::string& more = "") const {
    return "plan " + words() + " --fit " + budgets + more;
  }
};

/// The same command with what a row says: as words, and as lines of the run file.
void expect_plans_as_said(const Squeezed& squeezed, const Json& row) {
  std::string words, lines = read_text(squeezed.run.run_file);
  for (const auto& word : row["changes"]) words += " " + word.get<std::string>();
  for (const auto& [key, value] : row["patch"].items()) {
    const std::string start = key + ":";
    if (const std::size_t at = lines.find("\n" + start); at != std::string::npos)
      lines.erase(at + 1, lines.find('\n', at + 1) - at);
    lines += start + " " + (value.is_string() ? value.get<std::string>() : value.dump()) + "\n";
  }
  const auto file = squeezed.run.folder / "patched.yaml";
  write_text(file, lines);
  for (const std::string& run :
       {squeezed.words() + words, file.string() + " --ranks 2 " + squeezed.machine}) {
    const Ran ran = run_underkeel("plan " + run + " --json --memory " + squeezed.budgets);
    ASSERT_EQ(ran.exit_code, 0) << run << "\n" << ran.error;
    const Json plan = Json::parse(ran.out);
    for (const auto& [space, peak] : row["peak_bytes"].items())
      EXPECT_EQ(plan["spaces"][space]["peak_bytes"], peak) << run;
    EXPECT_DOUBLE_EQ(plan["times"]["step_s"].get<double>(), row["step_s"].get<double>()) << run;
  }
}

TEST(PlanFit, EveryRowIsAcceptedAsWordsAndAsLines) {
  const Squeezed squeezed;

  const Ran ran = run_underkeel(squeezed.fit(" --json"));

  ASSERT_EQ(ran.exit_code, 0) << ran.error;
  const Json found = Json::parse(ran.out);
  ASSERT_GE(found["rows"].size(), 2u);
  double before_s = 0;
  for (const Json& row : found["rows"]) {
    EXPECT_GE(row["step_s"].get<double>(), before_s * (1 - 1e-6));
    before_s = row["step_s"];
    EXPECT_NEAR(row["steps_per_hour"].get<double>() * before_s, 3600, 1e-6);
    EXPECT_FALSE(row["decisions"].empty());
    expect_plans_as_said(squeezed, row);
  }
}

TEST(PlanFit, EveryRowIsAcceptedOnADescribedMachine) {
  const TemporaryFolder folder;
  write_text(folder / "hardware.yaml",
             "gpus_per_node: 2\ngpu_mem_gib: 80\nhost_ram_gib: 64\nmatmul_flops_per_s: 1.0e12\n");
  const Squeezed squeezed("--hardware " + (folder / "hardware.yaml").string(), 110);

  const Ran ran = run_underkeel(squeezed.fit(" --json"));

  ASSERT_EQ(ran.exit_code, 0) << ran.error;
  const Json told = Json::parse(ran.out);
  for (const Json& row : told["rows"]) expect_plans_as_said(squeezed, row);
}

TEST(PlanFit, HasTheShapeThatIsDocumented) {
  const Squeezed squeezed;

  const Json found =
      Json::parse(run_underkeel(squeezed.fit(",nvme=1TiB --json max_steps=100")).out);

  for (const char* key : {"fits", "ranks", "budgets", "searched", "planned", "rates_are_measured",
                          "rows", "smallest", "not_searched"})
    EXPECT_TRUE(found.contains(key)) << key;
  EXPECT_EQ(found["fits"], true);
  EXPECT_EQ(found["smallest"], nullptr);
  const Json& row = found["rows"][0];
  for (const char* key :
       {"changes", "patch", "step_s", "steps_per_hour", "total_steps", "hours",
        "evaluation_batch_s", "evaluation_s", "evaluations", "save_s", "save_wait_s", "peak_bytes",
        "node_host_bytes", "decisions", "saves", "disk_bytes"})
    EXPECT_TRUE(row.contains(key)) << key;
  EXPECT_EQ(row["total_steps"], 100);
  EXPECT_GT(row["hours"].get<double>(), 0);
  EXPECT_THAT(found["not_searched"].dump(), HasSubstr("nvme="));
  EXPECT_THAT(found["not_searched"].dump(), HasSubstr("offload"));
}

TEST(PlanFit, SaysWhyAndHowInText) {
  const Squeezed squeezed;

  const Ran ran = run_underkeel(squeezed.fit(" max_steps=-1"));

  EXPECT_EQ(ran.exit_code, 0) << ran.error;
  for (const char* part : {"steps/h", "as lines of the run file", "why the first", "recompute ",
                           "micro-batch ", "not searched", "offload of optimizer or parameters"})
    EXPECT_THAT(ran.out, HasSubstr(part));
  EXPECT_THAT(ran.out, HasSubstr("to end: not known without max_steps"));
}

TEST(PlanFit, NamesTheSmallestPeakWhereNothingFits) {
  const RunnableCase run = complete_case("tied_head", {.with_weights = false});

  const Ran ran = run_underkeel("plan " + run.run_file.string() + " --fit device=64KiB --json");

  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.error, HasSubstr("the smallest peak that can be reached is"));
  const Json found = Json::parse(ran.out);
  EXPECT_EQ(found["fits"], false);
  EXPECT_GT(found["smallest"]["peak_bytes"]["device"].get<std::int64_t>(), 64 * 1024);
}

/// What a reader sees of a row besides its words.
Json figures_of(const Json& row) {
  Json figures;
  for (const char* key :
       {"step_s", "save_s", "save_wait_s", "evaluation_batch_s", "peak_bytes", "node_host_bytes"})
    figures[key] = row[key];
  return figures;
}

TEST(PlanFit, ListsEachResultOnce) {
  // Of two gathers ahead and of none the tiny model makes one plan.
  const Squeezed squeezed;

  const Ran ran = run_underkeel(squeezed.fit(" deepspeed.zero_optimization.stage=3 --json"));

  ASSERT_EQ(ran.exit_code, 0) << ran.error;
  const Json found = Json::parse(ran.out);
  const Json& rows = found["rows"];
  ASSERT_GE(rows.size(), 2u);
  EXPECT_LT(rows.size(), found["planned"].get<std::size_t>());
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_NE(figures_of(rows[i]), figures_of(rows[j])) << rows[i]["changes"];
}

TEST(PlanFit, PlansNothingInFullThatIsFarSlower) {
  const auto run = complete_case("one_big_batch", {.with_weights = false});
  const auto machine = run.folder / "eight_nodes.yaml";
  write_text(machine, "nodes: 8\ngpus_per_node: 8\ngpu_mem_gib: 80\nhost_ram_gib: 1024\n");

  for (const int accumulation : {8, 120, 720}) {
    const Ran ran = run_underkeel("plan " + run.run_file.string() + " --ranks 64 --hardware " +
                                  machine.string() +
                                  " --fit device=80GiB --json per_device_train_batch_size=1 "
                                  "gradient_accumulation_steps=" +
                                  std::to_string(accumulation));
    ASSERT_EQ(ran.exit_code, 0) << ran.error;
    const Json found = Json::parse(ran.out);
    EXPECT_LE(found["planned"].get<int>(), 20) << accumulation;
    const Json& rows = found["rows"];
    ASSERT_FALSE(rows.empty());
    EXPECT_LE(rows.back()["step_s"].get<double>(), 1.5 * rows[0]["step_s"].get<double>());
    EXPECT_THAT(rows[0]["decisions"].dump(), HasSubstr("step about 63% longer"));
  }
}

TEST(PlanFit, SaysWhatALargerEvaluationBatchNeeds) {
  std::filesystem::current_path(in_source(""));
  const Ran ran = run_underkeel(
      "plan examples/tiny/finetune.yaml --ranks 2 --json per_device_eval_batch_size=64 --fit "
      "device=14MiB");

  ASSERT_EQ(ran.exit_code, 0) << ran.error;
  const Json told = Json::parse(ran.out);
  for (const Json& row : told["rows"]) {
    const Json& choice = row["decisions"].back();
    EXPECT_EQ(choice["subject"], "evaluation batch");
    ASSERT_EQ(choice["alternatives"].size(), 1u);
    EXPECT_EQ(choice["alternatives"][0]["value"], "64");
    EXPECT_THAT(choice["alternatives"][0]["effect"].get<std::string>(),
                testing::MatchesRegex("needs (about|at least) .* of device, allowed 14.0 MiB"));
  }
}

TEST(PlanFit, ReadsTheDataOfARunThatDoesNotFitAsItIs) {
  std::filesystem::current_path(in_source(""));
  const std::string words =
      "plan examples/tiny/finetune.yaml --ranks 4 --data --json "
      "deepspeed.zero_optimization.stage=0 ";

  const Ran as_it_is = run_underkeel(words + "--memory device=10MiB");
  const Ran ran = run_underkeel(words + "--fit device=10MiB");

  EXPECT_EQ(as_it_is.exit_code, 2);
  ASSERT_EQ(ran.exit_code, 0) << ran.error;
  const Json first = Json::parse(ran.out)["rows"][0];
  EXPECT_NE(first["patch"]["deepspeed.zero_optimization.stage"], 0);
  EXPECT_GT(first["total_steps"], 0);
}

TEST(PlanFit, CountsEvaluationsToTheEnd) {
  const Squeezed squeezed;
  const std::string evaluating =
      " max_steps=25 val_size=8 eval_strategy=steps eval_steps=10 per_device_eval_batch_size=2 "
      "save_strategy=no";

  const Json row = Json::parse(run_underkeel(squeezed.fit(evaluating + " --json")).out)["rows"][0];
  const Ran text = run_underkeel(squeezed.fit(evaluating));

  EXPECT_EQ(row["evaluations"], 3);  // after steps 10, 20 and 25
  const double batch_s = row["evaluation_batch_s"];
  EXPECT_GT(batch_s, 0);
  EXPECT_DOUBLE_EQ(row["evaluation_s"].get<double>(), 2 * batch_s);  // 8 samples, 2 ranks of 2
  EXPECT_NEAR(row["hours"].get<double>() * 3600, 25 * row["step_s"].get<double>() + 6 * batch_s,
              1e-9);
  EXPECT_THAT(text.out, HasSubstr("to end: 25 steps and 3 evaluations"));
  EXPECT_THAT(text.out, HasSubstr("save: none on the way (save_strategy no)"));
  EXPECT_EQ(row["save_s"], nullptr);
  EXPECT_EQ(row["save_wait_s"], nullptr);
}

TEST(PlanFit, CountsSavesToTheEndOrSaysThatItDoesNot) {
  const Squeezed squeezed;
  const auto first = [&](const std::string& words) {
    return Json::parse(
        run_underkeel(squeezed.fit(" max_steps=25 " + words + " --json")).out)["rows"][0];
  };

  EXPECT_EQ(first("save_steps=10")["saves"], 3);
  EXPECT_EQ(first("save_strategy=no")["saves"], 0);
  EXPECT_EQ(first("save_strategy=epoch")["saves"], nullptr);
  EXPECT_THAT(run_underkeel(squeezed.fit(" max_steps=25 save_steps=10")).out,
              HasSubstr("to end: 25 steps and 3 saves"));
  EXPECT_THAT(run_underkeel(squeezed.fit(" max_steps=25 save_strategy=epoch")).out,
              testing::ContainsRegex("to end: 25 steps; without saves \\([0-9.e-]+ s waited for "
                                     "each\\): --data counts them"));
}

TEST(PlanFit, CountsTheSavesOfEpochsOnceTheDataAreRead) {
  const Squeezed squeezed;

  const Ran ran = run_underkeel(
      squeezed.fit(" --data max_steps=-1 num_train_epochs=3 save_strategy=epoch --json"));

  ASSERT_EQ(ran.exit_code, 0) << ran.error;
  EXPECT_EQ(Json::parse(ran.out)["rows"][0]["saves"], 3);
}

/// A machine with so much free disk, as flags.
std::string machine_with_disk(const TemporaryFolder& folder, const std::string& free_gib) {
  write_text(folder / "hardware.yaml", "host_ram_gib: 64\nout_free_gib: " + free_gib + "\n");
  return "--hardware " + (folder / "hardware.yaml").string();
}

TEST(PlanFit, OffersWhatTheDiskHasRoomForToo) {
  // With a stage bf16 weights are saved, without one f32 ones: only the first have room.
  const TemporaryFolder folder;
  const Squeezed roomy(machine_with_disk(folder, "1"));
  const Json all = Json::parse(run_underkeel(roomy.fit(" max_steps=8 save_steps=4 --json")).out);
  std::int64_t least = all["rows"][0]["disk_bytes"], most = least;
  for (const Json& row : all["rows"]) {
    least = std::min(least, row["disk_bytes"].get<std::int64_t>());
    most = std::max(most, row["disk_bytes"].get<std::int64_t>());
  }
  ASSERT_GT(least, 0);
  const Squeezed tight(
      machine_with_disk(folder, std::to_string(static_cast<double>(least + 1024) / (1 << 30))));

  const Ran ran = run_underkeel(tight.fit(" max_steps=8 save_steps=4 --json"));

  ASSERT_EQ(ran.exit_code, 0) << ran.error;
  const Json found = Json::parse(ran.out);
  EXPECT_GT(found["budgets"]["disk"]["bytes"].get<std::int64_t>(), least);
  for (const Json& row : found["rows"]) {
    std::string words =
        "plan " + tight.words() + " max_steps=8 save_steps=4 --memory " + tight.budgets;
    for (const auto& word : row["changes"]) words += " " + word.get<std::string>();
    const Ran plan = run_underkeel(words);
    EXPECT_EQ(plan.exit_code, 0) << words << "\n" << plan.error;
    EXPECT_THAT(plan.out, HasSubstr("disk: "));
  }
}

TEST(PlanFit, SaysWhatToChangeWhereOnlyTheDiskRefuses) {
  const TemporaryFolder folder;
  const Squeezed squeezed(machine_with_disk(folder, "0.002"));

  const Ran ran = run_underkeel(squeezed.fit(" max_steps=90 save_steps=2"));

  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.error,
              HasSubstr("settings fits, because of the disk: the checkpoints do not fit"));
  EXPECT_THAT(ran.error, HasSubstr("45 checkpoints of "));
  EXPECT_THAT(ran.error, HasSubstr("out_free_gib"));
  EXPECT_THAT(ran.error, HasSubstr("save_total_limit: "));
  EXPECT_THAT(ran.error, HasSubstr("save_only_model: true"));
}

TEST(PlanFit, ListsNoRowThatIsNoBetterThanAnother) {
  const Squeezed squeezed("", 130);

  const Json found = Json::parse(run_underkeel(squeezed.fit(" --json")).out);

  const Json& rows = found["rows"];
  ASSERT_GE(rows.size(), 2u);
  const auto is_as_good = [](const Json& one, const Json& other) {
    bool is = one["step_s"].get<double>() <= other["step_s"].get<double>() * (1 + 1e-9) &&
              one["node_host_bytes"] <= other["node_host_bytes"];
    for (const auto& [space, peak] : other["peak_bytes"].items())
      is = is && one["peak_bytes"].value(space, std::int64_t{0}) <= peak.get<std::int64_t>();
    return is;
  };
  for (const Json& one : rows)
    for (const Json& other : rows)
      if (&one != &other) {
        EXPECT_FALSE(is_as_good(one, other)) << one["changes"] << " and " << other["changes"];
      }
}

TEST(PlanFit, KeepsColumnsApartHoweverLargeTheFigures) {
  const TemporaryFolder folder;
  write_text(folder / "hardware.yaml",
             "host_ram_gib: 64\nmatmul_flops_per_s: 1.0e20\nmemory_bytes_per_s: 1.0e20\n"
             "link_bytes_per_s: 1.0e20\nlink_latency_s: 0\ndisk_bytes_per_s: 1.0e20\n");
  const Squeezed squeezed("--hardware " + (folder / "hardware.yaml").string());

  const Ran ran = run_underkeel(squeezed.fit(" max_steps=1000000000"));

  ASSERT_EQ(ran.exit_code, 0) << ran.error;
  EXPECT_THAT(ran.out, testing::ContainsRegex("\n +[^ ]+ s +[0-9,]{13,}  +[^ ]+ "));
}

TEST(PlanFit, SaysWhereEvaluationsAreNotCounted) {
  const Squeezed squeezed;

  const Ran ran =
      run_underkeel(squeezed.fit(" max_steps=25 val_size=0.5 eval_strategy=steps eval_steps=10"));

  EXPECT_EQ(ran.exit_code, 0) << ran.error;
  EXPECT_THAT(ran.out,
              testing::ContainsRegex("to end: 25 steps.*; without evaluations \\(.* a batch\\): "
                                     "--data counts them"));
}

TEST(PlanFit, RefusesWhatIsNoBudget) {
  EXPECT_EQ(run_underkeel("plan run.yaml --fit disk=1GiB").exit_code, 2);
  EXPECT_EQ(run_underkeel("plan run.yaml --fit device").exit_code, 2);
  EXPECT_THAT(run_underkeel("plan run.yaml --fit device=12MiB,host=0").error,
              HasSubstr("`host=0`: a size above 0 is wanted"));
  const Ran empty = run_underkeel("plan run.yaml --fit ''");
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_THAT(empty.error, HasSubstr("no budget is given"));
  EXPECT_THAT(empty.error, HasSubstr("such as device=80GiB,host=100GiB"));
  EXPECT_THAT(run_underkeel("plan run.yaml --memory nvme=1GiB").error,
              HasSubstr("no part of a run lies on nvme"));
}

TEST(PlanFit, ASmallerBudgetOfTheRunHolds) {
  const Squeezed squeezed;
  const std::string words = "plan " + squeezed.words() + " underkeel.memory.device=128KiB";

  const Ran ran = run_underkeel(words + " --fit device=8GiB");

  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.error, HasSubstr("allowed 128 KiB (underkeel.memory.device)"));
}

TEST(PlanFit, AllThatIsShortIsNamed) {
  const Squeezed squeezed;
  write_text(squeezed.run.folder / "hardware.yaml", "host_ram_gib: 64\nout_free_gib: 0.00001\n");

  const Ran ran = run_underkeel("plan " + squeezed.words() + " --hardware " +
                                (squeezed.run.folder / "hardware.yaml").string() +
                                " --fit device=64KiB,host=64MiB");

  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.error, HasSubstr("what comes closest needs"));
  EXPECT_THAT(ran.error, HasSubstr("(--fit device)"));
  EXPECT_THAT(ran.error, HasSubstr("(--fit host)"));
  EXPECT_THAT(ran.error, HasSubstr("do not fit the disk"));
  EXPECT_THAT(ran.error, HasSubstr("for the disk: "));
}

TEST(PlanFit, ABoundIsNoFigureBesidePlannedOnes) {
  // Of what was only bounded no need is told: a larger micro-batch would seem to need less.
  const Squeezed squeezed("", 60);

  const Ran ran = run_underkeel(squeezed.fit());

  EXPECT_THAT(ran.out + ran.error, testing::Not(HasSubstr("at least")));
}

}  // namespace
}  // namespace underkeel::test
