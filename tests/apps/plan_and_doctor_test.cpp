// What `doctor` says of our own engine is what `plan` says: bytes of every phase and space, the node, the verdict.

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
    EXPECT_THAT(of_disk, HasSubstr("disk: " + disk));
  }
}

}  // namespace
}  // namespace underkeel::test
