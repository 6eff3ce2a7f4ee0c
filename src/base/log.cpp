#include "base/log.h"

#include <cstdio>
#include <mutex>
#include <utility>

namespace underkeel {

namespace {
std::mutex sink_mutex;
LogSink& sink_slot() {
  static LogSink sink;
  return sink;
}
}  // namespace

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(sink_mutex);
  sink_slot() = std::move(sink);
}

void log(LogLevel level, std::string_view line) {
  const std::lock_guard lock(sink_mutex);
  if (sink_slot()) {
    sink_slot()(level, line);
  } else if (level >= LogLevel::warning) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  }
}

}  // namespace underkeel
