#include "train/matmul_memory.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace underkeel::train {

namespace {

using nlohmann::json;

/// A model has a few dozen products; a cache of many models stays far below.
constexpr std::int64_t largest_file_bytes = std::int64_t{16} << 20;

/// One file for each library version and kind of GPU.
std::string cache_path(const std::string& folder, const std::string& made_on) {
  std::string name = made_on;
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-'; }, '_');
  return io::join_path(folder, name + ".json");
}

}  // namespace

std::string to_json(const kernels::MatmulChoices& choices) {
  const json all = {{"made_on", choices.made_on}, {"algorithms", choices.algorithms}};
  return all.dump(2) + "\n";
}

Result<kernels::MatmulChoices> matmul_choices_from_json(std::string_view text,
                                                        const std::string& where) {
  const json all = json::parse(text, nullptr, false);
  const auto wrong = [&] {
    return fail(ErrorCode::bad_file, "not a list of matrix products and their algorithms", where,
                "remove the file: algorithms are then timed again, and bits may differ");
  };
  if (!all.is_object() || !all.contains("made_on") || !all["made_on"].is_string() ||
      !all.contains("algorithms") || !all["algorithms"].is_object())
    return wrong();
  kernels::MatmulChoices choices{.made_on = all["made_on"].get<std::string>()};
  for (const auto& [product, algorithm] : all["algorithms"].items()) {
    if (!algorithm.is_string()) return wrong();
    choices.algorithms[product] = algorithm.get<std::string>();
  }
  return choices;
}

std::string matmul_cache_folder() {
  const auto value_of = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string cache = value_of("XDG_CACHE_HOME"); !cache.empty())
    return io::join_path(cache, "underkeel/matmul");
  if (const std::string home = value_of("HOME"); !home.empty())
    return io::join_path(home, ".cache/underkeel/matmul");
  return "";
}

Result<void> recall_matmuls(io::FileSystem& files, const Resume* resume,
                            const std::string& cache_folder, double limit_s,
                            std::vector<std::string>& notes) {
  const std::string here = kernels::cuda_matmul_choices().made_on;
  kernels::MatmulChoices resumed;
  if (resume != nullptr) {
    const std::string path = io::join_path(resume->checkpoint.folder, matmul_file);
    if (files.exists(path)) {
      UK_TRY(text, files.read_text(path, largest_file_bytes));
      UK_TRY(choices, matmul_choices_from_json(text, path));
      if (choices.made_on != here)
        notes.push_back(
            fmt::format("the checkpoint's matrix products ran as {}, these run as {}: bits differ "
                        "from a run that "
                        "was not interrupted",
                        choices.made_on, here));
      if (choices.made_on == here) resumed = std::move(choices);
    }
  }
  if (!cache_folder.empty() && limit_s > 0) {
    const std::string path = cache_path(cache_folder, here);
    if (const auto text = files.read_text(path, largest_file_bytes))
      if (const auto choices = matmul_choices_from_json(*text, path))
        kernels::cuda_take_matmul_choices(*choices);
  }
  // The last to name a product has it.
  kernels::cuda_take_matmul_choices(resumed);
  return {};
}

void keep_matmuls(io::FileSystem& files, const std::string& cache_folder) {
  const kernels::MatmulChoices used = kernels::cuda_matmul_choices();
  if (cache_folder.empty() || used.algorithms.empty()) return;
  const std::string path = cache_path(cache_folder, used.made_on);
  kernels::MatmulChoices all{.made_on = used.made_on};
  if (const auto text = files.read_text(path, largest_file_bytes))
    if (auto known = matmul_choices_from_json(*text, path); known && known->made_on == all.made_on)
      all = *std::move(known);
  const kernels::MatmulChoices before = all;
  for (const auto& [product, algorithm] : used.algorithms) all.algorithms[product] = algorithm;
  if (all == before) return;
  // A machine without a writable home times again.
  if (files.make_folders(cache_folder))
    static_cast<void>(files.write_text_durably(path, to_json(all)));
}

}  // namespace underkeel::train
