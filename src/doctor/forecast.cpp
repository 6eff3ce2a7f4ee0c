#include "doctor/forecast.h"

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

double term_bytes(const Forecast& forecast, Phase phase, Space space, std::string_view name) {
  const auto& holding = forecast.at(phase, space);
  if (!holding) return 0;
  double bytes = 0;
  for (const Term& term : holding->terms)
    if (term.name == name) bytes += term.high_bytes;
  return bytes;
}

}  // namespace underkeel::doctor
