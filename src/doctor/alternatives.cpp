// What would cure it, for DeepSpeed: every stage, offload, recomputation and micro-batch at the same global batch. A row
// is made of the words that ask for it: its figures are those of the files with them, and it is checked as those.

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doctor/alternative_words.h"
#include "doctor/memory_rules.h"

namespace underkeel::doctor {
namespace {

struct Placement {
  int stage;
  Offload optimizer;
  Offload parameters;
};
constexpr std::array placements = {
    Placement{0, Offload::none, Offload::none}, Placement{1, Offload::none, Offload::none},
    Placement{2, Offload::none, Offload::none}, Placement{3, Offload::none, Offload::none},
    Placement{1, Offload::cpu, Offload::none},  Placement{2, Offload::cpu, Offload::none},
    Placement{3, Offload::cpu, Offload::none},  Placement{3, Offload::cpu, Offload::cpu},
    Placement{3, Offload::nvme, Offload::none}, Placement{3, Offload::nvme, Offload::cpu}};

/// The micro-batch as given, halved, ..., 1: each a whole part of the last, so that accumulation makes up for it.
std::vector<std::int64_t> micro_batches(std::int64_t given) {
  std::vector<std::int64_t> sizes = {given};
  while (sizes.back() > 1)
    sizes.push_back(sizes.back() % 2 == 0 ? sizes.back() / 2 : std::int64_t{1});
  return sizes;
}

int halvings(std::int64_t from, std::int64_t to) {
  int count = 0;
  for (; from > to; from = (from + 1) / 2) ++count;
  return count;
}

/// What a verdict counts: at most, without rounding of page-locked blocks.
double peak_of(const Forecast& forecast, Space space, bool resumes) {
  double most = 0;
  for (std::size_t p = 0; p < phase_count; ++p) {
    if (static_cast<Phase>(p) == Phase::resume && !resumes) continue;
    if (const auto& holding = forecast.at(static_cast<Phase>(p), space))
      most = std::max(most, holding->high_without(rounding_term));
  }
  return most;
}

/// The least of a space whose limit is above it and below the most.
std::optional<double> least_between(const Forecast& least, Space space, bool resumes, double most,
                                    std::optional<double> limit) {
  if (!limit || most <= *limit) return std::nullopt;
  double bytes = 0;
  for (std::size_t p = 0; p < phase_count; ++p) {
    if (static_cast<Phase>(p) == Phase::resume && !resumes) continue;
    if (const auto& holding = least.at(static_cast<Phase>(p), space))
      bytes = std::max(bytes, holding->low());
  }
  return bytes <= *limit ? std::optional(bytes) : std::nullopt;
}

/// Whether a row that is not sure to fit needs less of what the run may be short of, and no more of any of it. Where no limit
/// is passed nothing is known of the device, and it is that.
bool is_offer(const Alternative& row, const Alternative& given, const Limits& limits) {
  const auto is_short = [](double bytes, const std::optional<double>& limit) {
    return limit && bytes > *limit;
  };
  const bool host = is_short(given.host_bytes, limits.host);
  const bool device = is_short(given.device_bytes, limits.device) || (!host && !limits.device);
  const bool nvme = is_short(given.nvme_bytes.value_or(0), limits.nvme);
  bool is_better = false, is_worse = false;
  const auto compare = [&](bool counts, double now, double then) {
    if (!counts || amount(now) == amount(then)) return;
    (then < now ? is_better : is_worse) = true;
  };
  compare(device, given.device_bytes, row.device_bytes);
  compare(host, given.host_bytes, row.host_bytes);
  compare(nvme, given.nvme_bytes.value_or(0), row.nvme_bytes.value_or(0));
  return is_better && !is_worse;
}

/// What an evaluation may take at once: as many sequences as given, and one, first, where those may not fit.
std::vector<std::int64_t> evaluation_batches(const MemoryCase& memory, const Inputs& inputs) {
  const std::int64_t given = memory.run.evaluation_batch;
  const auto evaluating = forecast_of(memory).at(Phase::evaluate, Space::device);
  const bool may_not_fit = evaluating && evaluating->limit_bytes &&
                           evaluating->high_without(rounding_term) > *evaluating->limit_bytes;
  if (!inputs.run || given <= 1 || !may_not_fit) return {given};
  return {1, given};
}

}  // namespace

std::vector<Alternative> deepspeed_alternatives(const MemoryCase& memory, const Inputs& inputs) {
  std::vector<Alternative> rows;
  const DeepspeedSettings& given = memory.settings;
  const bool may_recompute = inputs.run && !memory.run.recomputes;
  const auto recompute_levels =
      may_recompute ? std::vector<bool>{false, true} : std::vector<bool>{memory.run.recomputes};
  const std::vector<std::int64_t> evaluations = evaluation_batches(memory, inputs);
  const WordedFiles files(inputs);
  // Two of the numbers of sequences at once: of a step, and of an evaluation.
  std::vector<std::pair<std::int64_t, std::int64_t>> batches;
  for (const std::int64_t micro : micro_batches(memory.run.micro_batch))
    for (const std::int64_t evaluation : evaluations) batches.emplace_back(micro, evaluation);
  for (const Placement& placement : placements) {
    // On one rank a stage by itself splits nothing; offload comes with one.
    const bool is_stage_alone = placement.optimizer == Offload::none &&
                                given.optimizer == Offload::none && placement.stage != given.stage;
    if (memory.ranks == 1 && is_stage_alone) continue;
    // Whether there is room on NVMe is asked where its size is known.
    const bool is_nvme = placement.optimizer == Offload::nvme;
    if (is_nvme && !memory.limits.nvme && given.optimizer != Offload::nvme) continue;
    for (const bool recomputes : recompute_levels)
      for (const auto& [micro, evaluation] : batches) {
        const Wanted wanted{
            .stage = placement.stage,
            .optimizer = placement.optimizer,
            .parameters = placement.parameters,
            .recomputes = recomputes,
            .micro_batch = micro,
            .accumulation_steps = memory.run.accumulation_steps * memory.run.micro_batch / micro,
            .evaluation_batch = evaluation};
        const auto words = files.words_for(wanted, memory);
        if (!words) continue;
        const auto changed = files.with(*words, memory);
        if (!changed) continue;
        const Forecast forecast = forecast_of(*changed);
        Alternative row{.engine = Engine::deepspeed,
                        .stage = placement.stage,
                        .offload_optimizer = std::string(name_of(placement.optimizer)),
                        .offload_param = std::string(name_of(placement.parameters)),
                        .recomputes = recomputes,
                        .micro_batch = micro,
                        .accumulation_steps = wanted.accumulation_steps,
                        .evaluation_batch = inputs.run ? evaluation : 0,
                        .verdict = forecast.verdict,
                        .device_bytes = peak_of(forecast, Space::device, memory.resumes),
                        .host_bytes = peak_of(forecast, Space::host, memory.resumes),
                        .words = fmt::format("{}", fmt::join(*words, " "))};
        row.changes =
            (placement.stage != given.stage) + (placement.optimizer != given.optimizer) +
            (placement.parameters != given.parameters) + (recomputes != memory.run.recomputes) +
            (evaluation != memory.run.evaluation_batch) + halvings(memory.run.micro_batch, micro);
        if (memory.limits.device)
          row.device_margin_bytes = *memory.limits.device - row.device_bytes;
        if (memory.limits.host) row.host_margin_bytes = *memory.limits.host - row.host_bytes;
        if (row.verdict == Verdict::unknown) {
          const Forecast least = least_of(forecast, *changed);
          row.device_least_bytes = least_between(least, Space::device, memory.resumes,
                                                 row.device_bytes, memory.limits.device);
          row.host_least_bytes =
              least_between(least, Space::host, memory.resumes, row.host_bytes, memory.limits.host);
        }
        if (const auto& nvme = forecast.at(Phase::step, Space::nvme)) row.nvme_bytes = nvme->high();
        rows.push_back(std::move(row));
      }
  }
  const Forecast now = forecast_of(memory);
  Alternative run{.device_bytes = peak_of(now, Space::device, memory.resumes),
                  .host_bytes = peak_of(now, Space::host, memory.resumes)};
  if (const auto& nvme = now.at(Phase::step, Space::nvme)) run.nvme_bytes = nvme->high();
  std::erase_if(rows, [&](const Alternative& row) {
    return row.changes > 0 && row.verdict == Verdict::unknown && !is_offer(row, run, memory.limits);
  });
  // What runs first, the smallest change first, among equals the one that leaves most room.
  const auto rank = [](Verdict verdict) {
    return verdict == Verdict::runs ? 0 : verdict == Verdict::unknown ? 1 : 2;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Alternative& a, const Alternative& b) {
    if (rank(a.verdict) != rank(b.verdict)) return rank(a.verdict) < rank(b.verdict);
    if (a.changes != b.changes) return a.changes < b.changes;
    return a.device_bytes < b.device_bytes;
  });
  return without_needless(std::move(rows));
}

}  // namespace underkeel::doctor
