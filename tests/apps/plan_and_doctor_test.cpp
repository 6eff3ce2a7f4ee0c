// What `doctor` says of our own engine is what `plan` says: bytes of every phase and space, the node, the verdict.

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "doctor/finding.h"
#include "support/case.h"

namespace underkeel::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Row {
  std::string case_name;
  CaseOptions options;
  std::string words;
  std::string machine = {};  // none: this one
};

TEST(PlanAndDoctor, SayTheSameOfOneRun) {
  const std::string evaluated = " val_size=4 eval_strategy=steps eval_steps=2";
  const std::string gpus = "nodes: 1\ngpus_per_node: 4\ngpu_mem_gib: 180\nhost_ram_gib: 512\n";
  for (const Row& row : {
           Row{"disk_fills_in_save",
               {.model_file = "none", .zero_stage = 1},
               "--ranks 2 max_steps=-1 num_train_epochs=2 save_strategy=epoch "
               "save_total_limit=null"},
           Row{"disk_fills_in_save",
               {.model_file = "none", .zero_stage = 3},
               "--ranks 4 save_strategy=no" + evaluated},
           Row{"tied_head", {.with_weights = false, .zero_stage = 0}, "--ranks 1", gpus},
           Row{"one_big_batch", {.with_weights = false, .zero_stage = 3}, "--ranks 4", gpus},
           Row{"large_vocabulary",
               {.with_weights = false, .zero_stage = 2},
               "--ranks 4 save_only_model=true" + evaluated,
               gpus},
       }) {
    SCOPED_TRACE(row.case_name + " " + row.words);
    RunnableCase made = complete_case(row.case_name, row.options);
    std::string words = made.run_file.string() + " " + row.words;
    if (!row.machine.empty()) {
      write_text(made.folder / "machine.yaml", row.machine);
      words += " --hardware " + (made.folder / "machine.yaml").string();
    }

    // doctor reads small data unasked.
    const Ran of_plan = run_underkeel("plan --json --data " + words);
    const Ran of_doctor = run_underkeel("doctor --json --resume " + words);

    const json plan = json::parse(of_plan.out, nullptr, false);
    const json doctor = json::parse(of_doctor.out, nullptr, false);
    ASSERT_TRUE(plan.is_object()) << of_plan.error;
    ASSERT_TRUE(doctor.is_object()) << of_doctor.error;
    const json& engine = doctor["engines"]["underkeel"];
    EXPECT_EQ(plan["fits"] == true, engine["verdict"] == "runs");
    EXPECT_EQ(of_plan.exit_code, of_doctor.exit_code);
    json bytes = json::object();
    for (const auto& [phase, spaces] : engine["memory"].items())
      for (const auto& [space, holding] : spaces.items()) bytes[phase][space] = holding["bytes"];
    json planned = plan["phases"];
    for (auto phase = planned.begin(); phase != planned.end();)
      phase = phase->empty() ? planned.erase(phase) : std::next(phase);
    EXPECT_EQ(bytes, planned);
    EXPECT_TRUE(planned.contains("resume"));
    const std::string node = doctor::amount(plan["node"]["host_bytes"].get<double>());
    const std::string disk = doctor::amount(plan["disk"]["needed_bytes"].get<double>());
    std::string of_node, of_disk;
    for (const json& finding : doctor["findings"]) {
      if (finding["id"] == "underkeel-host") of_node = finding["message"];
      if (finding["id"] == "underkeel-disk" || finding["id"] == "final-folder")
        if (finding["engine"] == "underkeel") of_disk = finding["message"];
    }
    EXPECT_THAT(of_node, HasSubstr("of a node: " + node));
    EXPECT_THAT(of_disk, testing::ContainsRegex("disk: (at most |at least )?" + disk));
  }
}

json finding_of(const std::string& words, std::string_view id) {
  const json told = json::parse(run_underkeel("doctor --json " + words).out);
  for (const json& finding : told["findings"])
    if (finding["id"] == id) return finding;
  return {{"message", "no " + std::string(id)}};
}

TEST(PlanAndDoctor, CountTheSavesOfTheRanksThatAreAskedAbout) {
  const RunnableCase made = complete_case("disk_fills_in_save", {.model_file = "none"});
  const std::string words = made.run_file.string() +
                            " max_steps=-1 num_train_epochs=4 save_strategy=steps save_steps=3 "
                            "save_total_limit=null --ranks ";
  std::int64_t before = 0;
  for (const char* ranks : {"1", "2", "4"}) {
    SCOPED_TRACE(ranks);

    const json disk = json::parse(run_underkeel("plan --json --data " + words + ranks).out)["disk"];

    const auto needed = disk["needed_bytes"].get<std::int64_t>();
    EXPECT_NE(needed, before);  // or the case says nothing
    before = needed;
    EXPECT_THAT(finding_of(words + ranks, "underkeel-disk")["message"].get<std::string>(),
                testing::ContainsRegex("disk: (at most |at least )?" +
                                       doctor::amount(static_cast<double>(needed))));
  }
}

TEST(PlanAndDoctor, LookIntoTheRunsFolderBesideItsDescription) {
  const RunnableCase made = complete_case("longest_comes_last");
  const std::string run = made.run_file.string();
  const std::string words = run + " " + (made.model / "config.json").string();

  // Not one of the tokenizer's tokens is that template's.
  const Ran alone = run_underkeel("doctor " + run + " template=llama3");
  const Ran beside = run_underkeel("doctor " + words + " template=llama3");

  EXPECT_EQ(alone.exit_code, 2) << alone.out;
  EXPECT_EQ(beside.exit_code, 2) << beside.out;
  EXPECT_THAT(finding_of(words + " --data", "data-longest")["message"].get<std::string>(),
              HasSubstr("training samples"));
  EXPECT_THAT(finding_of(words, "weights-whole")["message"].get<std::string>(),
              HasSubstr("all in their shapes"));
}

TEST(PlanAndDoctor, SayWhatIsNotJudgedOfAnotherModelsFolder) {
  const RunnableCase made = complete_case("tied_head");
  json config = json::parse(read_text(made.model / "config.json"));
  config["intermediate_size"] = config["intermediate_size"].get<int>() + 16;
  write_text(made.folder / "other.json", config.dump());
  const std::string words =
      made.run_file.string() + " " + (made.folder / "other.json").string() + " --data";

  EXPECT_THAT(finding_of(words, "model-folder-not-judged")["message"].get<std::string>(),
              HasSubstr(made.model.string()));
  EXPECT_THAT(finding_of(words, "data-not-read")["message"].get<std::string>(),
              HasSubstr("the tokenizer is not here"));
  EXPECT_THAT(run_underkeel("doctor --lang zh " + words).out,
              HasSubstr("没有读取：这里没有分词器"));
}

TEST(PlanAndDoctor, JudgeNoDataByAValueThatCannotBeRead) {
  std::filesystem::current_path(in_source(""));
  const std::string words = "examples/tiny/finetune.yaml cutoff_len=";

  for (const std::string value : {"1", "abc", "100000000"}) {
    const json told = json::parse(run_underkeel("doctor --json " + words + value).out);
    for (const json& finding : told["findings"]) {
      if (finding["severity"] != "error") continue;
      EXPECT_EQ(finding["key"], "cutoff_len") << finding.dump();
    }
  }
  EXPECT_THAT(finding_of(words + "abc --data", "data-not-read")["message"].get<std::string>(),
              HasSubstr("the run file is refused"));
}

TEST(PlanAndDoctor, DropNoDataInSilence) {
  const RunnableCase made = complete_case("tied_head");
  const std::string run = made.run_file.string();

  EXPECT_THAT(finding_of(run + " --data dataset_dir=/no/such", "data-not-read")["message"]
                  .get<std::string>(),
              HasSubstr("/no/such"));
  EXPECT_THAT(
      finding_of((made.model / "config.json").string() + " --data", "data-not-read")["message"]
          .get<std::string>(),
      HasSubstr("no run file"));
}

TEST(Plan, OffersFewerRanksWhereTheirNodeIsShort) {
  const RunnableCase made = complete_case("tied_head", {.with_weights = false});
  const std::string run = "plan --json " + made.run_file.string() + " --ranks ";
  const auto node = [&](const std::string& words) {
    return json::parse(run_underkeel(run + words).out)["node"]["host_bytes"].get<std::int64_t>();
  };
  const std::string batch = " per_device_train_batch_size=1 gradient_accumulation_steps=";
  const std::string least = batch + "2 underkeel.recompute=block";
  const std::int64_t of_one = node("1" + batch + "4 underkeel.recompute=block");
  ASSERT_GT(node("2" + least), of_one);
  const std::string limited = run + "2" + least + " --memory host=" + std::to_string(of_one) + " ";

  const Ran refused = run_underkeel(limited);

  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("--ranks 1 gradient_accumulation_steps=4"));
  const Ran changed = run_underkeel(limited + "--ranks 1 gradient_accumulation_steps=4");
  EXPECT_EQ(changed.exit_code, 0) << changed.error;
}

TEST(Plan, SaysWhereRanksAndBudgetsComeFrom) {
  const RunnableCase made = complete_case("tied_head", {.with_weights = false});
  const std::string run = made.run_file.string();
  const std::string machine = (made.folder / "eight.yaml").string();
  write_text(machine, "nodes: 1\ngpus_per_node: 8\ngpu_mem_gib: 141\nhost_ram_gib: 512\n");

  const Ran planned = run_underkeel("plan " + run + " --hardware " + machine);
  const Ran refused = run_underkeel("plan " + run + " --fit device=1MiB");

  const std::size_t at = planned.out.find("underkeel.ranks");
  ASSERT_NE(at, std::string::npos) << planned.out;
  EXPECT_THAT(planned.out.substr(at, planned.out.find('\n', at) - at), HasSubstr("eight.yaml"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("(--fit device)"));
  EXPECT_THAT(refused.error, testing::Not(HasSubstr("underkeel.memory")));
}

}  // namespace
}  // namespace underkeel::test
