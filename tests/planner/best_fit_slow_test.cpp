#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/units.h"
#include "planner/best_fit.h"
#include "planner/search_grid.h"
#include "simulate/simulate.h"
#include "support/model_folder.h"
#include "support/temporary_folder.h"
#include "support/text_files.h"
#include "support/value_of.h"

namespace underkeel::planner {
namespace {

using plan::MemorySpace;
using test::value_of;

struct Wide {
  std::int64_t layers = 12;
  std::int64_t ranks = 1;
  std::string more = {};  // lines of the run file
  spec::HardwareSpec machine = {.nodes = 1, .host_ram_bytes = 64 * gibibyte, .cores = 8};
};

/// A run of a narrow model on a machine that is described.
class Prepared {
 public:
  explicit Prepared(const Wide& wide) : wide_(wide) {
    test::write_text(folder_ / "model" / "config.json", fmt::format(R"({{"model_type": "llama",
        "architectures": ["LlamaForCausalLM"], "vocab_size": 2048, "hidden_size": 256,
        "intermediate_size": 688, "num_hidden_layers": {}, "num_attention_heads": 4,
        "num_key_value_heads": 4, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
        "hidden_act": "silu", "tie_word_embeddings": false}})",
                                                                    wide.layers));
    model_ = value_of(spec::read_model_config(folder_ / "model"));
    test::write_text(folder_ / "run.yaml",
                     "model_name_or_path: " + (folder_ / "model").string() +
                         "\nstage: pt\ndo_train: true\nfinetuning_type: full\ndataset: text\n"
                         "cutoff_len: 512\noutput_dir: out\nbf16: true\n" +
                         wide.more);
  }

  spec::RunConfig read(std::vector<std::string> words) const {
    words.push_back(fmt::format("underkeel.ranks={}", wide_.ranks));
    return value_of(
        spec::read_run_file(folder_ / "run.yaml", words, spec::WorldSize{wide_.ranks, "--ranks"}));
  }
  FitQuestion question(const spec::RunConfig& run) const {
    return {.model = model_,
            .run = run,
            .machine = wide_.machine,
            .placement = spread_evenly(wide_.machine, wide_.ranks, false)};
  }
  StepTimes times(const plan::Plan& plan) const {
    const simulate::Simulation simulated = simulate::simulate_step(plan, wide_.machine);
    return {simulated.step_s, simulated.save_s, simulated.save_wait_s};
  }
  BestFit best(const spec::RunConfig& run) const {
    return find_best_fit(question(run), [&](const plan::Plan& plan) { return times(plan); });
  }
  Room room(const spec::RunConfig& run) const {
    return room_of(run, wide_.machine, question(run).placement);
  }
  bool is_on_cards() const { return wide_.machine.gpus_per_node > 0; }
  std::int64_t ranks() const { return wide_.ranks; }
  std::int64_t device_bytes(const spec::RunConfig& run) const {
    return make_plan_on(question(run)).layout.size_bytes[index(MemorySpace::device)];
  }

  /// Plans all of the grid in full: the least step of what fits; none where nothing does.
  std::optional<double> least_step(const spec::RunConfig& run) const {
    std::optional<double> least;
    for (Settings settings : settings_to_search(question(run)))
      for (const std::int64_t batch : evaluation_batches_to_search(question(run))) {
        settings.evaluation_batch = batch;
        const auto changed = read_changed(run, words_for(run, settings), wide_.ranks);
        if (!changed) continue;
        const plan::Plan plan = make_plan_on(question(changed->run));
        if (shortage_of(plan, room(run))) continue;
        const double step_s = times(plan).step_s;
        if (!least || step_s < *least) least = step_s;
      }
    return least;
  }

 private:
  Wide wide_;
  test::TemporaryFolder folder_;
  spec::ModelSpec model_;
};

const std::string four_by_two = "per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\n";

/// A node of eight cards that are slow enough for links to matter.
spec::HardwareSpec cards() {
  spec::HardwareSpec machine{.gpus_per_node = 8, .host_ram_bytes = 64 * gibibyte};
  machine.gpu_mem_bytes = 80 * gibibyte;
  machine.matmul_flops_per_s = 1e13;
  machine.memory_bytes_per_s = 1e12;
  machine.link_bytes_per_s = 2e10;
  return machine;
}

/// A budget that leaves a rank's arena so much: of a card 1 GiB is its driver's.
std::string budget_of(const Prepared& setup, std::int64_t device_bytes) {
  const std::int64_t for_driver = setup.is_on_cards() ? gibibyte : 0;
  return fmt::format("underkeel.memory.device={}B", device_bytes + for_driver);
}

/// Budgets between what the smallest and what the present settings need.
std::vector<std::string> budgets(const Prepared& setup) {
  const std::int64_t all = setup.device_bytes(setup.read({"underkeel.recompute=none"}));
  std::vector<std::string> words;
  for (const std::int64_t percent : {40, 60, 80, 130})
    words.push_back(budget_of(setup, all * percent / 100));
  return words;
}

/// Every row applied as it is printed plans within the budget, with the peaks and times that were promised, and
/// keeps the global batch. Gives how many there were.
int check_rows(const Prepared& setup, const std::vector<std::string>& words) {
  const spec::RunConfig run = setup.read(words);
  const BestFit found = setup.best(run);
  double before_s = 0;
  for (const FittingRun& row : found.rows) {
    std::vector<std::string> all = words;
    all.insert(all.end(), row.words.begin(), row.words.end());
    const spec::RunConfig applied = setup.read(all);
    const plan::Plan plan = make_plan_on(setup.question(applied));
    EXPECT_FALSE(shortage_of(plan, setup.room(applied)));
    EXPECT_EQ(plan.layout.size_bytes, row.peak_bytes);
    EXPECT_EQ(setup.times(plan).step_s, row.times.step_s);
    EXPECT_GE(row.times.step_s, before_s * (1 - 1e-6)) << "rows are in order";
    EXPECT_EQ(applied.sequences_per_micro_batch * applied.accumulation_steps,
              run.sequences_per_micro_batch * run.accumulation_steps);
    before_s = row.times.step_s;
  }
  EXPECT_EQ(found.rows.empty(), found.smallest.has_value());
  return static_cast<int>(found.rows.size());
}

TEST(BestFit, EveryRowPlansAsItSaysOnOneRank) {
  const Prepared setup({.more = four_by_two});

  int rows = 0;
  for (const std::string& budget : budgets(setup)) rows += check_rows(setup, {budget});

  EXPECT_GT(rows, 6);
}

TEST(BestFit, EveryRowPlansAsItSaysOnEightCards) {
  const Prepared setup({.layers = 9, .ranks = 8, .more = four_by_two, .machine = cards()});

  int rows = 0;
  for (const std::string& budget : budgets(setup)) rows += check_rows(setup, {budget});

  EXPECT_GT(rows, 6);
}

TEST(BestFit, EveryRowPlansAsItSaysBesideADeepspeedConfig) {
  const Prepared setup(
      {.layers = 3,
       .ranks = 4,
       .more = four_by_two + "deepspeed: {zero_optimization: {stage: 2}, bf16: {enabled: true}, "
                             "train_micro_batch_size_per_gpu: 4, gradient_accumulation_steps: 2, "
                             "train_batch_size: 32}\n"});

  int rows = 0;
  for (const std::string& budget : budgets(setup)) rows += check_rows(setup, {budget});

  EXPECT_GT(rows, 6);
}

TEST(BestFit, TheFirstIsTheFastestOfTheWholeGrid) {
  for (const std::int64_t ranks : {1, 4}) {
    const Prepared setup({.layers = 11,
                          .ranks = ranks,
                          .more = four_by_two + "eval_strategy: steps\neval_dataset: text\n"
                                                "per_device_eval_batch_size: 4\n",
                          .machine = cards()});
    for (const std::string& budget : budgets(setup)) {
      const spec::RunConfig run = setup.read({budget});
      const std::optional<double> least = setup.least_step(run);

      const BestFit found = setup.best(run);

      ASSERT_EQ(found.rows.empty(), !least.has_value()) << ranks << " ranks, " << budget;
      if (least) {
        EXPECT_NEAR(found.rows.front().times.step_s, *least, 1e-6 * *least) << budget;
      }
    }
  }
}

TEST(BestFit, NamesTheSmallestWhereNothingFits) {
  const Prepared setup({.more = four_by_two});
  const spec::RunConfig run = setup.read({"underkeel.memory.device=1MiB"});

  const BestFit found = setup.best(run);

  ASSERT_TRUE(found.smallest && !found.shortages.empty());
  EXPECT_TRUE(found.rows.empty());
  EXPECT_EQ(found.shortages[0].needed_bytes,
            found.smallest->peak_bytes[index(MemorySpace::device)]);
  for (const Settings& settings : settings_to_search(setup.question(run))) {
    const auto changed = read_changed(run, words_for(run, settings), 1);
    ASSERT_TRUE(changed);
    EXPECT_GE(setup.device_bytes(changed->run), found.shortages[0].needed_bytes);
  }
}

/// How a choice writes this knob of settings.
std::string value_in(const std::string& subject, const Settings& settings) {
  if (subject == "recompute") return std::string(name_of(settings.recompute));
  if (subject == "micro-batch")
    return fmt::format("{} x {}", settings.micro_batch, settings.accumulation);
  if (subject == "ZeRO stage") return fmt::format("{}", settings.stage);
  if (!settings.prefetch_elements) return "one unit";
  return *settings.prefetch_elements == 0 ? "nothing"
                                          : format_count(*settings.prefetch_elements) + " elements";
}

/// The settings of the grid that an alternative to a row's choice stands for.
Settings settings_of(const plan::Decision& choice, const std::string& value, const FittingRun& row,
                     const std::vector<Settings>& grid) {
  const std::vector<std::string> subjects = {"recompute", "micro-batch", "ZeRO stage",
                                             "gather ahead"};
  std::vector<Settings> meant;
  for (const Settings& one : grid) {
    bool is_meant = value_in(choice.subject, one) == value;
    for (const std::string& subject : subjects)
      // Gathers ahead belong to stage 3.
      if (subject != choice.subject &&
          !(choice.subject == "ZeRO stage" && subject == "gather ahead"))
        is_meant = is_meant && value_in(subject, one) == value_in(subject, row.settings);
    if (choice.subject == "ZeRO stage")
      is_meant = is_meant && one.prefetch_elements == grid[0].prefetch_elements;
    if (is_meant) meant.push_back(one);
  }
  EXPECT_EQ(meant.size(), 1u) << choice.subject << " " << value;
  return meant.at(0);
}

/// What is printed of the alternatives to the first row, held against plans in full: sign and size to three digits. Gives
/// how many times there were.
int check_alternatives(const Prepared& setup, const std::string& budget) {
  const spec::RunConfig run = setup.read({budget});
  const BestFit found = setup.best(run);
  if (found.rows.empty()) return 0;
  const FittingRun& first = found.rows.front();
  int times = 0;
  for (const plan::Decision& choice : first.choices)
    for (const plan::Alternative& other : choice.alternatives) {
      const std::string said = choice.subject + " " + other.value + ": " + other.effect;
      const Settings settings =
          settings_of(choice, other.value, first, settings_to_search(setup.question(run)));
      const auto changed = read_changed(run, words_for(run, settings), setup.ranks());
      if (!changed) {
        ADD_FAILURE() << said;
        continue;
      }
      const plan::Plan plan = make_plan_on(setup.question(changed->run));
      EXPECT_EQ(shortage_of(plan, setup.room(run)).has_value(),
                other.effect.rfind("needs ", 0) == 0)
          << said;
      if (other.effect.rfind("needs ", 0) == 0) continue;
      ++times;
      const double percent = 100 * (setup.times(plan).step_s / first.times.step_s - 1);
      if (const std::string about = "step about "; other.effect.rfind(about, 0) == 0) {
        EXPECT_GT(percent, 45) << said << ": what is nearer is planned";
        EXPECT_NEAR(100 + percent, 100 + std::stod(other.effect.substr(about.size())),
                    0.02 * (100 + percent) + 0.5)
            << said;
        continue;
      }
      const bool is_longer =
          other.effect.rfind("step ", 0) == 0 && other.effect.find("% longer") != std::string::npos;
      EXPECT_TRUE(is_longer || other.effect == "step as long")
          << said << ": the first is the fastest, and all others that fit have a time";
      const double told = is_longer ? std::stod(other.effect.substr(5)) : 0;
      EXPECT_NEAR(percent, told, told == 0 ? 0.05 : 0.006 * told) << said;
    }
  return times;
}

TEST(BestFit, EveryAlternativeToTheFirstIsAsPlannedInFull) {
  int times = 0;
  for (const std::int64_t layers : {7, 12, 22}) {
    const Prepared setup({.layers = layers, .ranks = 8, .more = four_by_two, .machine = cards()});
    for (const std::string& budget : budgets(setup)) times += check_alternatives(setup, budget);
  }

  EXPECT_GT(times, 30);
}

TEST(BestFit, KeepsNoRowForSavesThatAreNotMade) {
  const Prepared setup(
      {.ranks = 8, .more = four_by_two + "save_strategy: \"no\"\n", .machine = cards()});

  for (const std::string& budget : budgets(setup)) {
    const std::vector<FittingRun> rows = setup.best(setup.read({budget})).rows;
    for (std::size_t slow = 1; slow < rows.size(); ++slow)
      for (std::size_t fast = 0; fast < slow; ++fast)
        EXPECT_TRUE(rows[slow].peak_bytes[index(MemorySpace::device)] <
                        rows[fast].peak_bytes[index(MemorySpace::device)] ||
                    rows[slow].node_bytes < rows[fast].node_bytes)
            << budget << ", rows " << fast << " and " << slow;
  }
}

TEST(BestFit, SaysWhatTheOthersWouldDo) {
  const Prepared setup({.ranks = 8, .more = four_by_two, .machine = cards()});
  const std::int64_t all = setup.device_bytes(setup.read({"underkeel.recompute=none"}));

  const BestFit found = setup.best(setup.read({budget_of(setup, all * 3 / 5)}));

  ASSERT_FALSE(found.rows.empty());
  std::vector<std::string> subjects;
  for (const plan::Decision& choice : found.rows.front().choices) {
    subjects.push_back(choice.subject);
    for (const plan::Alternative& other : choice.alternatives)
      EXPECT_THAT(other.effect,
                  testing::AnyOf(testing::HasSubstr("needs "), testing::HasSubstr("step ")));
  }
  EXPECT_THAT(subjects, testing::IsSupersetOf({"recompute", "micro-batch", "ZeRO stage"}));
}

}  // namespace
}  // namespace underkeel::planner
