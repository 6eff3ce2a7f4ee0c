// underkeel inspect PATH

#include "train/inspect.h"

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.h"

namespace underkeel::apps {

namespace {

struct Words {
  std::string path;
  bool verify = false;
  bool json = false;
};

Result<void> run(const Words& words) {
  io::FileSystem files;
  UK_TRY(seen, train::inspect(files, words.path, words.verify));
  std::fputs((words.json ? train::to_json(seen) : train::to_text(seen)).c_str(), stdout);
  if (seen.sound()) return {};
  const std::size_t count = seen.problems.size();
  return fail(seen.problems.front().code,
              fmt::format("the look found {} {}", count, count == 1 ? "problem" : "problems"),
              words.path);
}

}  // namespace

void add_inspect(CLI::App& app, Chosen& chosen) {
  auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Show what is in a safetensors file, a model folder, a checkpoint or an output folder.");
  command->add_option("PATH", words->path, "file or folder to look into")->required();
  command->add_flag("--verify", words->verify,
                    "check every tensor against config.json, every value, every checksum");
  command->add_flag("--json", words->json, "print one JSON object");
  command->footer("Ends with exit code 2 when something is wrong with the content.");
  command->callback([words, &chosen] { chosen.run = [words] { return run(*words); }; });
}

}  // namespace underkeel::apps
