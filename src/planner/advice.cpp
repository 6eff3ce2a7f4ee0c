// Changes of a run that make its plan fit. Most are estimated from plans of few layers; what is named was written as
// the user would write it, read and planned again, and checked (docs/decisions/0008). Fewest changes first, then the
// smallest.

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/units.h"
#include "planner/few_layers.h"
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
  Search(const FitQuestion& question, const std::vector<Shortage>& shortages)
      : q_(question),
        shortages_(shortages),
        room_(room_of(question.run, question.machine, question.placement)),
        base_(request_on(question.machine, question.placement, question.model, question.run)),
        parameter_count_(spec::parameter_count(question.model)),
        few_layers_(question.model) {
    list_levels();
  }

  Advice run() {
    const std::vector<Setting> order = settings();
    if (any_extreme_may_fit()) {
      for (const Setting& setting : order) {
        if (found_.size() == most_changes) break;
        if (!goes_beyond_a_found_one(setting)) try_setting(setting);
      }
      // Where one knob alone fits, further positions of it are changes too.
      for (const Setting& setting : order)
        if (found_.size() < enough_changes && !is_found(setting)) try_setting(setting);
    }
    Advice advice;
    for (const Setting& setting : found_) advice.changes.push_back(*planned_.at(setting).change);
    if (found_.empty()) advice.smallest = smallest();
    advice.planned = planned_count_;
    return advice;
  }

 private:
  /// What a setting is thought to need of its budgets.
  struct Estimate {
    double fullness = 0;
    bool may_fit = false;
  };
  struct Trial {
    std::optional<Change> change;
    double fullness = 0;
    std::vector<Shortage> shortages;
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
      // Ranks that share a short memory are better fewer; their number divides what they do now.
      if (std::any_of(shortages_.begin(), shortages_.end(),
                      [](const Shortage& shortage) { return !shortage.space; }))
        for (std::int64_t divisor : some_divisors_of(world())) worlds_.push_back(world() / divisor);
      for (std::int64_t more = 2 * world(); more <= most; more *= 2) worlds_.push_back(more);
    }
    for (int level = base_.stage + 1; level <= 3; ++level) stages_.push_back(level);
    if (base_.max_evaluation_rows > 0)
      evaluation_divisors_ = some_divisors_of(run.evaluation.batch_size);
  }

  std::size_t level_count(std::size_t knob) const {
    const std::array<std::size_t, knob_count> counts{recompute_.size(), divisors_.size(),
                                                     stages_.size(), worlds_.size(),
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

  bool any_extreme_may_fit() {
    const std::vector<Setting> all = extremes();
    return std::any_of(all.begin(), all.end(),
                       [&](const Setting& setting) { return may_fit(setting); });
  }

  // The least that is reached when nothing fits: from the extremes with the least state, at most 16 of them, knob by
  // knob until no position of one knob is thought to need less. The end of that way is planned, with what is before
  // it, since estimates of two that are close may stand the other way round.
  Closest smallest() {
    std::multimap<double, Setting> by_state;
    for (const Setting& setting : extremes())
      if (settings_at(setting)) by_state.emplace(least_fullness(setting), setting);
    std::vector<Setting> all;
    constexpr std::size_t most_extremes = 16;
    for (const auto& [fullness, setting] : by_state)
      if (all.size() < most_extremes) all.push_back(setting);
    std::vector<Setting> way = {Setting{}};
    const auto go_to = [&](const Setting& setting) {
      if (thought_to_need(setting) >= thought_to_need(way.back())) return false;
      way.push_back(setting);
      return true;
    };
    for (const Setting& setting : all) go_to(setting);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t knob = 0; knob < knob_count; ++knob)
        for (std::size_t at = 0; at < level_count(knob); ++at) {
          Setting neighbour = way.back();
          neighbour[knob] = at;
          moved = go_to(neighbour) || moved;
        }
    }
    constexpr int most_planned = 3;
    Closest least{.words = {}, .shortages = shortages_};
    double reached = ratio_of(shortages_.front());
    for (int planned = 0; way.size() > 1 && planned < most_planned; way.pop_back()) {
      const Trial& made = trial(way.back());
      if (!made.change) continue;
      ++planned;
      if (made.fullness >= reached) continue;
      least = {.words = made.change->words, .shortages = made.shortages};
      reached = made.fullness;
    }
    return least;
  }

  double thought_to_need(const Setting& setting) {
    return settings_at(setting) ? estimate(setting).fullness
                                : std::numeric_limits<double>::infinity();
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
    if (!may_fit(setting)) return;
    const Trial& made = trial(setting);
    if (made.change && made.shortages.empty()) found_.push_back(setting);
  }

  // Nothing when the global batch cannot be kept.
  std::optional<Settings> settings_at(const Setting& setting) const {
    const spec::RunConfig& run = q_.run;
    const std::int64_t divisor =
        setting[micro_batch] == 0 ? 1 : divisors_[setting[micro_batch] - 1];
    const std::int64_t ranks_now = world_of(setting);
    const std::int64_t rounds = run.accumulation_steps * divisor * world();
    if (rounds % ranks_now != 0) return std::nullopt;
    Settings wanted = settings_of(run);
    wanted.micro_batch /= divisor;
    wanted.accumulation = rounds / ranks_now;
    if (setting[recompute] > 0) wanted.recompute = recompute_[setting[recompute] - 1];
    if (setting[stage] > 0) wanted.stage = stages_[setting[stage] - 1];
    if (setting[evaluation] > 0)
      wanted.evaluation_batch /= evaluation_divisors_[setting[evaluation] - 1];
    return wanted;
  }

  std::int64_t world_of(const Setting& setting) const {
    return setting[ranks] == 0 ? world() : worlds_[setting[ranks] - 1];
  }

  Placement placement_of(const Setting& setting) const {
    return setting[ranks] == 0
               ? q_.placement
               : spread_evenly(q_.machine, world_of(setting), q_.placement.ranks_are_processes);
  }

  /// The setting that needs least of those with the same ranks and stage, and as much accumulation.
  Setting extreme_of(const Setting& setting) const {
    Setting extreme = setting;
    extreme[recompute] = level_count(recompute) - 1;
    extreme[evaluation] = level_count(evaluation) - 1;
    if (setting[micro_batch] > 0) extreme[micro_batch] = level_count(micro_batch) - 1;
    return extreme;
  }

  // State that fills the budget by itself needs no estimate to be refused, and what its extreme does not reach neither.
  bool may_fit(const Setting& setting) {
    if (!settings_at(setting)) return false;
    if (least_fullness(setting) > 1) return false;
    const Setting extreme = extreme_of(setting);
    if (settings_at(extreme) && !estimate(extreme).may_fit) return false;
    return estimate(setting).may_fit;
  }

  /// From plans of few layers. The setting must keep the global batch.
  const Estimate& estimate(const Setting& setting) {
    const auto [found, is_new] = estimates_.try_emplace(setting);
    if (!is_new) return found->second;
    const Placement placement = placement_of(setting);
    const spec::RunConfig run = with_settings(q_.run, *settings_at(setting));
    Request request = request_on(q_.machine, placement, q_.model, run);
    // `auto` ends with what recomputes most.
    if (run.recompute == spec::Recompute::automatic) request.recompute = spec::Recompute::block;
    plan::Plan sizes;
    sizes.overhead_bytes = request.overhead_bytes;
    sizes.layout.size_bytes = few_layers_.of(request).size_bytes;
    const Room room = room_of(run, q_.machine, placement);
    found->second = {.fullness = fullness_of(sizes, room),
                     .may_fit = !certain_shortage(sizes, room)};
    return found->second;
  }

  // A bound from below, of the ranks that share a short budget, if their devices are part of it. The setting must keep the
  // global batch.
  double least_fullness(const Setting& setting) const {
    double fullness = 0;
    const std::int64_t of_rank = least_device_bytes(request_at(setting), parameter_count_);
    for (Shortage least : shortages_) {
      if (!is_on_node(plan::MemorySpace::device, room_) && !least.space) continue;
      const std::int64_t sharing =
          least.space ? 1
                      : ceil_div(world_of(setting), std::min(q_.machine.nodes, world_of(setting)));
      least.needed_bytes = sharing * of_rank;
      fullness = std::max(fullness, ratio_of(least));
    }
    return fullness;
  }

  Request request_at(const Setting& setting) const {
    return request_on(q_.machine, placement_of(setting), q_.model,
                      with_settings(q_.run, *settings_at(setting)));
  }

  const Trial& trial(const Setting& setting) {
    const auto [found, is_new] = planned_.try_emplace(setting);
    Trial& made = found->second;
    if (!is_new) return made;
    const auto wanted = settings_at(setting);
    if (wanted) plan_again(words_for(q_.run, *wanted), placement_of(setting), made);
    return made;
  }

  // Leaves `into` as it is when the words cannot be read.
  void plan_again(const std::vector<std::string>& words, const Placement& placement, Trial& into) {
    const std::int64_t world_size = placement.world_size;
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
    ++planned_count_;
    const plan::Plan plan = make_plan_on(
        {.model = q_.model, .run = changed->run, .machine = q_.machine, .placement = placement});
    const Room room = room_of(changed->run, q_.machine, placement);
    into.change = Change{.words = text, .needed_bytes = {}};
    for (const Shortage& shortage : shortages_)
      into.change->needed_bytes.push_back(needed_bytes(plan, room, shortage.space));
    into.fullness = fullness_of(plan, room);
    into.shortages = shortages_of(plan, room);
  }

  const FitQuestion& q_;
  const std::vector<Shortage>& shortages_;
  Room room_;
  Request base_;
  std::vector<spec::Recompute> recompute_;
  std::vector<std::int64_t> divisors_;  // of the micro-batch
  std::vector<int> stages_;
  std::vector<std::int64_t> worlds_;  // other numbers of ranks
  std::vector<std::int64_t> evaluation_divisors_;
  std::int64_t parameter_count_;
  FewLayers few_layers_;
  std::map<Setting, Estimate> estimates_;
  std::map<Setting, Trial> planned_;
  std::vector<Setting> found_;
  std::int64_t planned_count_ = 0;
};

}  // namespace

Advice advise(const FitQuestion& question, const std::vector<Shortage>& shortages) {
  if (question.run.run_file.empty())  // not read from a file: there is no command to add words to
    return {};
  return Search(question, shortages).run();
}

}  // namespace underkeel::planner
