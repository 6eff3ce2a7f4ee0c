#pragma once

#include <chrono>

namespace underkeel {

/// Seconds of a clock that never steps back; only differences mean something.
inline double steady_now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace underkeel
