#pragma once
// Whether a text is a log, by what is in it: words of errors, or lines of JSON that a Trainer or a logger writes.
// Not here: what a log says (log_reader.h).

#include <optional>
#include <string_view>

#include "spec/value.h"

namespace underkeel::doctor {

/// Lines that only a program writes: tracebacks, errors by their class, loggers, launchers, kernels, progress bars. Who speaks of
/// "out of memory" or a RuntimeError in a sentence writes no log.
bool looks_like_log(std::string_view text);

/// A first line that is a JSON object by itself.
std::optional<spec::Value> first_json_line(std::string_view text);

/// Whether a text whose first line is the object `first` is a log: it counts steps, it is a logger's, or words of a log stand in
/// `beginning` or `end` outside of JSON. Records of a data set are none, whatever their texts say.
bool is_log_in_json(const spec::Value& first, std::string_view beginning, std::string_view end);

}  // namespace underkeel::doctor
