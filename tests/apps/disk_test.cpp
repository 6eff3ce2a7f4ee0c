// What a run needs of the disk, said by `plan`, by `doctor` and by the refusal of `train`: one figure.

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "base/units.h"
#include "doctor/finding.h"
#include "support/case.h"

namespace underkeel::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

json planned(const std::string& words) {
  const Ran ran = run_underkeel("plan --json " + words);
  return json::parse(ran.out, nullptr, false);
}

std::string messages_of(const std::string& words) {
  return run_underkeel("doctor " + words).out;
}

struct Row {
  std::string words;
  std::int64_t at_once = 0, at_end = 0;
};

TEST(DiskNeed, IsOneFigureWhoeverIsAsked) {
  const RunnableCase made = complete_case("disk_fills_in_save", {.model_file = "none"});
  const std::string run = made.run_file.string();
  write_text(made.folder / "hardware.yaml", "host_ram_gib: 64\nout_free_gib: 0.00001\n");
  const std::string on_small = " --hardware " + (made.folder / "hardware.yaml").string();
  const std::string evaluated =
      " val_size=4 eval_strategy=steps eval_steps=2 load_best_model_at_end=true";
  for (const Row& row : {
           Row{"save_total_limit=3", 4, 3},
           Row{"save_total_limit=1", 2, 1},
           Row{"save_total_limit=1" + evaluated, 3, 2},
           Row{"save_total_limit=3" + evaluated, 4, 3},
           Row{"save_total_limit=3 save_only_model=true", 4, 3},
           Row{"save_total_limit=null", 5, 5},
           Row{"save_total_limit=3 save_strategy=no", 0, 0},
       }) {
    SCOPED_TRACE(row.words);
    const std::string words = run + " max_steps=10 save_steps=2 " + row.words;

    const json disk = planned(words)["disk"];

    const std::int64_t each = disk["checkpoint_bytes"], final = disk["export_bytes"];
    const std::int64_t needed = disk["needed_bytes"];
    EXPECT_EQ(disk["checkpoints_at_once"], row.at_once);
    EXPECT_EQ(disk["checkpoints_at_end"], row.at_end);
    EXPECT_EQ(needed, std::max(row.at_once * each, row.at_end * each + final));
    EXPECT_GT(disk["free_bytes"], needed) << "of this machine";
    EXPECT_EQ(disk["source"], made.output.string());
    EXPECT_EQ(planned(words + on_small)["disk"]["needed_bytes"], needed);
    const std::string said = doctor::amount(static_cast<double>(needed));
    EXPECT_THAT(messages_of(words), HasSubstr(said));
    EXPECT_THAT(messages_of(words + on_small), HasSubstr(said + " needed"));
    const std::string exact = format_count(needed) + " bytes (" + format_bytes(needed) + ") needed";
    EXPECT_THAT(run_underkeel("plan " + words + on_small).error, HasSubstr(exact));
    ::setenv("UNDERKEEL_IO_FAULT", ("quota:path=" + made.output.string() + ",bytes=100000").c_str(),
             1);
    const Ran refused = run_underkeel("train " + words);
    const Ran here = run_underkeel("plan " + words);
    ::unsetenv("UNDERKEEL_IO_FAULT");
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.error, HasSubstr(exact));
    EXPECT_EQ(here.exit_code, 2);
    EXPECT_THAT(refused.error, HasSubstr(here.error)) << "plan says what train says";
  }
}

TEST(DiskNeed, IsCalledTheLeastWhereTheNumberOfSavesIsNotKnown) {
  const RunnableCase made = complete_case("disk_fills_in_save", {.model_file = "none"});
  const std::string words =
      made.run_file.string() + " max_steps=-1 num_train_epochs=3 save_total_limit=";

  EXPECT_THAT(
      run_underkeel("plan " + words + "null").out,
      HasSubstr(" at least (all checkpoints are kept, and how many there are is not known"));
  EXPECT_THAT(run_underkeel("plan " + words + "2").out, HasSubstr(": 3 checkpoints of "));
  // Small data are read unasked, and tell how many saves there are.
  EXPECT_THAT(messages_of(words + "null dataset_dir=elsewhere"),
              AllOf(HasSubstr("disk: at least "), HasSubstr(" (all are kept"),
                    testing::Not(HasSubstr("disk: at most "))));
  EXPECT_THAT(messages_of(words + "null"),
              AllOf(HasSubstr("disk: at most "), testing::Not(HasSubstr("all are kept"))));
}

/// A run on a described machine whose memory and disk are both short of it.
struct ShortOfBoth {
  RunnableCase made = complete_case("disk_fills_in_save", {.model_file = "none"});
  std::string words;

  ShortOfBoth() {
    const std::string run =
        made.run_file.string() + " max_steps=10 save_steps=2 save_total_limit=3";
    const json whole = planned(run);
    const std::int64_t peak = whole["spaces"]["device"]["peak_bytes"];
    const std::int64_t disk = whole["disk"]["needed_bytes"];
    write_text(made.folder / "hardware.yaml",
               "host_ram_gib: 64\nout_free_gib: " +
                   std::to_string(0.6 * static_cast<double>(disk) / gibibyte) + "\n");
    words = run + " --hardware " + (made.folder / "hardware.yaml").string() +
            " --memory device=" + std::to_string(peak * 8 / 10) + "B";
  }
};

TEST(DiskNeed, IsNamedBesideMemoryThatIsShort) {
  const ShortOfBoth asked;

  const Ran refused = run_underkeel("plan " + asked.words);
  const json told = planned(asked.words);

  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("device peak "), HasSubstr("(--memory device)"),
                                   HasSubstr("the checkpoints do not fit the disk: "),
                                   HasSubstr("disk: out_free_gib of")));
  ASSERT_EQ(told["shortages"].size(), 2u);
  EXPECT_EQ(told["shortages"][0]["space"], "device");
  EXPECT_EQ(told["shortages"][1]["space"], "disk");
  EXPECT_EQ(told["fits"], false);
  const json suggestions = told["suggestions"];
  ASSERT_FALSE(suggestions.empty()) << refused.error;
  for (const json& suggestion : suggestions) {
    const std::string change = suggestion["change"];
    EXPECT_THAT(refused.error, HasSubstr(change));
    EXPECT_EQ(run_underkeel("plan " + asked.words + " " + change).exit_code, 0) << change;
    const json changed = planned(asked.words + " " + change);
    EXPECT_EQ(changed["spaces"]["device"]["peak_bytes"], suggestion["needs"]["device"]);
    EXPECT_EQ(changed["disk"]["needed_bytes"], suggestion["needs"]["disk"]);
  }
}

TEST(DiskNeed, OfARunWithoutSavesIsOfTheFinalModelAlone) {
  const RunnableCase made = complete_case("disk_fills_in_save", {.model_file = "none"});
  const std::string words = made.run_file.string() + " max_steps=10 save_strategy=no";

  const Ran ran = run_underkeel("plan " + words);
  const json told = planned(words);

  EXPECT_THAT(ran.out, AllOf(HasSubstr("saves: none on the way; the final model at the end"),
                             HasSubstr("\n  final model "), HasSubstr(": no checkpoint"),
                             testing::Not(HasSubstr("during a save")),
                             testing::Not(HasSubstr("after a save")),
                             testing::Not(HasSubstr("waited for"))));
  EXPECT_TRUE(told["times"]["save_s"].is_null());
  EXPECT_TRUE(told["phases"]["after_save"].empty());
  EXPECT_LE(told["phases"]["save"]["device"], told["phases"]["step"]["device"]);
  EXPECT_GT(told["disk"]["export_bytes"], 0);
}

TEST(DiskNeed, OfARunThatGoesOnIsOfTheSavesToCome) {
  const RunnableCase made = complete_case("disk_fills_in_save", {.model_file = "none"});
  const std::string words = made.run_file.string() + " save_steps=2 save_total_limit=3 max_steps=";
  ASSERT_EQ(run_underkeel("train " + words + "4").exit_code, 0);

  json first = planned(words + "4 resume_from_checkpoint=none")["disk"];
  json rest = planned(words + "6")["disk"];

  EXPECT_EQ(first["checkpoints_at_once"], 2);
  EXPECT_EQ(rest["checkpoints_at_once"], 3) << "two stand there";
  const std::int64_t each = rest["checkpoint_bytes"], final = rest["export_bytes"];
  EXPECT_EQ(rest["needed_bytes"], each + final);
}

}  // namespace
}  // namespace underkeel::test
