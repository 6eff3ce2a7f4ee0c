// Tensors that are missing by their names: what the names that are there say of how it came about.

#include <fmt/format.h>

#include "doctor/folder_rules.h"
#include "spec/tied_copy.h"

namespace underkeel::doctor {
namespace {

Finding error_of(std::string id, const MissingTensors& missing, std::vector<Slot> slots) {
  slots.push_back({"tensor", missing.first});
  slots.push_back({"count", fmt::format("{}", missing.count)});
  slots.insert(slots.end(), missing.totals.begin(), missing.totals.end());
  return {.id = std::move(id),
          .severity = Severity::error,
          .file = missing.file,
          .key = missing.first,
          .slots = std::move(slots)};
}

}  // namespace

Finding missing_tensors(const MissingTensors& missing, const spec::ModelSpec& model) {
  // A wrapper's name stands before all names, as `module.` or `base_model.model.`.
  const std::string ending = "." + missing.first;
  for (const auto& [name, entry] : missing.found) {
    if (!name.ends_with(ending)) continue;
    const std::string prefix(name.substr(0, name.size() - missing.first.size()));
    std::int64_t there = 0;
    for (const spec::Parameter& parameter : spec::parameters_of(model))
      if (!missing.found.contains(parameter.name) &&
          missing.found.contains(prefix + parameter.name))
        ++there;
    Finding finding = error_of("weights-prefixed", missing,
                               {{"there", fmt::format("{}", there)}, {"prefix", prefix}});
    for (Slot& slot : finding.slots)
      if (slot.name == "tensor") slot.text = prefix + missing.first;
    return finding;
  }
  const bool is_head_alone =
      missing.is_all && missing.count == 1 && missing.first == "lm_head.weight";
  return error_of(is_head_alone && !model.tied_head ? "weights-missing-head" : "weights-missing",
                  missing, {});
}

std::optional<Finding> unfinished_download(io::FileSystem& files, const std::string& folder,
                                           const std::string& shown) {
  const auto entries = files.list(folder);
  if (!entries) return std::nullopt;
  constexpr std::string_view endings[] = {".incomplete", ".part", ".crdownload", ".aria2"};
  for (const io::FolderEntry& entry : *entries)
    for (const std::string_view ending : endings) {
      if (!entry.name.ends_with(ending)) continue;
      const auto found = files.stat(io::join_path(folder, entry.name));
      const std::int64_t size_bytes = found && *found ? (*found)->size_bytes : 0;
      return Finding{.id = "weights-download-unfinished",
                     .severity = Severity::error,
                     .file = shown,
                     .slots = {{"file", entry.name}, {"size", size_text(size_bytes)}}};
    }
  return std::nullopt;
}

}  // namespace underkeel::doctor
