// Memory and time of a step grow evenly with the number of layers. So two plans of a few layers tell what all of them need:
// a bound from below for memory, since a peak is the largest of sums that each grow evenly, and a close figure for
// time. What the estimate leaves is planned in full, fastest first, until nothing that is left can be faster.

#include "planner/best_fit.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/units.h"
#include "planner/few_layers.h"
#include "planner/fitting_runs.h"
#include "planner/knobs.h"
#include "planner/search_grid.h"

namespace underkeel::planner {

namespace {

using plan::MemorySpace;

// Plans in full of one answer, once there is one: each takes time that grows with the layers.
constexpr std::int64_t most_plans = 24;

// A row that takes this much longer than the first is no answer to what is fastest, whatever memory it leaves.
constexpr double slowest_row = 1.5;

/// By more than sums of times differ in their last digits and a reader is told of.
bool is_longer(double one_s, double other_s) {
  constexpr double least_told = 0.0005;
  return one_s > other_s * (1 + least_told);
}

class BestFitSearch {
 public:
  BestFitSearch(const FitQuestion& question, const PredictTimes& predict, const AskDisk& ask_disk)
      : q_(question),
        predict_(predict),
        ask_disk_(ask_disk),
        room_(room_of(question.run, question.machine, question.placement)),
        parameter_count_(spec::parameter_count(question.model)),
        few_layers_(question.model),
        evaluation_batches_(evaluation_batches_to_search(question)) {}

  BestFit run() {
    BestFit found;
    const std::vector<Settings> grid = settings_to_search(q_);
    const bool disk_has_room = !disk_refuses_all(grid);
    for (const Settings& settings : grid) {
      ++found.searched;
      const Estimate* smaller = smaller_that_is_too_large(settings);
      estimates_.push_back(smaller != nullptr ? as_large_as(*smaller, settings)
                                              : estimate(settings));
    }
    std::vector<Estimate*> order;
    for (Estimate& one : estimates_)
      if (one.may_fit) order.push_back(&one);
    std::stable_sort(order.begin(), order.end(), [](const Estimate* a, const Estimate* b) {
      return a->times.step_s < b->times.step_s;
    });
    if (disk_has_room) found.rows = fastest(order, Disk::heeded, found.planned);
    if (found.rows.empty()) name_what_the_disk_refused(order, found);
    if (found.rows.empty() && !found.smallest) name_smallest(found);
    hold_against_neighbours(found);
    if (!found.rows.empty())
      std::erase_if(found.rows,
                    [longest_s = slowest_row * found.rows.front().times.step_s](
                        const FittingRun& row) { return row.times.step_s > longest_s; });
    for (FittingRun& row : found.rows) row.choices = choices_of(row);
    return found;
  }

 private:
  /// What a setting is thought to need.
  struct Estimate {
    Settings settings;
    plan::Plan sizes;  // layout.size_bytes and overhead_bytes alone
    StepTimes times;   // none where the state alone is too large
    bool may_fit = false;
    bool is_bound = false;  // `sizes` are what it needs at least
  };
  struct Planned {
    Settings settings;
    FittingRun run;  // `disk` alone where the disk refuses
    std::vector<Shortage> shortages;
    bool disk_refuses = false;
    bool may_fit_with_less_evaluation = false;

    bool fits() const { return shortages.empty() && !disk_refuses; }
  };
  enum class Disk : std::uint8_t { heeded, passed_over };

  /// Of `waiting`, by estimated steps, those that fit: as many as an answer has, and all that may be faster.
  std::vector<FittingRun> fastest(std::vector<Estimate*> waiting, Disk disk,
                                  std::int64_t& planned_count) {
    std::vector<FittingRun> rows;
    const auto may_be_faster = [&](const Estimate* one) {
      return one->times.step_s * (1 - time_tolerance) <= rows.front().times.step_s &&
             !is_idle_gathering(*one);
    };
    for (;;) {
      std::vector<Estimate*> next, later;
      for (Estimate* const one : waiting) {
        const double least_s = one->times.step_s * (1 - time_tolerance);
        if (rows.size() == most_fitting_runs && least_s > rows.back().times.step_s) continue;
        if (!rows.empty() && least_s > slowest_row * rows.front().times.step_s) continue;
        if (is_surpassed(*one, rows)) continue;
        const bool waits = next.size() == most_fitting_runs || is_idle_gathering(*one);
        (waits ? later : next).push_back(one);
      }
      if (next.empty()) return rows;
      planned_count += plan_into(rows, std::move(next), disk);
      waiting = std::move(later);
      if (planned_count >= most_plans && !rows.empty() &&
          std::none_of(waiting.begin(), waiting.end(), may_be_faster))
        return rows;
    }
  }

  /// Plans in full, remembers what came of it, and puts what fits into `rows`. What evaluations alone keep from fitting is
  /// planned again with a smaller batch of them. Gives how many were planned.
  std::int64_t plan_into(std::vector<FittingRun>& rows, std::vector<Estimate*> wanted, Disk disk) {
    std::int64_t count = 0;
    while (!wanted.empty()) {
      std::vector<Estimate*> again;
      std::vector<std::optional<Planned>> made = plan_in_full(wanted, disk);
      for (std::size_t i = 0; i < made.size(); ++i) {
        if (!made[i]) continue;
        Planned& planned = *made[i];
        if (!planned.disk_refuses) ++count;
        if (planned.fits()) insert_run(planned.run, rows);
        if (planned.may_fit_with_less_evaluation && lower_evaluation(*wanted[i]))
          again.push_back(wanted[i]);
        planned_.push_back(std::move(planned));
      }
      wanted = std::move(again);
    }
    return count;
  }

  /// To the largest smaller evaluation batch that may fit; where none does, to the smallest. False: none does.
  bool lower_evaluation(Estimate& one) const {
    Settings settings = one.settings;
    for (const std::int64_t batch : evaluation_batches_)
      if (batch < one.settings.evaluation_batch) {
        settings.evaluation_batch = batch;
        one = estimate_as_it_is(settings);
        if (one.may_fit) return true;
      }
    return false;
  }

  /// Plans in full all that may fit and differs from the first row in one knob, but for what is far slower. Estimates of
  /// times may be wrong by more than is between two settings: what proves faster goes first, and its neighbours are planned
  /// in turn.
  void hold_against_neighbours(BestFit& found) {
    std::vector<const Estimate*> asked;
    while (!found.rows.empty()) {
      std::vector<Estimate*> wanted;
      for (Estimate& one : estimates_)
        if (one.may_fit && !is_told_by_estimate(one, found.rows.front().times) &&
            planned_with(one.settings) == nullptr &&
            differ_in_one(found.rows.front().settings, one.settings) &&
            std::find(asked.begin(), asked.end(), &one) == asked.end())
          wanted.push_back(&one);
      if (wanted.empty()) return;
      asked.insert(asked.end(), wanted.begin(),
                   wanted.end());  // words that cannot be read give no plan
      found.planned += plan_into(found.rows, std::move(wanted), Disk::heeded);
    }
  }

  const Planned* planned_with(const Settings& settings) const {
    const auto at = std::find_if(planned_.begin(), planned_.end(),
                                 [&](const Planned& one) { return one.settings == settings; });
    return at == planned_.end() ? nullptr : &*at;
  }

  std::optional<DiskUse> disk_use(const spec::RunConfig& run) const {
    return ask_disk_ ? ask_disk_(run) : std::nullopt;
  }

  /// Whether the disk has no room for any of the grid. What a run writes may depend on its stage, which may bring a config
  /// that says how weights are saved, and on nothing else that is searched: one of each stage is asked.
  bool disk_refuses_all(const std::vector<Settings>& grid) const {
    if (!ask_disk_) return false;
    std::set<int> asked;
    for (const Settings& settings : grid) {
      if (!asked.insert(settings.stage).second) continue;
      const auto changed =
          read_changed(q_.run, words_for(q_.run, settings), q_.placement.world_size);
      const auto use = changed ? disk_use(changed->run) : std::nullopt;
      if (!use || use->fits()) return false;
    }
    return true;
  }

  /// Whether it fits in any case and is far slower than `first` in any case.
  bool is_told_by_estimate(const Estimate& one, const StepTimes& first) const {
    plan::Plan most = one.sizes;
    for (std::int64_t& size_bytes : most.layout.size_bytes)
      size_bytes += static_cast<std::int64_t>(memory_tolerance * static_cast<double>(size_bytes));
    return one.may_fit && one.times.step_s * (1 - time_tolerance) > slowest_row * first.step_s &&
           !shortage_of(most, room_);
  }

  /// Whether it gathers further ahead than a setting that is the same else, and by their estimates gains nothing. (Beside
  /// the first row it is planned all the same, and where that setting proves too large.)
  bool is_idle_gathering(const Estimate& one) const {
    return std::any_of(estimates_.begin(), estimates_.end(), [&](const Estimate& other) {
      return &other != &one && other.may_fit && !has_proved_too_large(other) &&
             differ_in("gather ahead", one.settings, other.settings) &&
             other.settings.evaluation_batch == one.settings.evaluation_batch &&
             other.times.step_s <= one.times.step_s &&
             needs_no_more(other.sizes.layout.size_bytes, one.sizes.layout.size_bytes) &&
             (&other < &one ||  // of the same figures the first
              other.times.step_s < one.times.step_s ||
              other.sizes.layout.size_bytes != one.sizes.layout.size_bytes);
    });
  }

  bool has_proved_too_large(const Estimate& one) const {
    const Planned* const planned = planned_with(one.settings);
    return planned != nullptr && !planned->fits();
  }

  /// Whether one of `rows` is faster in any case and needs no more than is estimated.
  bool is_surpassed(const Estimate& one, const std::vector<FittingRun>& rows) const {
    return std::any_of(rows.begin(), rows.end(), [&](const FittingRun& row) {
      return row.times.step_s < one.times.step_s * (1 - time_tolerance) &&
             needs_no_more(row.peak_bytes, one.sizes.layout.size_bytes) &&
             row.node_bytes <= needed_bytes(one.sizes, room_, std::nullopt);
    });
  }

  /// The largest evaluation batch that may fit; where none does, the estimate of the smallest.
  Estimate estimate(Settings settings) const {
    Estimate made;
    for (const std::int64_t batch : evaluation_batches_) {
      settings.evaluation_batch = batch;
      made = estimate_as_it_is(settings);
      if (made.may_fit || made.is_bound) break;
    }
    return made;
  }

  Request request_with(const Settings& settings) const {
    return request_on(q_.machine, q_.placement, q_.model, with_settings(q_.run, settings));
  }

  Estimate estimate_as_it_is(const Settings& settings) const {
    Estimate made{.settings = settings};
    const Request request = request_with(settings);
    made.sizes.overhead_bytes = request.overhead_bytes;
    made.sizes.layout.size_bytes[index(MemorySpace::device)] =
        least_device_bytes(request, parameter_count_);
    made.is_bound = shortage_of(made.sizes, room_).has_value();
    return made.is_bound ? made : estimate_from_few_layers(settings);
  }

  Estimate estimate_from_few_layers(const Settings& settings) const {
    Estimate made{.settings = settings};
    const Request request = request_with(settings);
    const FewLayers::Figures figures = few_layers_.of(request, predict_);
    made.times = figures.times;
    made.sizes.overhead_bytes = request.overhead_bytes;
    made.sizes.layout.size_bytes = figures.size_bytes;
    made.may_fit = !certain_shortage(made.sizes, room_);
    return made;
  }

  /// Settings that need no more than these and do not fit, if any were found: what recomputes more, holds fewer rows, or
  /// gathers nothing ahead. Sums over one micro-step may be narrower than over several: those two are not compared.
  const Estimate* smaller_that_is_too_large(const Settings& settings) const {
    const auto is_below = [&](const Settings& other) {
      return other.stage == settings.stage && other.recompute >= settings.recompute &&
             other.micro_batch <= settings.micro_batch &&
             (other.accumulation > 1) == (settings.accumulation > 1) &&
             (other.prefetch_elements == settings.prefetch_elements ||
              other.prefetch_elements == 0);
    };
    const auto at = std::find_if(estimates_.begin(), estimates_.end(), [&](const Estimate& one) {
      return !one.may_fit && is_below(one.settings);
    });
    return at == estimates_.end() ? nullptr : &*at;
  }
  static Estimate as_large_as(Estimate smaller, const Settings& settings) {
    smaller.settings = settings;
    smaller.is_bound = true;
    return smaller;
  }

  /// Several at once, one a core: a plan takes tens of MiB, which the next one on its thread takes again.
  std::vector<std::optional<Planned>> plan_in_full(const std::vector<Estimate*>& wanted,
                                                   Disk disk) const {
    std::vector<std::optional<Planned>> made(wanted.size());
    std::atomic<std::size_t> next{0};
    const auto plan_next = [&] {
      for (std::size_t i = next++; i < wanted.size(); i = next++)
        made[i] = plan_in_full(wanted[i]->settings, disk);
    };
    std::vector<std::future<void>> helpers;
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    while (helpers.size() + 1 < std::min(cores, wanted.size()))
      helpers.push_back(std::async(std::launch::async, plan_next));
    plan_next();
    for (std::future<void>& helper : helpers) helper.get();
    return made;
  }

  /// None where the words cannot be read.
  std::optional<Planned> plan_in_full(const Settings& settings, Disk disk) const {
    const auto changed = read_changed(q_.run, words_for(q_.run, settings), q_.placement.world_size);
    if (!changed) return std::nullopt;
    const std::optional<DiskUse> use = disk_use(changed->run);
    Planned planned{.settings = settings};
    planned.disk_refuses = disk == Disk::heeded && use && !use->fits();
    planned.run.disk = use;
    if (planned.disk_refuses) return planned;
    const plan::Plan plan = make_plan_on(
        {.model = q_.model, .run = changed->run, .machine = q_.machine, .placement = q_.placement});
    planned.run = {.settings = settings,
                   .words = changed->words,
                   .run = changed->run,
                   .peak_bytes = plan.layout.size_bytes,
                   .node_bytes = needed_bytes(plan, room_, std::nullopt),
                   .times = predict_(plan),
                   .disk = use,
                   .choices = {}};
    planned.shortages = shortages_of(plan, room_);
    planned.may_fit_with_less_evaluation = !planned.shortages.empty() &&
                                           settings.evaluation_batch > evaluation_batches_.back() &&
                                           !shortage_of(least_without_evaluation(plan), room_);
    return planned;
  }

  /// What memory has room for and the disk has not: the one that wants least of it.
  void name_what_the_disk_refused(const std::vector<Estimate*>& order, BestFit& found) {
    if (!disk_use(q_.run)) return;
    const std::vector<FittingRun> rows = fastest(order, Disk::passed_over, found.planned);
    const auto least =
        std::min_element(rows.begin(), rows.end(), [](const FittingRun& a, const FittingRun& b) {
          return (a.disk ? a.disk->needed_bytes : 0) < (b.disk ? b.disk->needed_bytes : 0);
        });
    if (least != rows.end()) found.smallest = *least;
  }

  /// The one that misses by least: bounds become estimates and estimates plans, lowest first, until none that is left can
  /// miss by less than the best of what was planned.
  void name_smallest(BestFit& found) {
    double reached = std::numeric_limits<double>::infinity();
    const auto hold = [&](const Planned& planned) {
      if (planned.shortages.empty() || ratio_of(planned.shortages.front()) >= reached) return;
      reached = ratio_of(planned.shortages.front());
      found.shortages = planned.shortages;
      found.smallest = planned.run;
    };
    for (const Planned& planned : planned_) hold(planned);
    const auto miss_of = [&](const plan::Plan& sizes) {
      return std::max(1.0, fullness_of(sizes, room_));
    };
    std::multimap<double, Estimate> waiting;  // by the least that they may miss by
    for (const Estimate& one : estimates_)
      if (planned_with(one.settings) == nullptr) waiting.emplace(miss_of(one.sizes), one);
    for (int planned_here = 0; !waiting.empty() && planned_here < most_plans;) {
      const auto [bound, one] = std::move(*waiting.begin());
      waiting.erase(waiting.begin());
      if (bound * (1 - memory_tolerance) > reached) break;
      if (one.is_bound) {
        Settings settings = one.settings;
        settings.evaluation_batch = evaluation_batches_.back();
        Estimate made = estimate_from_few_layers(settings);
        waiting.emplace(std::max(bound, miss_of(made.sizes)), std::move(made));
        continue;
      }
      const auto planned = plan_in_full(one.settings, Disk::passed_over);
      ++planned_here;
      ++found.planned;
      if (planned) hold(*planned);
    }
  }

  std::vector<plan::Decision> choices_of(const FittingRun& row) const {
    std::vector<plan::Decision> choices;
    for (const std::string_view knob : knobs) {
      plan::Decision choice{.subject = std::string(knob), .value = knob_text(knob, row.settings)};
      bool any_may_fit = false, any_is_faster = false, all_planned = true;
      for (const Estimate& other : estimates_) {
        if (!differ_in(knob, row.settings, other.settings)) continue;
        const Planned* const planned = planned_with(other.settings);
        const bool may_fit = planned != nullptr ? planned->fits() : other.may_fit;
        any_may_fit = any_may_fit || may_fit;
        any_is_faster = any_is_faster || (planned != nullptr && may_fit &&
                                          is_longer(row.times.step_s, planned->run.times.step_s));
        all_planned = all_planned &&
                      (planned != nullptr || !may_fit || is_told_by_estimate(other, row.times));
        choice.alternatives.push_back(
            {knob_text(knob, other.settings),
             planned != nullptr ? effect(*planned, row.times) : effect(other, row.times)});
      }
      if (choice.alternatives.empty()) continue;
      choice.reason = !any_may_fit    ? "no other fits with the rest as it is"
                      : any_is_faster ? "not the fastest that fits"
                      : all_planned   ? "the fastest that fits"
                                      : "the fastest that was planned in full";
      choices.push_back(std::move(choice));
    }
    if (row.settings.evaluation_batch != q_.run.evaluation.batch_size) {
      Settings larger = row.settings;
      larger.evaluation_batch = q_.run.evaluation.batch_size;
      choices.push_back({.subject = "evaluation batch",
                         .value = fmt::format("{}", row.settings.evaluation_batch),
                         .reason = "the largest that fits",
                         .alternatives = {{fmt::format("{}", larger.evaluation_batch),
                                           effect(estimate_as_it_is(larger), row.times)}}});
    }
    return choices;
  }

  /// Of what was not planned in full: its estimated time may be wrong by more than it differs.
  std::string effect(const Estimate& other, const StepTimes& own) const {
    if (is_told_by_estimate(other, own))
      return fmt::format("step about {:.0f}% longer", 100 * (other.times.step_s / own.step_s - 1));
    if (other.may_fit) return "may fit; not planned in full";
    const std::vector<Shortage> shortages = shortages_of(other.sizes, room_);
    UK_CHECK(!shortages.empty(), "what may not fit is short of something");
    // What was not estimated has a bound alone, which is no figure to stand beside others.
    if (!other.is_bound) return shortage_text(shortages, "about ");
    const Shortage& first = shortages.front();
    return fmt::format("needs more of {} than the {} allowed", space_text(first),
                       format_bytes(first.allowed_bytes));
  }
  static std::string effect(const Planned& other, const StepTimes& own) {
    if (other.disk_refuses)
      return fmt::format("needs {} of the disk, {} free",
                         format_bytes(other.run.disk->needed_bytes),
                         format_bytes(other.run.disk->free_bytes));
    if (!other.shortages.empty()) return shortage_text(other.shortages, "");
    const double step_s = other.run.times.step_s;
    if (!is_longer(step_s, own.step_s) && !is_longer(own.step_s, step_s)) return "step as long";
    return fmt::format("step {:.3g}% {}", 100 * std::abs(step_s / own.step_s - 1),
                       step_s > own.step_s ? "longer" : "shorter");
  }
  static std::string_view space_text(const Shortage& shortage) {
    return shortage.space ? plan::name_of(*shortage.space) : std::string_view("the node");
  }
  static std::string shortage_text(const std::vector<Shortage>& shortages,
                                   std::string_view how_sure) {
    std::vector<std::string> said;
    for (const Shortage& shortage : shortages)
      said.push_back(fmt::format("{}{} of {}, allowed {}", how_sure,
                                 format_bytes(shortage.needed_bytes), space_text(shortage),
                                 format_bytes(shortage.allowed_bytes)));
    return fmt::format("needs {}", fmt::join(said, " and "));
  }

  const FitQuestion& q_;
  const PredictTimes& predict_;
  const AskDisk& ask_disk_;
  Room room_;
  std::int64_t parameter_count_;
  FewLayers few_layers_;
  std::vector<std::int64_t> evaluation_batches_;  // largest first
  std::vector<Estimate> estimates_;
  std::vector<Planned> planned_;  // in full
};

}  // namespace

BestFit find_best_fit(const FitQuestion& question, const PredictTimes& predict,
                      const AskDisk& ask_disk) {
  return BestFitSearch(question, predict, ask_disk).run();
}

}  // namespace underkeel::planner
