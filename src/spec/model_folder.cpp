// Finds a model: a folder, or a hub name in the local cache of Hugging Face.

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "spec/model_spec.h"
#include "spec/text_file.h"

namespace underkeel::spec {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

fs::path hub_cache() {
  if (const auto cache = environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const auto home = environment("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  if (const auto cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "huggingface" / "hub";
  return fs::path(environment("HOME")) / ".cache" / "huggingface" / "hub";
}

bool is_name_part(std::string_view part) {
  return !part.empty() && part.front() != '.' && part.front() != '-' && part.size() <= 96 &&
         std::all_of(part.begin(), part.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

/// "org/name".
bool is_hub_name(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return is_name_part(text);  // the oldest have no owner: gpt2
  return is_name_part(text.substr(0, slash)) && is_name_part(text.substr(slash + 1));
}

/// The snapshot that refs/main names; empty when the cache does not have one.
fs::path snapshot_in(const fs::path& repository) {
  const auto reference = read_text_file(repository / "refs" / "main");
  if (!reference) return {};
  std::string commit = *reference;
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == '\r')) commit.pop_back();
  if (!is_name_part(commit)) return {};
  std::error_code status;
  const fs::path folder = repository / "snapshots" / commit;
  return fs::is_directory(folder, status) ? folder : fs::path();
}

}  // namespace

Result<fs::path> find_model_folder(std::string_view name_or_path) {
  const fs::path path(name_or_path);
  std::error_code status;
  if (fs::is_directory(path, status)) return path;
  if (fs::exists(path, status))
    return fail(ErrorCode::bad_config, "a model folder is wanted, this is a file", path.string(),
                path.has_parent_path() ? "name the folder: " + path.parent_path().string() : "");
  // A first part that is a folder here speaks for a mistyped path.
  const bool is_local = path.has_parent_path() && fs::is_directory(*path.begin(), status);
  if (is_local || !is_hub_name(name_or_path))
    return fail(ErrorCode::not_found, "the model folder is not there", path.string(),
                path.is_relative() ? fmt::format("paths count from the working folder, {}",
                                                 fs::current_path().string())
                                   : "");
  std::string folder_name = fmt::format("models--{}", name_or_path);
  if (const auto slash = folder_name.find('/'); slash != std::string::npos)
    folder_name.replace(slash, 1, "--");
  const fs::path repository = hub_cache() / folder_name;
  const fs::path snapshot = snapshot_in(repository);
  if (!snapshot.empty()) return snapshot;
  return fail(
      ErrorCode::not_found,
      fmt::format("`{}` is neither a folder nor in the local Hugging Face cache", name_or_path),
      repository.string(), fmt::format("hf download {}", name_or_path));
}

Result<ModelSpec> read_model_config(const fs::path& folder) {
  UK_TRY(found, find_model_folder(folder.string()));
  const fs::path file = found / "config.json";
  std::error_code status;
  if (!fs::exists(file, status)) {
    const bool is_adapter = fs::exists(found / "adapter_config.json", status);
    return fail(ErrorCode::not_found, "the model folder has no config.json", found.string(),
                is_adapter ? "this folder holds an adapter: name the base model's folder" : "");
  }
  UK_TRY(text, read_text_file(file));
  return parse_model_config(text, file.string());
}

}  // namespace underkeel::spec
