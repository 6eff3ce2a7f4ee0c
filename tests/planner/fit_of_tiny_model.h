#pragma once
// Runs of a tiny model on small machines, as a command line asks for them, and what is short there.

#include <iterator>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/units.h"
#include "planner/fit.h"
#include "support/model_folder.h"
#include "support/temporary_folder.h"
#include "support/text_files.h"
#include "support/value_of.h"

namespace underkeel::planner {

using plan::MemorySpace;
using test::value_of;
using testing::HasSubstr;

/// A run file of a tiny model, a machine of 8 cores and 64 GiB, and commands on them.
class Fit : public testing::Test {
 protected:
  Fit() {
    test::write_text(folder_ / "model" / "config.json",
                     test::complete_config(test::tiny_model_json()));
    model_ = value_of(spec::read_model_config(folder_ / "model"));
    write_run({});
  }

  void write_run(const std::string& more) {
    test::write_text(folder_ / "run.yaml",
                     "model_name_or_path: " + (folder_ / "model").string() +
                         "\nstage: pt\ndo_train: true\nfinetuning_type: full\ndataset: text\n"
                         "cutoff_len: 64\noutput_dir: out\nper_device_train_batch_size: 4\n" +
                         more);
  }

  struct Command {
    spec::RunConfig run;
    std::int64_t ranks = 1;
  };
  // Reads words as the command line does: `--ranks N` and changes, the last one of each holds.
  Command read(const std::vector<std::string>& words) const {
    Command command;
    std::vector<std::string> changes;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "--ranks")
        changes.push_back("underkeel.ranks=" + words[++i]);
      else
        changes.push_back(words[i]);
    }
    command.run = value_of(spec::read_run_file(folder_ / "run.yaml", changes));
    command.ranks = command.run.ranks;
    command.run.data.samples = samples_;
    return command;
  }
  FitQuestion question(const Command& command) const {
    return {.model = model_,
            .run = command.run,
            .machine = machine_,
            .placement = spread_evenly(machine_, command.ranks, false)};
  }
  plan::Plan plan_of(const Command& command) const { return make_plan_on(question(command)); }
  std::vector<Shortage> shortages(const Command& command) const {
    return shortages_of(plan_of(command),
                        room_of(command.run, machine_, question(command).placement));
  }
  Error error_of(const std::vector<std::string>& words) const {
    const Command command = read(words);
    const auto result = check_fit(plan_of(command), question(command));
    if (result) throw std::runtime_error("it fits");
    return result.error();
  }
  static std::int64_t global_batch(const Command& command) {
    return command.run.sequences_per_micro_batch * command.run.accumulation_steps * command.ranks;
  }
  static std::vector<std::string> words_of(const std::string& text) {
    std::istringstream stream(text);
    return {std::istream_iterator<std::string>(stream), {}};
  }

  // Every change under budgets from nothing to all that `words` need, of a rank or of the node, does
  // what it says. Returns how many were looked at.
  int check_all_changes(const std::vector<std::string>& words) {
    int looked_at = 0;
    for (const std::string space : {"device", "host"}) {
      const Command base = read(words);
      const Room room = room_of(base.run, machine_, question(base).placement);
      const auto which = space == "device" ? std::optional(MemorySpace::device) : std::nullopt;
      const std::int64_t all = needed_bytes(plan_of(base), room, which);
      for (int i = 1; i <= 5; ++i) {
        std::vector<std::string> command_words = words;
        command_words.push_back("underkeel.memory." + space + "=" +
                                std::to_string(all - all * i / 6) + "B");
        const Command command = read(command_words);
        const auto short_of = shortages(command);
        if (short_of.empty()) continue;
        const Advice advice = advise(question(command), short_of);
        EXPECT_EQ(advice.changes.empty(), advice.smallest.has_value());
        for (const Change& change : advice.changes) {
          std::vector<std::string> changed_words = command_words;
          for (const std::string& word : words_of(change.words)) changed_words.push_back(word);
          const Command changed = read(changed_words);
          EXPECT_THAT(shortages(changed), testing::IsEmpty()) << change.words;
          const FitQuestion asked = question(changed);
          EXPECT_EQ(needed_bytes(plan_of(changed), room_of(changed.run, machine_, asked.placement),
                                 which),
                    change.needed_bytes.at(0))
              << change.words;
          EXPECT_EQ(global_batch(changed), global_batch(command)) << change.words;
          ++looked_at;
        }
      }
    }
    return looked_at;
  }

  test::TemporaryFolder folder_;
  std::optional<spec::SampleSizes> samples_;  // as if the data had been read
  spec::ModelSpec model_;
  spec::HardwareSpec machine_{.host_ram_bytes = 64 * gibibyte, .cores = 8};
};

}  // namespace underkeel::planner
