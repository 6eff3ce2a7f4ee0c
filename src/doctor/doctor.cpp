#include "doctor/doctor.h"

#include <algorithm>

#include <fmt/format.h>

#include "doctor/advice_rules.h"
#include "doctor/config_rules.h"
#include "doctor/key_rules.h"
#include "doctor/memory_rules.h"
#include "doctor/own_engine.h"

namespace underkeel::doctor {
namespace {

void append(std::vector<Finding>& findings, std::vector<Finding> more) {
  findings.insert(findings.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

bool concerns(const Finding& finding, Engine engine) {
  return finding.engine == Engine::both || finding.engine == engine;
}

bool has_error(const std::vector<Finding>& findings, Engine engine) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.severity == Severity::error && concerns(finding, engine);
  });
}

}  // namespace

Diagnosis diagnose(const Question& question) {
  Diagnosis diagnosis;
  std::vector<Finding>& findings = diagnosis.findings;
  const Inputs inputs = gather(question, findings);
  if (inputs.deepspeed || inputs.run)
    findings.push_back({.id = "ranks-counted",
                        .slots = {{"ranks", fmt::format("{}", inputs.ranks.count)},
                                  {"on_node", fmt::format("{}", inputs.ranks.on_node)},
                                  {"source", inputs.ranks.source}}});
  if (inputs.deepspeed) {
    append(findings, check_keys({.config = *inputs.deepspeed,
                                 .auto_is_filled_in = inputs.run || inputs.accelerate}));
    append(findings, check_config(inputs));
  }
  look_at_memory(question, inputs, diagnosis);
  look_at_advice(question, inputs, diagnosis);
  look_at_own_engine(question, inputs, diagnosis);
  if (has_error(findings, Engine::deepspeed)) diagnosis.deepspeed.verdict = Verdict::fails;
  if (has_error(findings, Engine::underkeel)) diagnosis.underkeel.verdict = Verdict::fails;
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return diagnosis;
}

int exit_code_of(const Diagnosis& diagnosis, Engine engine) {
  const Verdict verdict =
      engine == Engine::deepspeed ? diagnosis.deepspeed.verdict : diagnosis.underkeel.verdict;
  return verdict == Verdict::fails || has_error(diagnosis.findings, engine) ? 2 : 0;
}

}  // namespace underkeel::doctor
