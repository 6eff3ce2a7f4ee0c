#include "doctor/forecast.h"

#include <algorithm>
#include <tuple>

namespace underkeel::doctor {

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view names[] = {"runs", "fails", "unknown"};
  return names[static_cast<std::size_t>(verdict)];
}

std::string_view name_of(Phase phase) {
  constexpr std::string_view names[] = {"load",     "first_step", "step",       "update",
                                        "evaluate", "save",       "after_save", "resume"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view name_of(Space space) {
  constexpr std::string_view names[] = {"device", "pinned_host", "host", "nvme"};
  return names[static_cast<std::size_t>(space)];
}

double Holding::low() const {
  double sum = 0;
  for (const Term& term : terms) sum += term.low_bytes;
  return sum;
}

double Holding::high() const {
  double sum = 0;
  for (const Term& term : terms) sum += term.high_bytes;
  return sum;
}

double Holding::high_without(std::string_view name) const {
  double sum = 0;
  for (const Term& term : terms)
    if (term.name != name) sum += term.high_bytes;
  return sum;
}

std::pair<double, double> term_range(const Forecast& forecast, Phase phase, Space space,
                                     std::string_view name) {
  std::pair<double, double> range;
  if (const auto& holding = forecast.at(phase, space))
    for (const Term& term : holding->terms) {
      if (term.name != name) continue;
      range.first += term.low_bytes;
      range.second += term.high_bytes;
    }
  return range;
}

double term_bytes(const Forecast& forecast, Phase phase, Space space, std::string_view name) {
  return term_range(forecast, phase, space, name).second;
}

namespace {

int place_rank(std::string_view place) {
  return place == "none" ? 0 : place == "cpu" ? 1 : 2;
}
int verdict_rank(Verdict verdict) {
  return verdict == Verdict::runs ? 0 : verdict == Verdict::unknown ? 1 : 2;
}

/// In the settings that cost time: stage 3 gathers, the others move as much as each other.
bool is_no_slower(const Alternative& a, const Alternative& b) {
  return (a.stage == 3) <= (b.stage == 3) && a.recomputes <= b.recomputes &&
         a.micro_batch >= b.micro_batch && a.evaluation_batch >= b.evaluation_batch &&
         place_rank(a.offload_optimizer) <= place_rank(b.offload_optimizer) &&
         place_rank(a.offload_param) <= place_rank(b.offload_param);
}

int resume_rank(const Alternative& row) {
  return verdict_rank(row.resume.value_or(Verdict::runs)) +
         (row.saving != Saving::as_it_is ? 3 : 0);
}

bool makes_needless(const Alternative& a, const Alternative& b) {
  const double nvme_a = a.nvme_bytes.value_or(0), nvme_b = b.nvme_bytes.value_or(0);
  const bool needs_no_more =
      a.device_bytes <= b.device_bytes && a.host_bytes <= b.host_bytes && nvme_a <= nvme_b;
  const bool needs_less =
      a.device_bytes < b.device_bytes || a.host_bytes < b.host_bytes || nvme_a < nvme_b;
  const bool is_better = needs_less || a.changes < b.changes || !is_no_slower(b, a);
  return a.engine == b.engine && a.changes > 0 && a.changes <= b.changes &&
         verdict_rank(a.verdict) <= verdict_rank(b.verdict) && is_no_slower(a, b) &&
         resume_rank(a) <= resume_rank(b) && needs_no_more && is_better;
}

}  // namespace

bool costs_less_time(const Alternative& a, const Alternative& b) {
  const auto cost = [](const Alternative& row) {
    return std::tuple(place_rank(row.offload_optimizer), place_rank(row.offload_param),
                      row.stage == 3, row.recomputes, -row.micro_batch, -row.evaluation_batch);
  };
  return cost(a) < cost(b);
}

std::vector<Alternative> without_needless(std::vector<Alternative> rows) {
  std::vector<Alternative> kept;
  for (const Alternative& row : rows) {
    // What fails is no offer, and says why the smaller changes are not there.
    const bool is_needless = row.verdict != Verdict::fails && row.changes > 0 &&
                             std::any_of(rows.begin(), rows.end(), [&](const Alternative& other) {
                               return makes_needless(other, row);
                             });
    if (!is_needless) kept.push_back(row);
  }
  return kept;
}

}  // namespace underkeel::doctor
