// Memory and time of a step grow evenly with the number of layers. So two plans of a few layers tell what all of them need:
// a bound from below for memory, since a peak is the largest of sums that each grow evenly, and a close figure for
// time. What the estimate leaves is planned in full, fastest first, until nothing that is left can be faster.

#include "planner/best_fit.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <map>
#include <span>
#include <thread>

#include <fmt/format.h>

#include "base/check.h"
#include "base/units.h"
#include "planner/steps_alone.h"

namespace underkeel::planner {

namespace {

using plan::MemorySpace;

// Enough for a gather two layers ahead on both sides of a layer that has all its neighbours.
constexpr std::int64_t fewer_layers = 5;
constexpr std::int64_t more_layers = 7;
// Estimates are this close (`BestFit.EstimatesAreClose`): what they call too large or too slow by more is out.
constexpr double memory_tolerance = 0.01;
constexpr double time_tolerance = 0.02;
// Tokens of a micro-batch beyond which products gain nothing from more rows, and plans become long.
constexpr std::int64_t most_rows = std::int64_t{1} << 18;
// Sums of times differ in their last digits.
constexpr double same_time = 1e-6;

spec::ModelSpec with_layers(const spec::ModelSpec& model, std::int64_t layers) {
  spec::ModelSpec fewer = model;
  fewer.layers = layers;
  fewer.windows.clear();
  for (std::int64_t i = 0; i < layers; ++i)
    fewer.windows.push_back(model.windows[static_cast<std::size_t>(i * model.layers / layers)]);
  return fewer;
}

spec::RunConfig with_settings(spec::RunConfig run, const Settings& settings) {
  run.recompute = settings.recompute;
  run.sequences_per_micro_batch = settings.micro_batch;
  run.accumulation_steps = settings.accumulation;
  run.zero.stage = settings.stage;
  run.zero.prefetch_bucket_elements = settings.prefetch_elements;
  if (settings.prefetch_elements) run.zero.auto_prefetch_bucket = false;
  run.evaluation.batch_size = settings.evaluation_batch;
  return run;
}

/// Elements of one layer's matrices: what stage 3 gathers for it.
std::int64_t layer_elements(const spec::ModelSpec& model) {
  std::int64_t elements = 0;
  for (const spec::Parameter& parameter : spec::parameters_of(with_layers(model, 1)))
    if (parameter.layer == 0 && parameter.role == spec::ParameterRole::matrix)
      elements += parameter.element_count();
  return elements;
}

std::string knob_text(std::string_view knob, const Settings& settings) {
  if (knob == "recompute") return std::string(name_of(settings.recompute));
  if (knob == "micro-batch")
    return fmt::format("{} x {}", settings.micro_batch, settings.accumulation);
  if (knob == "ZeRO stage") return fmt::format("{}", settings.stage);
  if (settings.prefetch_elements == 0) return "nothing";
  return settings.prefetch_elements ? format_count(*settings.prefetch_elements) + " elements"
                                    : std::string("one unit");
}

bool differ_in(std::string_view knob, Settings a, const Settings& b) {
  if (a == b) return false;
  if (knob == "recompute") a.recompute = b.recompute;
  if (knob == "micro-batch") {
    a.micro_batch = b.micro_batch;
    a.accumulation = b.accumulation;
  }
  if (knob == "ZeRO stage") {
    // Gathers ahead are stage 3's alone; of stage 3 only the run's own choice is told.
    if (a.stage == 3) a.prefetch_elements = b.prefetch_elements;
    a.stage = b.stage;
  }
  if (knob == "gather ahead") a.prefetch_elements = b.prefetch_elements;
  a.evaluation_batch = b.evaluation_batch;
  return a == b;
}

class BestFitSearch {
 public:
  BestFitSearch(const FitQuestion& question, const PredictTimes& predict)
      : q_(question),
        predict_(predict),
        room_(room_of(question.run, question.machine, question.placement)),
        few_(with_layers(question.model, std::min(fewer_layers, question.model.layers))),
        some_(with_layers(question.model, std::min(more_layers, question.model.layers))) {}

  BestFit run() {
    BestFit found;
    for (const Settings& settings : settings_to_search(q_)) {
      ++found.searched;
      const Estimate* smaller = smaller_that_is_too_large(settings);
      estimates_.push_back(smaller != nullptr ? as_large_as(*smaller, settings)
                                              : estimate(settings));
    }
    std::vector<const Estimate*> order;
    for (const Estimate& one : estimates_)
      if (one.may_fit) order.push_back(&one);
    std::stable_sort(order.begin(), order.end(), [](const Estimate* a, const Estimate* b) {
      return a->times.step_s < b->times.step_s;
    });
    for (std::size_t begin = 0; begin < order.size(); begin += most_fitting_runs) {
      std::vector<const Estimate*> next;
      for (const Estimate* one :
           std::span(order).subspan(begin, std::min(most_fitting_runs, order.size() - begin)))
        if (found.rows.size() < most_fitting_runs ||
            one->times.step_s * (1 - time_tolerance) <= found.rows.back().times.step_s)
          next.push_back(one);
      if (next.empty()) break;
      for (std::optional<Planned>& planned : plan_in_full(next)) {
        ++found.planned;
        if (planned && !planned->shortage) insert(found.rows, std::move(planned->run));
      }
    }
    if (found.rows.empty()) name_smallest(found);
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
    FittingRun run;
    std::optional<Shortage> shortage;
  };

  static bool is_faster(const FittingRun& a, const FittingRun& b) {
    if (std::abs(a.times.step_s - b.times.step_s) > same_time * b.times.step_s)
      return a.times.step_s < b.times.step_s;
    if (a.words.size() != b.words.size()) return a.words.size() < b.words.size();
    return a.peak_bytes < b.peak_bytes;
  }
  static bool is_same_result(const FittingRun& a, const FittingRun& b) {
    const auto is_same = [](double one, double other) {
      return std::abs(one - other) <= same_time * std::max(1.0, std::abs(other));
    };
    return is_same(a.times.step_s, b.times.step_s) && is_same(a.times.save_s, b.times.save_s) &&
           is_same(a.times.save_wait_s, b.times.save_wait_s) &&
           is_same(a.times.evaluation_batch_s, b.times.evaluation_batch_s) &&
           a.peak_bytes == b.peak_bytes && a.node_bytes == b.node_bytes;
  }
  static void insert(std::vector<FittingRun>& rows, FittingRun row) {
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const FittingRun& other) {
      return is_same_result(row, other);
    });
    if (same != rows.end()) {
      if (is_faster(row, *same)) *same = std::move(row);
      return;
    }
    rows.insert(std::upper_bound(rows.begin(), rows.end(), row, is_faster), std::move(row));
    if (rows.size() > most_fitting_runs) rows.pop_back();
  }

  std::optional<Shortage> shortage_within(const plan::Plan& sizes, double tolerance) const {
    auto shortage = shortage_of(sizes, room_);
    if (shortage && static_cast<double>(shortage->needed_bytes) * (1 - tolerance) <=
                        static_cast<double>(shortage->allowed_bytes))
      return std::nullopt;
    return shortage;
  }

  /// The largest evaluation batch that may fit; where none does, the estimate of the smallest.
  Estimate estimate(Settings settings) const {
    Estimate made;
    for (const std::int64_t batch : evaluation_batches_to_search(q_)) {
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
    made.sizes.layout.size_bytes[index(MemorySpace::device)] = state_bytes(request);
    made.is_bound = shortage_within(made.sizes, 0).has_value();
    return made.is_bound ? made : estimate_from_few_layers(settings);
  }

  Estimate estimate_from_few_layers(const Settings& settings) const {
    Estimate made{.settings = settings};
    Request request = request_with(settings);
    made.sizes.overhead_bytes = request.overhead_bytes;
    request.model = some_;
    const plan::Plan some = make_plan_of_steps(request);
    made.times = predict_(some);
    made.sizes.layout.size_bytes = some.layout.size_bytes;
    if (q_.model.layers > more_layers) {
      request.model = few_;
      const plan::Plan few = make_plan_of_steps(request);
      const StepTimes fewer = predict_(few);
      constexpr std::int64_t between = more_layers - fewer_layers;
      const std::int64_t beyond = q_.model.layers - more_layers;
      for (std::size_t s = 0; s < plan::memory_space_count; ++s)
        made.sizes.layout.size_bytes[s] +=
            (some.layout.size_bytes[s] - few.layout.size_bytes[s]) * beyond / between;
      made.times.step_s += (made.times.step_s - fewer.step_s) * static_cast<double>(beyond) /
                           static_cast<double>(between);
    }
    made.may_fit = !shortage_within(made.sizes, memory_tolerance);
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

  /// A bound from below: weights, optimizer, gradients of a rank, and what enters each layer.
  std::int64_t state_bytes(const Request& request) const {
    const std::int64_t count = spec::parameter_count(q_.model);
    const int stage = request.world_size == 1 ? 0 : request.stage;
    const auto part = [&](std::int64_t elements, DType type, int sharded_from) {
      const std::int64_t size = bytes_of(type, elements);
      return stage >= sharded_from ? size / request.world_size : size;
    };
    const DType moments = request.keeps_masters ? DType::f32 : request.weight_type;
    const bool has_masters = request.keeps_masters && request.weight_type != DType::f32;
    return part(count, request.weight_type, 3) + part(2 * count, moments, 1) +
           part(has_masters ? count : 0, DType::f32, 1) + part(count, request.accumulate_type, 2) +
           bytes_of(request.weight_type, q_.model.layers * request.max_rows * q_.model.width);
  }

  /// Several at once, one a core: a plan takes tens of MiB, which the next one on its thread takes again.
  std::vector<std::optional<Planned>> plan_in_full(
      const std::vector<const Estimate*>& wanted) const {
    std::vector<std::optional<Planned>> made(wanted.size());
    std::atomic<std::size_t> next{0};
    const auto plan_next = [&] {
      for (std::size_t i = next++; i < wanted.size(); i = next++)
        made[i] = plan_in_full(wanted[i]->settings);
    };
    std::vector<std::future<void>> helpers;
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    while (helpers.size() + 1 < std::min(cores, wanted.size()))
      helpers.push_back(std::async(std::launch::async, plan_next));
    plan_next();
    for (std::future<void>& helper : helpers) helper.get();
    return made;
  }

  std::optional<Planned> plan_in_full(const Settings& settings) const {
    const auto changed = read_changed(q_.run, words_for(q_.run, settings), q_.placement.world_size);
    if (!changed) return std::nullopt;
    const plan::Plan plan = make_plan_on(
        {.model = q_.model, .run = changed->run, .machine = q_.machine, .placement = q_.placement});
    Planned planned;
    planned.run = {.settings = settings,
                   .words = changed->words,
                   .run = changed->run,
                   .peak_bytes = plan.layout.size_bytes,
                   .node_bytes = needed_bytes(plan, room_, std::nullopt),
                   .times = predict_(plan),
                   .choices = {}};
    planned.shortage = shortage_of(plan, room_);
    return planned;
  }

  /// The one that misses by least: bounds become estimates and estimates plans, lowest first, until none that is left can
  /// miss by less.
  void name_smallest(BestFit& found) const {
    constexpr std::int64_t most_plans = 24;
    const auto miss = [](const Shortage& shortage) {
      return static_cast<double>(shortage.needed_bytes) /
             static_cast<double>(std::max<std::int64_t>(1, shortage.allowed_bytes));
    };
    const auto miss_of = [&](const plan::Plan& sizes) {
      const auto shortage = shortage_of(sizes, room_);
      return shortage ? miss(*shortage) : 1.0;
    };
    std::multimap<double, Estimate> waiting;  // by the least that they may miss by
    for (const Estimate& one : estimates_) waiting.emplace(miss_of(one.sizes), one);
    while (!waiting.empty() && found.planned < most_plans) {
      const auto [bound, one] = std::move(*waiting.begin());
      waiting.erase(waiting.begin());
      if (found.shortage && bound * (1 - memory_tolerance) > miss(*found.shortage)) break;
      if (one.is_bound) {
        Settings settings = one.settings;
        settings.evaluation_batch = evaluation_batches_to_search(q_).back();
        Estimate made = estimate_from_few_layers(settings);
        waiting.emplace(std::max(bound, miss_of(made.sizes)), std::move(made));
        continue;
      }
      auto planned = plan_in_full(one.settings);
      ++found.planned;
      if (!planned || !planned->shortage) continue;
      if (found.shortage && miss(*planned->shortage) >= miss(*found.shortage)) continue;
      found.shortage = planned->shortage;
      found.smallest = std::move(planned->run);
    }
  }

  std::vector<plan::Decision> choices_of(const FittingRun& row) const {
    std::vector<plan::Decision> choices;
    const auto own = std::find_if(estimates_.begin(), estimates_.end(), [&](const Estimate& one) {
      return one.settings == row.settings;
    });
    UK_CHECK(own != estimates_.end(), "a row was estimated before it was planned");
    for (const std::string_view knob : {"recompute", "micro-batch", "ZeRO stage", "gather ahead"}) {
      plan::Decision choice{.subject = std::string(knob), .value = knob_text(knob, row.settings)};
      bool others_fit = false;
      for (const Estimate& other : estimates_) {
        if (!differ_in(knob, row.settings, other.settings)) continue;
        choice.alternatives.push_back({knob_text(knob, other.settings), effect(other, own->times)});
        others_fit = others_fit || other.may_fit;
      }
      if (choice.alternatives.empty()) continue;
      choice.reason = others_fit ? "the fastest that fits" : "no other fits";
      choices.push_back(std::move(choice));
    }
    if (row.settings.evaluation_batch != q_.run.evaluation.batch_size)
      choices.push_back({.subject = "evaluation batch",
                         .value = fmt::format("{}", row.settings.evaluation_batch),
                         .reason = "the largest that fits",
                         .alternatives = {}});
    return choices;
  }

  std::string effect(const Estimate& other, const StepTimes& own) const {
    if (!other.may_fit) {
      const auto shortage = shortage_of(other.sizes, room_);
      UK_CHECK(shortage.has_value(), "what may not fit is short of something");
      return fmt::format("needs {}{} of {}, allowed {}", other.is_bound ? "at least " : "about ",
                         format_bytes(shortage->needed_bytes),
                         shortage->space ? plan::name_of(*shortage->space) : "the node",
                         format_bytes(shortage->allowed_bytes));
    }
    const double percent = 100 * (other.times.step_s / own.step_s - 1);
    if (std::abs(percent) < 0.05) return "step as long";
    return fmt::format("step about {:.3g}% {}", std::abs(percent),
                       percent > 0 ? "longer" : "shorter");
  }

  const FitQuestion& q_;
  const PredictTimes& predict_;
  Room room_;
  spec::ModelSpec few_, some_;
  std::vector<Estimate> estimates_;
};

}  // namespace

BestFit find_best_fit(const FitQuestion& question, const PredictTimes& predict) {
  return BestFitSearch(question, predict).run();
}

std::vector<Settings> settings_to_search(const FitQuestion& question) {
  const Settings now = settings_of(question.run);
  const std::int64_t of_rank = now.micro_batch * now.accumulation;
  const bool alone = question.placement.world_size == 1;
  std::vector<int> stages = {0, 1, 2, 3};
  if (alone) stages = {now.stage};  // a rank alone has nobody to share with
  const std::int64_t layer = layer_elements(question.model);
  std::vector<Settings> all;
  const Request request = request_of(question.model, question.run, question.placement.world_size);
  const std::int64_t sequence_rows = request.max_rows / now.micro_batch;
  for (const std::int64_t micro_batch : divisors_of(of_rank)) {
    if (micro_batch > now.micro_batch && micro_batch * sequence_rows > most_rows) break;
    for (const int stage : stages) {
      std::vector<std::optional<std::int64_t>> aheads = {now.prefetch_elements};
      if (stage == 3 && !alone)
        for (const std::int64_t elements : {std::int64_t{0}, 2 * layer})
          if (elements != now.prefetch_elements) aheads.emplace_back(elements);
      // What needs least comes first: where it does not fit, the others need no estimate.
      std::stable_sort(aheads.begin(), aheads.end(),
                       [](const auto& a, const auto& b) { return (a == 0) > (b == 0); });
      for (const auto& ahead : aheads)
        for (const spec::Recompute level :
             {spec::Recompute::block, spec::Recompute::cheap, spec::Recompute::none})
          all.push_back({.recompute = level,
                         .micro_batch = micro_batch,
                         .accumulation = of_rank / micro_batch,
                         .stage = stage,
                         .prefetch_elements = ahead,
                         .evaluation_batch = now.evaluation_batch});
    }
  }
  return all;
}

std::vector<std::int64_t> evaluation_batches_to_search(const FitQuestion& question) {
  std::vector<std::int64_t> batches = divisors_of(question.run.evaluation.batch_size);
  std::reverse(batches.begin(), batches.end());
  const Request request = request_of(question.model, question.run, question.placement.world_size);
  if (request.max_evaluation_rows == 0) batches.resize(1);
  return batches;
}

}  // namespace underkeel::planner
