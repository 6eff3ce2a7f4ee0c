#pragma once
// What is in a safetensors file, a model folder, a checkpoint or an output folder, and whether it is
// sound. Reads; changes nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"
#include "io/file.h"
#include "io/verify_folder.h"
#include "spec/model_spec.h"

namespace underkeel::train {

enum class PathKind { safetensors_file, model_folder, adapter_folder, checkpoint, output_folder };
std::string_view name_of(PathKind kind);

struct InspectedTensor {
  std::string name;
  std::string type;  // "BF16" in a safetensors file, "bf16" in a manifest
  std::vector<std::int64_t> shape;
  std::int64_t size_bytes = 0;
};
struct InspectedFile {
  std::string name;
  std::int64_t size_bytes = 0;
  std::vector<InspectedTensor> tensors;
};

struct Inspection {
  PathKind kind = PathKind::safetensors_file;
  std::string path;
  std::vector<InspectedFile> files;
  std::optional<spec::ModelSpec> model;    // of config.json, where there is one
  std::optional<std::int64_t> step;        // of a checkpoint
  io::CheckpointList checkpoints;          // of an output folder
  bool verified = false;                   // every tensor was checked
  std::optional<io::FolderTotals> totals;  // of the check against config.json
  std::vector<Error> problems;
  std::vector<std::string> warnings;

  bool sound() const { return problems.empty(); }
};

/// Looks at headers, index and manifest; with `verify` also compares every weight with what config.json
/// needs, looks for values that are not finite, and compares a checkpoint's checksums. Of an output
/// folder all complete checkpoints are verified. Of adapters without a base it tells whether there are any, whether
/// they were trained, and with `verify` whether pairs, rank and values are sound.
/// Errors:  not_found when there is nothing at `path` that can be looked into; io. What is wrong with
///          the content is in the inspection.
Result<Inspection> inspect(io::FileSystem& files, const std::string& path, bool verify);

/// For people: a table of tensors, then totals, warnings and problems.
std::string to_text(const Inspection& inspection);
/// {kind, path, step, files: [{name, size_bytes, tensors: [{name, type, shape, size_bytes}]}], model,
/// checkpoints, skipped, verified, totals, problems: [{what, where, try}], warnings, sound}.
std::string to_json(const Inspection& inspection);

}  // namespace underkeel::train
