#pragma once
// Runs a program as a child process, the way a shell does: for tests in which a process must die, or
// be sent signals, or prove that nothing of it is left.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "support/temporary_folder.h"

namespace underkeel::test {

struct ProgramOptions {
  std::map<std::string, std::string> environment = {};  // added to this process's own
  std::filesystem::path working_folder = {};            // empty: this process's
};

/// How a program ended.
struct Ended {
  int exit_code = -1;  // -1: it did not exit by itself
  int signal = 0;      // that ended it
  std::string output;  // stdout and stderr together
  double elapsed_s = 0;
};

/// A running program, leader of a process group of its own. What is left of the group when this goes
/// out of scope is killed.
class Program {
 public:
  explicit Program(const std::vector<std::string>& words, const ProgramOptions& options = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t id() const { return id_; }
  void send(int signal) const;           // to the program alone
  void send_to_group(int signal) const;  // to all processes of its group
  bool is_running();
  std::string output() const;  // so far
  double elapsed_s() const;    // since its start
  /// Waits for the end. Past `limit_s` everything is killed and the test is told by an exception.
  Ended wait(double limit_s = 60);
  /// Looks again and again until `holds`. False when the program ended first. Throws past `limit_s`.
  bool wait_until(const std::function<bool()>& holds, double limit_s = 60);

 private:
  void reap(bool blocks);

  TemporaryFolder folder_;  // of its output
  pid_t id_ = -1;
  double began_s_ = 0;
  bool has_ended_ = false;
  Ended ended_;
};

/// Runs to the end.
Ended run_program(const std::vector<std::string>& words, const ProgramOptions& options = {},
                  double limit_s = 60);

/// From now on, processes whose parent has died become children of this one, so that none escapes
/// children_left().
void adopt_orphans();
/// Children of this process that still live after 10 s, adopted ones too, zombies not: one that was killed with its
/// launcher takes a moment to end. Zombies of other programs than `Program` watches are reaped.
std::vector<pid_t> children_left();

}  // namespace underkeel::test
