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

/// Where an evaluation alone does not fit for sure, and nothing else fails.
bool is_short_for_evaluation(const Forecast& forecast, const MemoryCase& memory) {
  const auto& evaluating = forecast.at(Phase::evaluate, Space::device);
  if (!evaluating || !evaluating->limit_bytes ||
      evaluating->high_without(rounding_term) <= *evaluating->limit_bytes)
    return false;
  Forecast others = forecast;
  others.at(Phase::evaluate, Space::device).reset();
  return verdict_of(others, memory.limits, memory.resumes) != Verdict::fails;
}

class Table {
 public:
  Table(const MemoryCase& memory, const Inputs& inputs)
      : memory_(memory), inputs_(inputs), given_(memory.settings), files_(inputs) {}

  std::vector<Alternative> rows() {
    for (const Placement& placement : placements) add_placement(placement);
    leave_out_what_helps_nothing();
    // What runs first, the smallest change first, among equals what costs least time, then the one that leaves most room.
    const auto rank = [](Verdict verdict) {
      return verdict == Verdict::runs ? 0 : verdict == Verdict::unknown ? 1 : 2;
    };
    std::stable_sort(rows_.begin(), rows_.end(), [&](const Alternative& a, const Alternative& b) {
      if (rank(a.verdict) != rank(b.verdict)) return rank(a.verdict) < rank(b.verdict);
      if (a.changes != b.changes) return a.changes < b.changes;
      if (costs_less_time(a, b) != costs_less_time(b, a)) return costs_less_time(a, b);
      return a.device_bytes < b.device_bytes;
    });
    return without_needless(std::move(rows_));
  }

 private:
  struct Made {
    Alternative row;
    Forecast forecast;
  };

  void add_placement(const Placement& placement) {
    // On one rank a stage by itself splits nothing; offload comes with one.
    const bool is_stage_alone = placement.optimizer == Offload::none &&
                                given_.optimizer == Offload::none &&
                                placement.stage != given_.stage;
    if (memory_.ranks == 1 && is_stage_alone) return;
    // Whether there is room on NVMe is asked where its size is known.
    const bool is_nvme = placement.optimizer == Offload::nvme;
    if (is_nvme && !memory_.limits.nvme && given_.optimizer != Offload::nvme) return;
    const bool may_recompute = inputs_.run && !memory_.run.recomputes;
    for (const bool recomputes :
         may_recompute ? std::vector<bool>{false, true} : std::vector<bool>{memory_.run.recomputes})
      for (const std::int64_t micro : micro_batches(memory_.run.micro_batch))
        add_with_evaluations(
            {.stage = placement.stage,
             .optimizer = placement.optimizer,
             .parameters = placement.parameters,
             .recomputes = recomputes,
             .micro_batch = micro,
             .accumulation_steps = memory_.run.accumulation_steps * memory_.run.micro_batch / micro,
             .evaluation_batch = memory_.run.evaluation_batch});
  }

  /// Beside it the largest evaluation that fits, where the given one does not.
  void add_with_evaluations(Wanted wanted) {
    auto made = make(wanted);
    if (!made) return;
    const bool is_short = inputs_.run && is_short_for_evaluation(made->forecast, memory_);
    rows_.push_back(std::move(made->row));
    if (!is_short) return;
    while (wanted.evaluation_batch > 1) {
      wanted.evaluation_batch /= 2;
      made = make(wanted);
      if (!made) return;
      if (wanted.evaluation_batch > 1 && is_short_for_evaluation(made->forecast, memory_)) continue;
      rows_.push_back(std::move(made->row));
      return;
    }
  }

  /// With a change of what is saved, where the disk would be short without it. None where no words make it.
  std::optional<Made> make(const Wanted& wanted) {
    auto made = make_as_it_is(wanted);
    if (!made || made->row.disk_margin_bytes.value_or(0) >= 0) return made;
    std::optional<Made> best;
    for (const Wanted& change : disk_cures(wanted)) {
      auto cured = make_as_it_is(change);
      if (!cured || cured->row.disk_margin_bytes.value_or(0) < 0) continue;
      const bool runs = cured->row.verdict == Verdict::runs;
      const bool is_better =
          !best || (best->row.verdict == Verdict::fails && cured->row.verdict != Verdict::fails);
      if (runs || is_better) best = std::move(cured);
      if (runs) break;
    }
    return best ? best : made;
  }

  /// Of the files with the words of `wanted`.
  std::optional<Made> make_as_it_is(const Wanted& wanted) {
    const auto words = files_.words_for(wanted, memory_);
    if (!words) return std::nullopt;
    const auto changed = files_.with(*words, memory_);
    if (!changed) return std::nullopt;
    Made made{.row = {.engine = Engine::deepspeed,
                      .stage = wanted.stage,
                      .offload_optimizer = std::string(name_of(wanted.optimizer)),
                      .offload_param = std::string(name_of(wanted.parameters)),
                      .recomputes = wanted.recomputes,
                      .micro_batch = wanted.micro_batch,
                      .accumulation_steps = wanted.accumulation_steps,
                      .evaluation_batch = inputs_.run ? wanted.evaluation_batch : 0,
                      .changes = changes_of(wanted),
                      .gathers_weights = wanted.saving.gathers_weights,
                      .save_total_limit = wanted.save_total_limit,
                      .saving = wanted.saving.saving,
                      .words = fmt::format("{}", fmt::join(*words, " "))},
              .forecast = forecast_of(*changed)};
    take_memory(*changed, made.forecast, made.row);
    take_resume(*changed, made.forecast, made.row);
    take_disk(*changed, made.row);
    return made;
  }

  int changes_of(const Wanted& wanted) const {
    return (wanted.stage != given_.stage) + (wanted.optimizer != given_.optimizer) +
           (wanted.parameters != given_.parameters) +
           (wanted.recomputes != memory_.run.recomputes) +
           (wanted.evaluation_batch != memory_.run.evaluation_batch) +
           halvings(memory_.run.micro_batch, wanted.micro_batch) + wanted.saving.gathers_weights +
           (wanted.saving.saving != Saving::as_it_is) + (wanted.save_total_limit > 0);
  }

  void take_memory(const MemoryCase& changed, const Forecast& forecast, Alternative& row) const {
    const Limits& limits = memory_.limits;
    row.verdict = forecast.verdict;
    row.device_bytes = peak_of(forecast, Space::device, memory_.resumes);
    row.host_bytes = peak_of(forecast, Space::host, memory_.resumes);
    if (limits.device) row.device_margin_bytes = *limits.device - row.device_bytes;
    if (limits.host) row.host_margin_bytes = *limits.host - row.host_bytes;
    if (const auto& nvme = forecast.at(Phase::step, Space::nvme)) row.nvme_bytes = nvme->high();
    if (row.verdict != Verdict::unknown) return;
    const Forecast least = least_of(forecast, changed);
    row.device_least_bytes =
        least_between(least, Space::device, memory_.resumes, row.device_bytes, limits.device);
    row.host_least_bytes =
        least_between(least, Space::host, memory_.resumes, row.host_bytes, limits.host);
  }

  void take_resume(const MemoryCase& changed, const Forecast& forecast, Alternative& row) const {
    row.resume = resume_verdict(changed, forecast);
    if (const auto& holding = forecast.at(Phase::resume, Space::host))
      row.resume_host_bytes = holding->high_without(rounding_term);
  }

  void take_disk(const MemoryCase& changed, Alternative& row) const {
    if (!inputs_.machine || !inputs_.machine->out_free_bytes) return;
    row.disk_bytes = static_cast<double>(io::needed_bytes(disk_need_of(changed, inputs_)));
    row.disk_margin_bytes = static_cast<double>(*inputs_.machine->out_free_bytes) - *row.disk_bytes;
    if (*row.disk_margin_bytes < 0) row.verdict = Verdict::fails;
  }

  /// What is saved otherwise, and as many checkpoints as fit: first what leaves a state to resume from.
  std::vector<Wanted> disk_cures(const Wanted& wanted) const {
    const auto words = files_.words_for(wanted, memory_);
    const auto changed = files_.with(*words, memory_);
    std::vector<Wanted> cures;
    const auto add = [&](const SavingChange& change, bool limits) {
      Wanted cure = wanted;
      cure.saving = change;
      if (limits) {
        const io::SpaceNeed need = disk_need_of(with_saving(*changed, change), inputs_);
        cure.save_total_limit = io::largest_limit_that_fits(need, *inputs_.machine->out_free_bytes);
        if (cure.save_total_limit == 0) return;
      }
      cures.push_back(cure);
    };
    const std::vector<SavingChange> changes = saving_changes(*changed);
    for (const bool leaves_state : {true, false}) {
      const auto is_of = [&](const SavingChange& change) {
        return (change.saving == Saving::as_it_is) == leaves_state;
      };
      for (const SavingChange& change : changes)
        if (is_of(change)) add(change, false);
      if (!inputs_.run) continue;
      if (leaves_state) add({}, true);
      for (const SavingChange& change : changes)
        if (is_of(change) && change.saving != Saving::nothing) add(change, true);
    }
    return cures;
  }

  void leave_out_what_helps_nothing() {
    const Forecast now = forecast_of(memory_);
    Alternative run{.device_bytes = peak_of(now, Space::device, memory_.resumes),
                    .host_bytes = peak_of(now, Space::host, memory_.resumes)};
    if (const auto& nvme = now.at(Phase::step, Space::nvme)) run.nvme_bytes = nvme->high();
    std::erase_if(rows_, [&](const Alternative& row) {
      return row.changes > 0 && row.verdict == Verdict::unknown &&
             !is_offer(row, run, memory_.limits);
    });
  }

  const MemoryCase& memory_;
  const Inputs& inputs_;
  const DeepspeedSettings& given_;
  WordedFiles files_;
  std::vector<Alternative> rows_;
};

}  // namespace

std::vector<Alternative> deepspeed_alternatives(const MemoryCase& memory, const Inputs& inputs) {
  return Table(memory, inputs).rows();
}

}  // namespace underkeel::doctor
