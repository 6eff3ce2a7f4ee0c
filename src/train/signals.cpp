// The handler and its few words of shared state. All it calls is async-signal-safe.

#include "train/signals.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <time.h>
#include <unistd.h>

#include "base/check.h"

namespace underkeel::train {
namespace {

constexpr int exit_stopped = 75;  // exit_code(ErrorCode::stopped); a handler calls nothing to ask

// A handler may use atomics only where they need no lock.
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free);
std::atomic<int> first_signal{0};
std::atomic<std::int64_t> first_time_ns{0};
std::atomic<std::int64_t> repeat_window_ns{0};
std::atomic<bool> announces{false};
std::atomic<bool> is_installed{false};

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void say(const char* text) {
  // Nothing can be done about a stderr that is closed or full.
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, std::strlen(text));
}

void on_stop_signal(int signal_number) {
  const int saved_errno = errno;
  int none = 0;
  const std::int64_t now_ns = monotonic_ns();
  if (first_signal.compare_exchange_strong(none, signal_number)) {
    first_time_ns.store(now_ns);
    if (announces.load())
      say("\nstopping: the run saves and ends after this step; a second signal ends it at once\n");
  } else {
    // Zero: another thread's handler has set the flag and not yet the time, so this is a repeat.
    const std::int64_t first_ns = first_time_ns.load();
    if (first_ns != 0 && now_ns - first_ns >= repeat_window_ns.load()) {
      say("\nended at once by a second signal; resume from the newest checkpoint\n");
      _exit(exit_stopped);
    }
  }
  errno = saved_errno;
}

}  // namespace

StopSignals::StopSignals(const StopSignalOptions& options) {
  UK_CHECK(!is_installed.exchange(true), "stop signals are handled twice in one process");
  first_signal.store(0);
  first_time_ns.store(0);
  repeat_window_ns.store(static_cast<std::int64_t>(options.repeat_window_s * 1e9));
  announces.store(options.announces);
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  // One at a time: a second signal of another kind waits until the first has left its mark.
  for (const int number : handled) sigaddset(&action.sa_mask, number);
  for (std::size_t i = 0; i < handled.size(); ++i)
    UK_CHECK(sigaction(handled[i], &action, &former_[i]) == 0, "a signal cannot be handled");
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < handled.size(); ++i) sigaction(handled[i], &former_[i], nullptr);
  is_installed.store(false);
}

int stop_signal() {
  return first_signal.load(std::memory_order_relaxed);
}

std::string_view signal_name(int signal_number) {
  switch (signal_number) {
    case 0:
      return "none";
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "another signal";
  }
}

}  // namespace underkeel::train
