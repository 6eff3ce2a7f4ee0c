#pragma once
// For tests of the whole training program: a case, the binary on it, and what it leaves behind.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/checkpoint.h"
#include "support/case.h"
#include "support/places.h"
#include "support/program.h"
#include "support/text_files.h"
#include "support/value_of.h"

namespace underkeel::test {

namespace fs = std::filesystem;

enum class Ranks { threads, processes };

constexpr std::int64_t page_bytes = 4096;  // the kernel counts resident memory in whole pages

struct TrainOptions {
  int ranks = 1;
  Ranks as = Ranks::threads;
  fs::path output = {};  // empty: the case's own
  std::vector<std::string> changes = {};
  std::map<std::string, std::string> environment = {};
  std::vector<std::string> flags = {};  // as --memory device=1GiB
};

/// The program: this build's, or the one that UNDERKEEL_BINARY names (scripts/gpu_check).
inline std::string underkeel_binary() {
  const char* const copy = std::getenv("UNDERKEEL_BINARY");
  return copy != nullptr ? copy : test::in_build("apps/underkeel");
}

/// Whether every point of a sweep is wanted, not only some: UNDERKEEL_TEST_THOROUGH=1.
inline bool is_thorough() {
  const char* const text = std::getenv("UNDERKEEL_TEST_THOROUGH");
  return text != nullptr && *text == '1';
}

/// The words of `underkeel train` on a case. One thread a rank unless a change says more.
inline std::vector<std::string> train_words(const RunnableCase& made, const TrainOptions& options) {
  std::vector<std::string> words;
  if (options.as == Ranks::processes)
    words = {"mpirun", "--allow-run-as-root",        "--oversubscribe", "--bind-to", "none",
             "-n",     std::to_string(options.ranks)};
  words.insert(words.end(), {underkeel_binary(), "train", made.run_file.string()});
  if (options.as == Ranks::threads)
    words.insert(words.end(), {"--ranks", std::to_string(options.ranks)});
  words.insert(words.end(), options.flags.begin(), options.flags.end());
  words.emplace_back("underkeel.threads=1");
  if (!options.output.empty()) words.push_back("output_dir=" + options.output.string());
  words.insert(words.end(), options.changes.begin(), options.changes.end());
  return words;
}

inline ProgramOptions program_options(const TrainOptions& options) {
  return {.environment = options.environment};
}

inline Ended run_training(const RunnableCase& made, const TrainOptions& options = {},
                          double limit_s = 60) {
  return run_program(train_words(made, options), program_options(options), limit_s);
}

/// Every safetensors file of a folder, by name.
inline std::map<std::string, std::string> tensor_files(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors")
      files[entry.path().filename().string()] = read_text(entry.path());
  return files;
}

/// Names of the tensor files that two folders do not share byte for byte; a sentence when there are none.
inline std::vector<std::string> tensor_differences(const fs::path& a, const fs::path& b) {
  const auto in_a = tensor_files(a);
  const auto in_b = tensor_files(b);
  if (in_a.empty()) return {a.string() + " holds no tensors"};
  std::vector<std::string> names;
  for (const auto& [name, bytes] : in_a)
    if (!in_b.contains(name) || in_b.at(name) != bytes) names.push_back(name);
  for (const auto& [name, bytes] : in_b)
    if (!in_a.contains(name)) names.push_back(name);
  return names;
}

/// A folder that holds one checkpoint of another run and nothing else, as if the run had been killed there.
inline fs::path with_checkpoint_of(const fs::path& run, std::int64_t step, const fs::path& output) {
  const std::string name = "checkpoint-" + std::to_string(step);
  fs::create_directories(output);
  fs::copy(run / name, output / name, fs::copy_options::recursive);
  return output;
}

/// Names of the entries of a folder that begin with `start`, sorted.
inline std::vector<std::string> entries(const fs::path& folder, std::string_view start = "") {
  std::vector<std::string> names;
  if (fs::exists(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().filename().string().starts_with(start))
        names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::vector<nlohmann::json> json_lines(const fs::path& file) {
  std::vector<nlohmann::json> lines;
  if (!fs::exists(file)) return lines;
  std::istringstream text(read_text(file));
  for (std::string line; std::getline(text, line);) {
    auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_discarded()) lines.push_back(std::move(json));  // a kill may cut the last one
  }
  return lines;
}

/// The `step` events of a run by step; a step that was made again counts with its last event.
inline std::map<std::int64_t, nlohmann::json> steps(const fs::path& output) {
  std::map<std::int64_t, nlohmann::json> found;
  for (const auto& line : json_lines(output / "events.jsonl"))
    if (line.value("event", "") == "step") found[line["step"]] = line;
  return found;
}

inline std::int64_t last_step(const fs::path& output) {
  const auto found = steps(output);
  return found.empty() ? 0 : found.rbegin()->first;
}

/// Steps of the complete checkpoints, newest first.
inline std::vector<std::int64_t> complete_steps(const fs::path& output) {
  io::FileSystem files;
  std::vector<std::int64_t> found;
  for (const auto& one : value_of(io::list_checkpoints(files, output.string())).complete)
    found.push_back(one.step);
  return found;
}

/// What is damaged in the newest complete checkpoint, checksums included; nothing when it is whole.
inline std::vector<std::string> damage(const fs::path& output) {
  io::FileSystem files;
  const auto newest = value_of(io::newest_complete(files, output.string()));
  if (!newest) return {};
  std::vector<std::byte> buffer(1 << 16);
  std::vector<std::string> sentences;
  for (const Error& error : value_of(io::verify_checkpoint(files, *newest, buffer)))
    sentences.push_back(to_text(error));
  return sentences;
}

}  // namespace underkeel::test
