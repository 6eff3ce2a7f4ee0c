// More memory is never worse: answers under budgets that grow, for runs with evaluations.

#include <cmath>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "planner/best_fit.h"
#include "planner/fit_of_tiny_model.h"
#include "planner/search_grid.h"
#include "simulate/simulate.h"

namespace underkeel::planner {
namespace {

struct Walked {
  std::int64_t layers = 2;
  std::vector<std::string> words;
};

std::ostream& operator<<(std::ostream& out, const Walked& walked) {
  out << walked.layers << " layers";
  for (const std::string& word : walked.words) out << " " << word;
  return out;
}

class FitOfBudgets : public Fit {
 protected:
  explicit FitOfBudgets() { write_run("bf16: true\neval_strategy: steps\neval_dataset: text\n"); }

  void set_layers(std::int64_t layers) {
    auto config = nlohmann::json::parse(test::complete_config(test::tiny_model_json()));
    config["num_hidden_layers"] = layers;
    test::write_text(folder_ / "model" / "config.json", config.dump());
    model_ = value_of(spec::read_model_config(folder_ / "model"));
  }

  Command read_under(const Walked& walked, std::int64_t device_bytes) const {
    std::vector<std::string> words = walked.words;
    words.push_back(fmt::format("underkeel.memory.device={}B", device_bytes));
    return read(words);
  }
  BestFit best(const Walked& walked, std::int64_t device_bytes) const {
    const Command command = read_under(walked, device_bytes);
    return find_best_fit(question(command), [&](const plan::Plan& plan) {
      const simulate::Simulation simulated = simulate::simulate_step(plan, machine_);
      return StepTimes{simulated.step_s, simulated.save_s, simulated.save_wait_s};
    });
  }
  static std::int64_t on_device(const FittingRun& run) {
    return run.peak_bytes[index(MemorySpace::device)];
  }

  /// The smallest device peak of all the search space, planned in full.
  std::int64_t least_peak_bytes(const Walked& walked) const {
    const Command command = read(walked.words);
    const FitQuestion asked = question(command);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (Settings settings : settings_to_search(asked)) {
      settings.evaluation_batch = evaluation_batches_to_search(asked).back();
      const auto changed =
          read_changed(command.run, words_for(command.run, settings), command.ranks);
      if (!changed) continue;
      const plan::Plan plan = make_plan_on({.model = model_,
                                            .run = changed->run,
                                            .machine = machine_,
                                            .placement = asked.placement});
      least = std::min(least, plan.layout.size_bytes[index(MemorySpace::device)]);
    }
    return least;
  }

  /// From the smallest peak upwards in steps of 1%, and one byte below it.
  void walk(const Walked& walked) {
    SCOPED_TRACE(testing::PrintToString(walked));
    set_layers(walked.layers);
    const std::int64_t least_bytes = least_peak_bytes(walked);

    const BestFit below = best(walked, least_bytes - 1);
    EXPECT_TRUE(below.rows.empty());
    ASSERT_TRUE(below.smallest);
    EXPECT_EQ(on_device(*below.smallest), least_bytes);

    double before_s = std::numeric_limits<double>::infinity();
    for (int step = 0; step <= 24; ++step) {
      const auto budget_bytes = static_cast<std::int64_t>(
          std::ceil(static_cast<double>(least_bytes) * (1 + 0.01 * step)));
      const BestFit found = best(walked, budget_bytes);
      ASSERT_FALSE(found.rows.empty()) << budget_bytes << " bytes, " << least_bytes << " reached";
      EXPECT_LE(on_device(found.rows.front()), budget_bytes);
      EXPECT_LE(found.rows.front().times.step_s, before_s * (1 + 1e-6)) << budget_bytes;
      before_s = found.rows.front().times.step_s;
    }
  }
};

TEST_F(FitOfBudgets, MoreMemoryIsNeverWorseOnOneRank) {
  walk({.words = {"per_device_train_batch_size=4", "per_device_eval_batch_size=4"}});
  walk({.layers = 11, .words = {"per_device_train_batch_size=6", "per_device_eval_batch_size=8"}});
}

TEST_F(FitOfBudgets, MoreMemoryIsNeverWorseOnSeveralRanks) {
  const std::string stage = "deepspeed.zero_optimization.stage=3";
  const std::string type = "deepspeed.bf16.enabled=true";
  walk({.words = {"--ranks", "2", stage, type, "per_device_train_batch_size=2",
                  "per_device_eval_batch_size=2"}});
  walk({.layers = 12,
        .words = {"--ranks", "4", stage, type, "per_device_train_batch_size=8",
                  "per_device_eval_batch_size=8"}});
  walk({.layers = 9,
        .words = {"--ranks", "3", "per_device_train_batch_size=6",
                  "per_device_eval_batch_size=16"}});
}

}  // namespace
}  // namespace underkeel::planner
