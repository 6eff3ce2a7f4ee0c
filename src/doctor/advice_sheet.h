#pragma once
// Where figures of answers to advice are put down: each by its name, and the verdict on it beside it.

#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "doctor/advice_claims.h"
#include "doctor/advice_numbers.h"
#include "doctor/memory_rules.h"

namespace underkeel::doctor {

/// A verdict as a phrase of wordings.
constexpr std::string_view verdict_yes = "@advice.true", verdict_half = "@advice.half",
                           verdict_no = "@advice.false";

/// Of weights, gradients, optimizer state and buffers alone.
double state_on_device(const MemoryCase& memory);

class AdviceSheet {
 public:
  AdviceSheet(double card_bytes, std::map<std::string, std::string>& figures)
      : card_bytes_(card_bytes), figures_(figures) {}

  void say(std::string_view name, std::string_view text) {
    figures_[std::string(name)] = std::string(text);
  }
  void size(std::string_view name, double bytes) { say(name, amount(bytes)); }
  void count(std::string_view name, double value) { say(name, fmt::format("{:.0f}", value)); }
  void judge(std::string_view name, std::string_view truth) {
    say(fmt::format("{}_truth", name), truth);
  }
  /// What saves nothing is no help, and half a one where the rest is too large still.
  void judge_saving(std::string_view name, double saved, double rest) {
    judge(name, saved <= 0 ? verdict_no : rest > card_bytes_ ? verdict_half : verdict_yes);
  }
  /// Half a help, too, where the rest may be too large.
  void judge_change(std::string_view name, double saved, const MemoryCase& changed) {
    judge_saving(name, saved, on_device(forecast_of(changed)).high);
  }
  /// Whether the run as changed goes, on the card that is supposed where nobody named one.
  void judge_run(std::string_view name, const Forecast& forecast, bool is_card_known) {
    const auto [low, high] = on_device(forecast);
    const Verdict verdict = is_card_known         ? forecast.verdict
                            : high <= card_bytes_ ? Verdict::runs
                            : low > card_bytes_   ? Verdict::fails
                                                  : Verdict::unknown;
    judge(name, verdict == Verdict::runs    ? verdict_yes
                : verdict == Verdict::fails ? verdict_no
                                            : verdict_half);
  }
  double card_bytes() const { return card_bytes_; }

 private:
  double card_bytes_;
  std::map<std::string, std::string>& figures_;
};

/// The number of a piece of advice, and what it counts.
struct AskedNumber {
  Quantity quantity = Quantity::none;
  std::optional<Said> said = {};
  SaidMachine machine = {};               // of a claim that something fits
  std::optional<SaidAmount> amount = {};  // what is said to be needed
  bool operator==(const AskedNumber&) const = default;
  /// What is said of `what`, where something is.
  std::optional<Said> of(Quantity what) const { return quantity == what ? said : std::nullopt; }
};

/// What a node needs of its host at least and at most in any phase of a run (a resume where it resumes), and where it
/// needs the most.
struct HostNeed {
  Range bytes;
  Phase phase = Phase::load;
};
HostNeed host_need(const Forecast& forecast, bool resumes);

/// At a stage, with the offload that it can have.
MemoryCase run_at_stage(const MemoryCase& memory, const Inputs& inputs, int stage);

/// Adds the figures of claims that a run fits, or takes so much.
void add_fit_figures(const MemoryCase& memory, const Inputs& inputs, const AskedNumber& asked,
                     AdviceSheet& sheet);

/// Adds the figures of advice on another method, precision, optimizer, stage or machine.
void add_method_figures(const MemoryCase& memory, const Inputs& inputs, const AskedNumber& asked,
                        AdviceSheet& sheet);

}  // namespace underkeel::doctor
