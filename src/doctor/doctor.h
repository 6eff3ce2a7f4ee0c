#pragma once
// "Know before you sail": explains files that people already have, for two engines: DeepSpeed under the HF
// Trainer or LLaMA-Factory, from a model of it, and ours, from the plan. Reads; starts and changes nothing.

#include <string>
#include <vector>

#include "doctor/finding.h"
#include "doctor/forecast.h"
#include "doctor/inputs.h"
#include "doctor/wording.h"

namespace underkeel::doctor {

struct Diagnosis {
  std::vector<Finding> findings;  // by severity
  Forecast deepspeed;
  Forecast underkeel;
  std::vector<Alternative> alternatives;
  bool is_of_run = true;  // else of files and folders alone: there is no run to have a verdict
};

Diagnosis diagnose(const Question& question);

/// 2 when `engine` would fail or a finding is an error for it, else 0.
int exit_code_of(const Diagnosis& diagnosis, Engine engine);

/// A summary, all findings, and what would fit. `asked`: whose exit code the program ends with.
std::string to_text(const Diagnosis& diagnosis, Language language,
                    Engine asked = Engine::underkeel);
/// {findings: [{id, severity, certainty, engine, file, line, key, message, fix}], engines: {deepspeed: {verdict,
/// memory: {PHASE: {SPACE: {bytes, low_bytes, high_bytes, margin_bytes, terms: {NAME: bytes}}}}}, underkeel: {...}},
/// alternatives: [{engine, stage, offload_optimizer, offload_param, recompute, micro_batch, accumulation_steps,
/// verdict, changes, device_bytes, device_margin_bytes, host_bytes, host_margin_bytes, nvme_bytes, words}]}.
std::string to_json(const Diagnosis& diagnosis, Language language);

}  // namespace underkeel::doctor
