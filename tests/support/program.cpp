#include "support/program.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/text_files.h"

namespace underkeel::test {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Between two looks at something that another process does.
void pause_between_looks() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace

Program::Program(const std::vector<std::string>& words, const ProgramOptions& options) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!options.environment.contains(text.substr(0, text.find('=')))) environment.push_back(text);
  }
  for (const auto& [name, value] : options.environment) environment.push_back(name + "=" + value);
  std::vector<char*> variables, arguments;
  for (std::string& entry : environment) variables.push_back(entry.data());
  std::vector<std::string> own_words = words;
  for (std::string& word : own_words) arguments.push_back(word.data());
  variables.push_back(nullptr);
  arguments.push_back(nullptr);
  const std::string output = (folder_ / "output").string();
  const std::string working_folder = options.working_folder.string();

  began_s_ = now_s();
  id_ = fork();
  if (id_ < 0) throw std::runtime_error("cannot fork");
  if (id_ == 0) {  // only calls that are safe after a fork of a process with threads
    setpgid(0, 0);
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    const int empty = open("/dev/null", O_RDONLY);
    dup2(empty, STDIN_FILENO);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    if (!working_folder.empty() && chdir(working_folder.c_str()) != 0) _exit(126);
    execvpe(arguments[0], arguments.data(), variables.data());
    _exit(127);
  }
  setpgid(id_, id_);  // whoever comes first
}

Program::~Program() {
  if (!has_ended_) {
    send_to_group(SIGKILL);
    reap(true);
  }
  send_to_group(SIGKILL);
}

double Program::elapsed_s() const {
  return now_s() - began_s_;
}

void Program::send(int signal) const {
  if (!has_ended_) kill(id_, signal);
}

void Program::send_to_group(int signal) const {
  kill(-id_, signal);
}

void Program::reap(bool blocks) {
  if (has_ended_) return;
  int status = 0;
  pid_t got = 0;
  do got = waitpid(id_, &status, blocks ? 0 : WNOHANG);
  while (got < 0 && errno == EINTR);
  if (got != id_) return;
  has_ended_ = true;
  ended_.elapsed_s = elapsed_s();
  if (WIFEXITED(status)) ended_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended_.signal = WTERMSIG(status);
  ended_.output = output();
}

std::string Program::output() const {
  return std::filesystem::exists(folder_ / "output") ? read_text(folder_ / "output") : "";
}

bool Program::is_running() {
  reap(false);
  return !has_ended_;
}

bool Program::wait_until(const std::function<bool()>& holds, double limit_s) {
  while (!holds()) {
    if (!is_running()) return false;
    if (elapsed_s() > limit_s) {
      send_to_group(SIGKILL);
      reap(true);
      throw std::runtime_error("nothing within the limit; the program said:\n" + ended_.output);
    }
    pause_between_looks();
  }
  return true;
}

Ended Program::wait(double limit_s) {
  wait_until([this] { return !is_running(); }, limit_s);
  return ended_;
}

Ended run_program(const std::vector<std::string>& words, const ProgramOptions& options,
                  double limit_s) {
  return Program(words, options).wait(limit_s);
}

void adopt_orphans() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) throw std::runtime_error("cannot adopt orphans");
}

namespace {

std::vector<pid_t> living_children() {
  std::vector<pid_t> living;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "children");
    for (pid_t id = 0; file >> id;) {
      siginfo_t info{};
      // A zombie is reaped; a living one leaves `info` as it is.
      if (waitid(P_PID, static_cast<id_t>(id), &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
        living.push_back(id);
    }
  }
  return living;
}

}  // namespace

std::vector<pid_t> children_left() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::vector<pid_t> living = living_children();
  while (!living.empty() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    living = living_children();
  }
  return living;
}

}  // namespace underkeel::test
