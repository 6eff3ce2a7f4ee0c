#pragma once
// dataset_info.json: which files a data set has and which columns hold what.
// Not here: reading the files (records.h).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/file.h"

namespace underkeel::data {

/// Names of the columns of alpaca records. Empty: the data set has no such column.
struct Columns {
  std::string prompt = "instruction";
  std::string query = "input";
  std::string response = "output";
};

struct DatasetEntry {
  std::string name;
  std::vector<std::string> files;  // as paths that can be opened; never empty
  Columns columns;
  std::optional<std::int64_t> sample_count;  // num_samples: so many, chosen at random
};

/// Reads the entries `names`, in that order. `folder` is dataset_dir. Only these entries are
/// checked: a file may describe sets that this program does not read.
/// Errors: not_found (file, entry with the nearest name, data file), bad_config (an unknown key
/// with the nearest known one, a wrong type), unsupported (other formatting, remote sources).
Result<std::vector<DatasetEntry>> read_dataset_info(io::FileSystem& files,
                                                    const std::filesystem::path& folder,
                                                    const std::vector<std::string>& names);

}  // namespace underkeel::data
