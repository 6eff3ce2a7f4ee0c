#include "doctor/own_alternatives.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "doctor/document.h"
#include "planner/few_layers.h"
#include "planner/settings.h"
#include "render/render.h"

namespace underkeel::doctor {
namespace {

// Rows that are planned at most: an answer is to take less than 300 ms (bench/results/2026-11-answer-times.md).
constexpr int most_plans = 6;
// Ranks that are tried at most, and plans for numbers of them.
constexpr std::int64_t most_ranks = 1024;
constexpr int most_plans_of_ranks = 4;
// A layer of a plan takes half a millisecond.
constexpr std::int64_t most_planned_layers = 320;
// Settings that are estimated at most before one is planned; each takes the time of some twenty layers.
constexpr int most_estimates = 9;
// With fewer layers a plan takes no longer than its estimate.
constexpr std::int64_t least_estimated_layers = 16;
// Rows that are shown at most.
constexpr std::size_t most_rows = 24;

/// `most`, or fewer of a model with so many layers that an answer has no time for all.
int plans_within(int most, const spec::ModelSpec& model) {
  return static_cast<int>(
      std::min<std::int64_t>(most, most_planned_layers / std::max<std::int64_t>(1, model.layers)));
}

struct Candidate {
  planner::Settings settings;
  int changes;
};

/// The smallest change first, among equals what costs least time, then what leaves most room.
void put_in_order(std::vector<Candidate>& candidates, const spec::RunConfig& run) {
  const auto order = [&](const Candidate& each) {
    const planner::Settings& settings = each.settings;
    return std::tuple(each.changes, settings.stage == 3, settings.recompute != run.recompute,
                      -settings.micro_batch, -settings.evaluation_batch, -settings.stage);
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return order(a) < order(b); });
}

std::vector<std::string> words_without_offload(const ConfigWords& config, int stage) {
  std::vector<std::string> words;
  for (const AskedOffload& offload : config.offloads)
    if (stage == 3 || !offload.acts_at_stage_3_only) words.push_back(offload.words);
  return words;
}

std::vector<spec::Recompute> levels_of(const spec::RunConfig& run) {
  if (run.recompute == spec::Recompute::block) return {spec::Recompute::block};
  return {run.recompute, spec::Recompute::block};
}

/// On one rank a stage splits nothing, so only the run's own is asked.
std::vector<Candidate> candidates_of(const spec::RunConfig& run, std::int64_t ranks,
                                     const ConfigWords& config) {
  std::vector<Candidate> all;
  for (int stage = 0; stage <= 3; ++stage) {
    if (ranks == 1 && stage != run.zero.stage) continue;
    const int switched_off = static_cast<int>(words_without_offload(config, stage).size());
    for (const spec::Recompute level : levels_of(run)) {
      int halvings = 0;
      for (std::int64_t micro = run.sequences_per_micro_batch; micro >= 1; micro /= 2, ++halvings) {
        if (run.sequences_per_micro_batch % micro != 0) break;
        const int changes =
            (stage != run.zero.stage) + (level != run.recompute) + halvings + switched_off;
        planner::Settings settings = planner::settings_of(run);
        settings.stage = stage;
        settings.recompute = level;
        settings.micro_batch = micro;
        settings.accumulation = run.accumulation_steps * run.sequences_per_micro_batch / micro;
        all.push_back({settings, changes});
      }
    }
  }
  put_in_order(all, run);
  return all;
}

std::vector<std::string> words_of(const spec::RunConfig& run, const planner::Settings& wanted,
                                  const std::vector<std::string>& without_offload,
                                  const ConfigWords& config) {
  std::vector<std::string> words = without_offload;
  for (const std::string& word : planner::words_for(run, wanted)) {
    const bool is_of_stage = word.starts_with("deepspeed.zero_optimization.stage=");
    words.push_back(config.is_switch && is_of_stage
                        ? fmt::format("deepspeed.zero_optimization={{\"stage\":{}}}", wanted.stage)
                        : word);
  }
  if (wanted.micro_batch != run.sequences_per_micro_batch ||
      wanted.accumulation != run.accumulation_steps)
    words.insert(words.end(), config.free_batch.begin(), config.free_batch.end());
  return words;
}

}  // namespace

double least_state_bytes(const planner::FitQuestion& question, int stage) {
  const auto psi = static_cast<double>(spec::parameter_count(question.model));
  const double share = psi / static_cast<double>(question.placement.world_size);
  const double element = question.run.precision == spec::Precision::f32 ? 4 : 2;
  const double optimizer = question.run.precision == spec::Precision::f32 ? 8 : 12;
  return element * (stage == 3 ? share : psi) + element * (stage >= 2 ? share : psi) +
         optimizer * (stage >= 1 ? share : psi);
}

double state_limit(const planner::FitQuestion& question) {
  const planner::Room room = planner::room_of(question.run, question.machine, question.placement);
  const auto& device = room.spaces[index(plan::MemorySpace::device)];
  double limit = std::numeric_limits<double>::infinity();
  if (device) limit = static_cast<double>(device->size_bytes);
  if (room.device_is_host && room.node) {
    const double share = static_cast<double>(room.node->size_bytes) /
                         static_cast<double>(question.placement.ranks_on_node);
    limit = std::min(limit, share);
  }
  return limit;
}

ConfigWords config_words(const spec::Value& config) {
  ConfigWords words;
  for (const auto& [section, old_key, at_stage_3] :
       {std::tuple{"offload_optimizer", "cpu_offload", false},
        std::tuple{"offload_param", "cpu_offload_param", true}}) {
    const std::string device = fmt::format("zero_optimization.{}.device", section);
    const std::string old = fmt::format("zero_optimization.{}", old_key);
    if (text_at(config, device).value_or("none") != "none")
      words.offloads.push_back({fmt::format("deepspeed.{}=none", device), at_stage_3});
    if (truth_at(config, old).value_or(false))
      words.offloads.push_back({fmt::format("deepspeed.{}=false", old), at_stage_3});
  }
  for (const char* key : {"train_micro_batch_size_per_gpu", "gradient_accumulation_steps"})
    if (number_at(config, key)) words.free_batch.push_back(fmt::format("deepspeed.{}=auto", key));
  const spec::Value* zero = value_at(config, "zero_optimization");
  words.is_switch = zero != nullptr && zero->kind == spec::ValueKind::boolean;
  return words;
}

namespace {

/// Whether a plan's evaluation is beyond what a rank may take of the device.
bool evaluation_is_short(const plan::Plan& plan, const planner::Room& room) {
  const auto budget = planner::budget_of(plan, room, plan::MemorySpace::device);
  return budget && render::bytes_of_phase(plan, render::Phase::evaluate,
                                          plan::MemorySpace::device) > budget->size_bytes;
}

/// The largest evaluation by halving of the given one that is likely to fit: what it holds besides the state grows with it.
std::int64_t likely_evaluation(const plan::Plan& plan, const planner::Room& room,
                               std::int64_t given) {
  const auto budget = planner::budget_of(plan, room, plan::MemorySpace::device);
  const auto bytes = [&](render::Phase phase) {
    return static_cast<double>(render::bytes_of_phase(plan, phase, plan::MemorySpace::device));
  };
  const double state = bytes(render::Phase::load);
  const double each = (bytes(render::Phase::evaluate) - state) / static_cast<double>(given);
  std::int64_t batch = given / 2;
  while (batch > 1 && budget &&
         state + each * static_cast<double>(batch) > static_cast<double>(budget->size_bytes))
    batch /= 2;
  return std::max<std::int64_t>(1, batch);
}

/// `candidates` with evaluations of `batch` sequences at a time, among those of as many changes. At the stage of `planned`,
/// whose evaluation was too large, it is so whatever a step holds.
std::vector<Candidate> with_small_evaluations(std::span<const Candidate> candidates,
                                              const Candidate& planned, std::int64_t batch,
                                              const spec::RunConfig& run) {
  std::vector<Candidate> all;
  for (Candidate small : candidates) {
    small.settings.evaluation_batch = batch;
    ++small.changes;
    all.push_back(small);
  }
  for (const Candidate& given : candidates)
    if (given.settings.stage > planned.settings.stage) all.push_back(given);
  put_in_order(all, run);
  return all;
}

/// Tells settings that are certainly too large from plans of few layers, so that time is left for those that may fit.
class Estimates {
 public:
  explicit Estimates(const spec::ModelSpec& model) : few_layers_(model) {}

  /// The sizes of the question's plan where they are certainly beyond its room. None where it may fit, and where it is no
  /// dearer to plan it.
  std::optional<plan::Plan> too_large(const planner::FitQuestion& question) {
    if (question.model.layers < least_estimated_layers || count_ == most_estimates)
      return std::nullopt;
    ++count_;
    planner::Request request =
        planner::request_on(question.machine, question.placement, question.model, question.run);
    // `auto` ends with what recomputes most.
    if (question.run.recompute == spec::Recompute::automatic)
      request.recompute = spec::Recompute::block;
    plan::Plan sizes;
    sizes.overhead_bytes = request.overhead_bytes;
    sizes.layout.size_bytes = few_layers_.of(request).size_bytes;
    const planner::Room room = planner::room_of(question.run, question.machine, question.placement);
    if (!planner::certain_shortage(sizes, room)) return std::nullopt;
    return sizes;
  }

 private:
  planner::FewLayers few_layers_;
  int count_ = 0;
};

void take_plan(const plan::Plan& plan, const planner::Room& room, Alternative& row) {
  row.verdict = planner::shortage_of(plan, room) ? Verdict::fails : Verdict::runs;
  row.device_bytes = static_cast<double>(plan.layout.size_bytes[index(plan::MemorySpace::device)]);
  row.host_bytes = static_cast<double>(planner::needed_bytes(plan, room, std::nullopt));
  if (const auto budget = planner::budget_of(plan, room, plan::MemorySpace::device))
    row.device_margin_bytes = static_cast<double>(budget->size_bytes) - row.device_bytes;
  if (room.node)
    row.host_margin_bytes = static_cast<double>(room.node->size_bytes) - row.host_bytes;
}

}  // namespace

std::vector<Alternative> own_alternatives(const planner::FitQuestion& question,
                                          const ConfigWords& config, const ReadRun& read) {
  std::vector<Alternative> rows;
  const double limit = state_limit(question);
  int plans = 0;
  Estimates estimates(question.model);
  std::vector<Candidate> candidates =
      candidates_of(question.run, question.placement.world_size, config);
  std::size_t next = 0;
  // Where a smaller evaluation was not as likely to fit as it seemed.
  const auto try_least_evaluation = [&](const Candidate& tried) {
    const std::int64_t batch = tried.settings.evaluation_batch;
    if (batch <= 1 || batch == question.run.evaluation.batch_size) return;
    Candidate least = tried;
    least.settings.evaluation_batch = 1;
    candidates.insert(candidates.begin() + static_cast<std::ptrdiff_t>(next), least);
  };
  while (next < candidates.size() && rows.size() < most_rows) {
    const Candidate candidate = candidates[next++];
    const planner::Settings& settings = candidate.settings;
    const std::vector<std::string> words =
        words_of(question.run, settings, words_without_offload(config, settings.stage), config);
    Alternative row{.engine = Engine::underkeel,
                    .stage = settings.stage,
                    .recomputes = settings.recompute != spec::Recompute::none,
                    .micro_batch = settings.micro_batch,
                    .accumulation_steps = settings.accumulation,
                    .evaluation_batch = settings.evaluation_batch,
                    .changes = candidate.changes,
                    .words = fmt::format("{}", fmt::join(words, " "))};
    const double state = least_state_bytes(question, settings.stage);
    if (state > limit) {
      row.verdict = Verdict::fails;
      row.device_bytes = state;
      row.device_margin_bytes = limit - state;
      rows.push_back(std::move(row));
      continue;
    }
    const auto run = read(words, question.placement.world_size);
    if (!run) continue;
    const planner::FitQuestion changed{.model = question.model,
                                       .run = *run,
                                       .machine = question.machine,
                                       .placement = question.placement};
    const planner::Room room = planner::room_of(*run, question.machine, question.placement);
    // The first plan tells whether evaluations are what is too large.
    if (plans > 0 || settings.evaluation_batch == 1)
      if (const auto sizes = estimates.too_large(changed)) {
        take_plan(*sizes, room, row);
        rows.push_back(std::move(row));
        try_least_evaluation(candidate);
        continue;
      }
    if (plans++ == plans_within(most_plans, question.model)) break;
    const plan::Plan plan = planner::make_plan_on(changed);
    take_plan(plan, room, row);
    rows.push_back(std::move(row));
    if (settings.evaluation_batch <= 1 || !evaluation_is_short(plan, room)) continue;
    if (plans == 1) {
      const std::span<const Candidate> rest = std::span(candidates).subspan(next - 1);
      candidates = with_small_evaluations(
          rest, candidate, likely_evaluation(plan, room, settings.evaluation_batch), question.run);
      next = 0;
    } else {
      try_least_evaluation(candidate);
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Alternative& a, const Alternative& b) {
    return (a.verdict == Verdict::runs) > (b.verdict == Verdict::runs);
  });
  return without_needless(std::move(rows));
}

std::optional<EnoughRanks> enough_ranks(const planner::FitQuestion& question,
                                        const ConfigWords& config, const ReadRun& read) {
  const spec::RunConfig& run = question.run;
  const std::int64_t now = question.placement.world_size;
  const std::int64_t sequences = run.sequences_per_micro_batch * run.accumulation_steps * now;
  const std::int64_t on_node = std::max<std::int64_t>(question.machine.gpus_per_node, 1);
  int plans = 0;
  Estimates estimates(question.model);
  for (std::int64_t ranks = 2 * now; ranks <= most_ranks; ranks *= 2) {
    planner::FitQuestion more = question;
    if (sequences > ranks && sequences % ranks != 0) continue;
    more.machine.nodes = (ranks + on_node - 1) / on_node;
    more.placement = planner::spread_evenly(more.machine, ranks, false);
    if (least_state_bytes(more, 3) > state_limit(more)) continue;
    // The global batch stays where the ranks can share it.
    const std::int64_t of_rank = std::max<std::int64_t>(1, sequences / ranks);
    planner::Settings settings = planner::settings_of(run);
    settings.stage = 3;
    settings.micro_batch = std::gcd(run.sequences_per_micro_batch, of_rank);
    settings.accumulation = of_rank / settings.micro_batch;
    for (const spec::Recompute level : levels_of(run)) {
      settings.recompute = level;
      const std::vector<std::string> words =
          words_of(run, settings, words_without_offload(config, 3), config);
      // A key of the run file would count the ranks of now.
      std::vector<std::string> all = words;
      all.push_back(fmt::format("underkeel.ranks={}", ranks));
      const auto changed = read(all, ranks);
      if (!changed) return std::nullopt;
      const planner::FitQuestion on_more{.model = question.model,
                                         .run = *changed,
                                         .machine = more.machine,
                                         .placement = more.placement};
      if (estimates.too_large(on_more)) continue;
      if (plans++ == plans_within(most_plans_of_ranks, question.model)) return std::nullopt;
      const plan::Plan plan = planner::make_plan_on(on_more);
      const planner::Room room = planner::room_of(*changed, more.machine, more.placement);
      if (planner::shortage_of(plan, room)) continue;
      const auto budget = planner::budget_of(plan, room, plan::MemorySpace::device);
      return EnoughRanks{.ranks = ranks,
                         .nodes = more.machine.nodes,
                         .device_bytes = plan.layout.size_bytes[index(plan::MemorySpace::device)],
                         .allowed_bytes = budget ? budget->size_bytes : 0,
                         .global_batch = of_rank * ranks,
                         .words = words};
    }
  }
  return std::nullopt;
}

std::string place_of_nodes(const spec::HardwareSpec& machine, std::int64_t nodes,
                           const std::string& file) {
  if (nodes <= machine.nodes) return "";
  std::string keys = fmt::format("@[nodes.on] {} @[nodes.such] nodes: {}", nodes, nodes);
  if (!file.empty()) return fmt::format("{} @[nodes.in] {}@[nodes.and] ", keys, file);
  const auto gib = [](std::int64_t bytes) {
    return fmt::format("{:.6g}", static_cast<double>(bytes) / static_cast<double>(gibibyte));
  };
  keys += fmt::format(", gpus_per_node: {}", machine.gpus_per_node);
  if (machine.gpu_mem_bytes > 0) keys += ", gpu_mem_gib: " + gib(machine.gpu_mem_bytes);
  if (machine.host_ram_bytes > 0) keys += ", host_ram_gib: " + gib(machine.host_ram_bytes);
  return fmt::format("{} @[nodes.in] hardware.yaml (--hardware)@[nodes.and] ", keys);
}

}  // namespace underkeel::doctor
