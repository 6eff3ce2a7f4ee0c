#include <cstdio>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "base/log.h"
#include "base/printable.h"
#include "command.h"

namespace underkeel::apps {

namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void set_up_logging() {
  const auto logger = spdlog::stderr_color_mt("underkeel");
  logger->set_pattern("%H:%M:%S %^%l%$ %v");
  set_log_sink([logger](LogLevel level, std::string_view line) {
    std::fflush(stdout);  // where both go into one file, lines stand in the order of their making
    logger->log(level_of(level), "{}", printable_lines(line));
  });
}

}  // namespace underkeel::apps
