#pragma once
// memory.json of a run, as train/memory_report.h writes it.

#include <string_view>

#include "base/result.h"
#include "report/run_record.h"

namespace underkeel::report {

/// Fields that are not there or of another kind stay empty.
/// Errors: bad_file when it is not strict JSON, or has no ranks.
Result<MemoryRecord> read_memory_file(std::string_view text);

}  // namespace underkeel::report
