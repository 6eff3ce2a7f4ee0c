#pragma once
// Stop signals: SIGTERM, SIGINT and SIGUSR1 ask the run to save and stop. The handler only sets a
// flag; the loop reads it at places where all ranks can agree on stopping.

#include <array>
#include <string_view>

#include <signal.h>

namespace underkeel::train {

struct StopSignalOptions {
  /// Whether the first signal is told on stderr at once; the step that runs may take a while. On
  /// rank 0 only, else every rank says it.
  bool announces = true;
  /// Signals closer together than this are one: `timeout` and some launchers send a signal to the
  /// process and then to its group.
  double repeat_window_s = 0.05;
};

/// Handles the three signals while it lives and gives the former handling back afterwards. One at a
/// time in a process; its ranks share it. System calls that a signal interrupts go on (SA_RESTART),
/// so no phase sees an error because of it.
///
/// A second signal ends the process at once, by _exit(75): nothing is flushed, finished or cleaned
/// up. Checkpoints and JSON files change by rename alone, so the newest complete checkpoint stays
/// what the run resumes from.
class StopSignals {
 public:
  explicit StopSignals(const StopSignalOptions& options = {});
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static constexpr std::array<int, 3> handled{SIGTERM, SIGINT, SIGUSR1};

 private:
  std::array<struct sigaction, handled.size()> former_{};
};

/// The first stop signal that came, or 0. Any thread, at any time; one atomic load.
int stop_signal();

/// "SIGTERM"; "none" for 0.
std::string_view signal_name(int signal_number);

}  // namespace underkeel::train
