#pragma once
// Checks a model folder tensor by tensor against what the model needs: for `inspect --verify`, and
// before any export of ours is called complete.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/file.h"

namespace underkeel::io {

struct ExpectedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// Two names for one tensor: an output head tied to the embedding.
struct TiedTensor {
  std::string copy;  // "lm_head.weight": not to be in the files
  std::string kept;  // "model.embed_tokens.weight"
};

struct VerifyOptions {
  std::vector<TiedTensor> tied;
  /// Reads every value too, and reports those that are not finite.
  bool read_values = true;
  /// Tensors that the model has no place for are a warning, as loaders pass them over.
  bool allow_unexpected = false;
  std::int64_t buffer_bytes = 4 * 1024 * 1024;
};

struct FolderTotals {
  std::int64_t file_count = 0;
  std::int64_t tensor_count = 0;
  std::int64_t tensor_bytes = 0;
  std::int64_t parameters_expected = 0;
  std::int64_t parameters_found = 0;  // of expected tensors, in their found shapes
};

struct FolderReport {
  std::vector<Error> problems;  // one for each kind, with its first tensor and how many more
  std::vector<std::string> warnings;
  FolderTotals totals;

  bool sound() const { return problems.empty(); }
};

/// Compares the files in `folder` with `expected`, in its order: shapes, missing and unexpected
/// tensors, types we cannot read, a tied head that is doubled (a warning when both are equal, a
/// problem when not). Two buffers of `buffer_bytes` are all the memory for values.
/// Errors: as scan_model_folder(). All else is in the report.
Result<FolderReport> verify_folder(FileSystem& files, const std::string& folder,
                                   std::span<const ExpectedTensor> expected,
                                   const VerifyOptions& options = {});

}  // namespace underkeel::io
