#pragma once
// The answer in a few lines, told before the findings: does it go, what decides that, the smallest change.

#include <string>

#include "doctor/doctor.h"

namespace underkeel::doctor {

/// Of a run for each engine; where no run was asked about what was judged. Ends with how much is told below it and whose
/// exit code it is: `asked`'s.
std::string summary_of(const Diagnosis& diagnosis, Language language, Engine asked);

/// Of a message its first clause, and those behind it as long as it stays a line.
std::string headline_of(const std::string& message, Language language);
/// Of a finding, cut so that both languages tell the same figures.
std::string headline_of(const Finding& finding, Language language);

}  // namespace underkeel::doctor
