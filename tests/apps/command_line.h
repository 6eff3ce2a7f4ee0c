#pragma once
// Runs the binary as a user does.

#include <cstdio>
#include <stdexcept>
#include <string>

#include <sys/wait.h>

#include "support/places.h"
#include "support/temporary_folder.h"
#include "support/text_files.h"

namespace underkeel::test {

struct Ran {
  int exit_code = -1;
  std::string out;
  std::string error;  // of the error stream
};

/// `arguments` as a shell reads them.
inline Ran run_underkeel(const std::string& arguments) {
  const TemporaryFolder folder;
  const auto error_file = folder / "error";
  const std::string command =
      test::in_build("apps/underkeel ") + arguments + " 2>" + error_file.string();
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  Ran ran;
  char buffer[4096];
  for (std::size_t size = 0; (size = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    ran.out.append(buffer, size);
  const int status = pclose(pipe);
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.error = read_text(error_file);
  return ran;
}

}  // namespace underkeel::test
