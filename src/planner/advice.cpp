// Changes of a run that make its plan fit. Each is written as the user would write it, read and planned
// again, and checked; fewest changes first, then the smallest.

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/units.h"
#include "planner/fit.h"
#include "planner/settings.h"

namespace underkeel::planner {

namespace {

constexpr std::size_t most_changes = 4;
constexpr std::size_t enough_changes = 2;

enum Knob : std::size_t { recompute, micro_batch, stage, ranks, evaluation };
constexpr std::size_t knob_count = 5;
/// A position on every knob; 0 is the run as it is.
using Setting = std::array<std::size_t, knob_count>;

/// Divisors of `value` above one, ascending; at most six, the largest among them.
std::vector<std::int64_t> some_divisors_of(std::int64_t value) {
  std::vector<std::int64_t> divisors = divisors_of(value);
  divisors.erase(divisors.begin());
  constexpr std::size_t most = 6;
  while (divisors.size() > most) divisors.erase(divisors.end() - 2);
  return divisors;
}

class Search {
 public:
  Search(const FitQuestion& question, const Shortage& shortage)
      : q_(question),
        shortage_(shortage),
        base_(request_on(question.machine, question.placement, question.model, question.run)) {
    list_levels();
    // A plan takes time that grows with the layers: two seconds at the most.
    plans_left_ =
        std::clamp<std::int64_t>(6000 / std::max<std::int64_t>(1, q_.model.layers), 40, 400);
  }

  Advice run() {
    const std::vector<Setting> order = settings();
    if (any_extreme_fits()) {
      for (const Setting& setting : order) {
        if (found_.size() == most_changes) break;
        if (!goes_beyond_a_found_one(setting)) try_setting(setting);
      }
      // Where one knob alone fits, further positions of it are changes too.
      for (const Setting& setting : order)
        if (found_.size() < enough_changes && !is_found(setting)) try_setting(setting);
    }
    Advice advice;
    for (const Setting& setting : found_) advice.changes.push_back(*tried_.at(setting).change);
    if (found_.empty()) advice.smallest = smallest();
    return advice;
  }

 private:
  struct Trial {
    std::optional<Change> change;
    bool fits = false;
  };

  std::int64_t world() const { return q_.placement.world_size; }

  void list_levels() {
    const spec::RunConfig& run = q_.run;
    // With `auto` the planner goes through the levels itself.
    if (run.recompute != spec::Recompute::automatic)
      for (const spec::Recompute level : {spec::Recompute::cheap, spec::Recompute::block})
        if (level > run.recompute) recompute_.push_back(level);
    divisors_ = some_divisors_of(run.sequences_per_micro_batch);
    if (!q_.placement.ranks_are_processes) {
      const std::int64_t most =
          q_.machine.gpus_per_node > 0
              ? q_.machine.nodes * q_.machine.gpus_per_node
              : std::max<std::int64_t>(4, q_.machine.nodes * q_.machine.cores);
      for (std::int64_t factor = 2; world() * factor <= most; factor *= 2)
        rank_factors_.push_back(factor);
    }
    for (int level = base_.stage + 1; level <= 3; ++level) stages_.push_back(level);
    if (base_.max_evaluation_rows > 0)
      evaluation_divisors_ = some_divisors_of(run.evaluation.batch_size);
  }

  std::size_t level_count(std::size_t knob) const {
    const std::array<std::size_t, knob_count> counts{recompute_.size(), divisors_.size(),
                                                     stages_.size(), rank_factors_.size(),
                                                     evaluation_divisors_.size()};
    return counts[knob] + 1;
  }

  static std::size_t changed_count(const Setting& setting) {
    return static_cast<std::size_t>(
        std::count_if(setting.begin(), setting.end(), [](std::size_t at) { return at > 0; }));
  }
  static std::size_t distance(const Setting& setting) {
    std::size_t sum = 0;
    for (const std::size_t at : setting) sum += at;
    return sum;
  }

  std::vector<Setting> settings() const {
    std::vector<Setting> all{Setting{}};
    for (std::size_t knob = 0; knob < knob_count; ++knob) {
      const std::size_t count = all.size();
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t at = 1; at < level_count(knob); ++at) {
          all.push_back(all[i]);
          all.back()[knob] = at;
        }
    }
    all.erase(all.begin());  // as it is
    std::stable_sort(all.begin(), all.end(), [](const Setting& a, const Setting& b) {
      const auto size = [](const Setting& s) { return std::pair(changed_count(s), distance(s)); };
      return size(a) < size(b);
    });
    return all;
  }

  // The far ends of the knobs. Memory falls along each knob but two: more accumulation may need a
  // wider accumulator, and more ranks share a node.
  std::vector<Setting> extremes() const {
    std::vector<Setting> all;
    for (std::size_t s = 0; s < level_count(stage); ++s)
      for (std::size_t r = 0; r < level_count(ranks); ++r)
        for (const std::size_t m : {level_count(micro_batch) - 1, std::size_t{0}}) {
          Setting setting{};
          setting[recompute] = level_count(recompute) - 1;
          setting[micro_batch] = m;
          setting[stage] = s;
          setting[ranks] = r;
          setting[evaluation] = level_count(evaluation) - 1;
          all.push_back(setting);
        }
    return all;
  }

  bool any_extreme_fits() {
    const std::vector<Setting> all = extremes();
    return std::any_of(all.begin(), all.end(), [&](const Setting& setting) {
      return may_fit(setting) && trial(setting).fits;
    });
  }

  // The least that is reached when nothing fits; the extremes with the least state, at most 16 of them.
  Change smallest() {
    std::vector<Setting> all = extremes();
    std::stable_sort(all.begin(), all.end(), [&](const Setting& a, const Setting& b) {
      return least_bytes(a) < least_bytes(b);
    });
    constexpr std::size_t most = 16;
    all.resize(std::min(all.size(), most));
    for (const Setting& setting : all) trial(setting);
    // From the best of them knob by knob, until no position of one knob needs less.
    Setting best{};
    Change least{"", shortage_.needed_bytes};
    const auto take_least = [&] {
      bool better = false;
      for (const auto& [setting, made] : tried_)
        if (made.change && made.change->needed_bytes < least.needed_bytes) {
          least = *made.change;
          best = setting;
          better = true;
        }
      return better;
    };
    while (take_least())
      for (std::size_t knob = 0; knob < knob_count; ++knob)
        for (std::size_t at = 0; at < level_count(knob); ++at) {
          Setting neighbour = best;
          neighbour[knob] = at;
          trial(neighbour);
        }
    return least;
  }

  bool is_found(const Setting& setting) const {
    return std::find(found_.begin(), found_.end(), setting) != found_.end();
  }
  bool goes_beyond_a_found_one(const Setting& setting) const {
    return std::any_of(found_.begin(), found_.end(), [&](const Setting& found) {
      for (std::size_t knob = 0; knob < knob_count; ++knob)
        if (found[knob] > setting[knob]) return false;
      return true;
    });
  }

  void try_setting(const Setting& setting) {
    if (may_fit(setting) && trial(setting).fits) found_.push_back(setting);
  }

  // The words of a setting; nothing when the global batch cannot be kept.
  std::optional<std::vector<std::string>> words_of(const Setting& setting) const {
    const spec::RunConfig& run = q_.run;
    const std::int64_t divisor =
        setting[micro_batch] == 0 ? 1 : divisors_[setting[micro_batch] - 1];
    const std::int64_t factor = factor_of(setting);
    const std::int64_t accumulated = run.accumulation_steps * divisor;
    if (accumulated % factor != 0) return std::nullopt;
    Settings wanted = settings_of(run);
    wanted.micro_batch /= divisor;
    wanted.accumulation = accumulated / factor;
    if (setting[recompute] > 0) wanted.recompute = recompute_[setting[recompute] - 1];
    if (setting[stage] > 0) wanted.stage = stages_[setting[stage] - 1];
    if (setting[evaluation] > 0)
      wanted.evaluation_batch /= evaluation_divisors_[setting[evaluation] - 1];
    return words_for(run, wanted);
  }

  std::int64_t factor_of(const Setting& setting) const {
    return setting[ranks] == 0 ? 1 : rank_factors_[setting[ranks] - 1];
  }

  // State that fills the budget by itself needs no plan to be refused.
  bool may_fit(const Setting& setting) const {
    if (shortage_.space && shortage_.space != plan::MemorySpace::device) return true;
    return least_bytes(setting) <= shortage_.allowed_bytes;
  }

  // A bound from below: weights, optimizer and gradients of the ranks that share the short budget.
  std::int64_t least_bytes(const Setting& setting) const {
    const std::int64_t count = spec::parameter_count(q_.model);
    const std::int64_t world_size = world() * factor_of(setting);
    const int level = world_size == 1      ? 0
                      : setting[stage] > 0 ? stages_[setting[stage] - 1]
                                           : base_.stage;
    const auto part = [&](std::int64_t size_bytes, int sharded_from) {
      return level >= sharded_from ? size_bytes / world_size : size_bytes;
    };
    const std::int64_t optimizer = !base_.keeps_masters              ? 4 * count
                                   : base_.weight_type == DType::f32 ? 8 * count
                                                                     : 12 * count;
    // Gradients may be narrower after a change, never than 16 bits.
    const std::int64_t of_rank =
        part(bytes_of(base_.weight_type, count), 3) + part(optimizer, 1) + part(2 * count, 2);
    const std::int64_t sharing =
        shortage_.space ? 1 : ceil_div(world_size, std::min(q_.machine.nodes, world_size));
    return sharing * of_rank;
  }

  const Trial& trial(const Setting& setting) {
    const auto [found, is_new] = tried_.try_emplace(setting);
    Trial& made = found->second;
    if (!is_new) return made;
    const auto words = words_of(setting);
    if (!words || plans_left_ == 0) return made;
    plan_again(*words, world() * factor_of(setting), made);
    return made;
  }

  // Leaves `into` as it is when the words cannot be read.
  void plan_again(const std::vector<std::string>& words, std::int64_t world_size, Trial& into) {
    std::vector<std::string> all;
    if (world_size != world()) all.push_back(fmt::format("underkeel.ranks={}", world_size));
    all.insert(all.end(), words.begin(), words.end());
    const auto changed = read_changed(q_.run, all, world_size);
    if (!changed) return;
    std::string text;
    for (const std::string& word : changed->words)
      text += (text.empty() ? "" : " ") + (world_size != world() && &word == &changed->words.front()
                                               ? fmt::format("--ranks {}", world_size)
                                               : word);
    --plans_left_;
    const Placement placement =
        world_size == world()
            ? q_.placement
            : spread_evenly(q_.machine, world_size, q_.placement.ranks_are_processes);
    const plan::Plan plan = make_plan_on(
        {.model = q_.model, .run = changed->run, .machine = q_.machine, .placement = placement});
    const Room room = room_of(changed->run, q_.machine, placement);
    into.change = Change{text, needed_bytes(plan, room, shortage_.space)};
    into.fits = !shortage_of(plan, room);
  }

  const FitQuestion& q_;
  const Shortage& shortage_;
  Request base_;
  std::vector<spec::Recompute> recompute_;
  std::vector<std::int64_t> divisors_;  // of the micro-batch
  std::vector<int> stages_;
  std::vector<std::int64_t> rank_factors_;
  std::vector<std::int64_t> evaluation_divisors_;
  std::map<Setting, Trial> tried_;
  std::vector<Setting> found_;
  std::int64_t plans_left_ = 0;
};

}  // namespace

Advice advise(const FitQuestion& question, const Shortage& shortage) {
  if (question.run.run_file.empty())  // not read from a file: there is no command to add words to
    return {.changes = {}, .smallest = std::nullopt};
  return Search(question, shortage).run();
}

}  // namespace underkeel::planner
