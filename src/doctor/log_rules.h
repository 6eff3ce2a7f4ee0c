#pragma once
// What follows from a log: the error explained with its numbers, and the causes of "out of memory on the first step after
// a save", ranked for this run.

#include "doctor/doctor.h"
#include "doctor/log_reader.h"
#include "doctor/memory_rules.h"

namespace underkeel::doctor {

void look_at_logs(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);

/// A candidate, with what it takes in this run and how well it goes with what is known.
struct Cause {
  std::string_view id;  // "after-save-moments"
  double bytes = 0;
  int score = 0;
};
/// The most likely first.
std::vector<Cause> causes_after_save(const MemoryCase& memory, const Forecast& forecast,
                                     const std::optional<LogSummary>& log);

}  // namespace underkeel::doctor
