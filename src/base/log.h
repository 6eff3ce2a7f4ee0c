#pragma once
// Logging facade: an event name and key=value fields. Only `train` and `apps` log; the layers
// below return values. The sink is set once by the application (spdlog there, tests their own).

#include <functional>
#include <string_view>

namespace underkeel {

enum class LogLevel { debug, info, warning, error };

using LogSink = std::function<void(LogLevel, std::string_view line)>;

void set_log_sink(LogSink sink);
void log(LogLevel level, std::string_view line);

}  // namespace underkeel
