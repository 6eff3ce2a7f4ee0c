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

/// How a record is laid out.
enum class RecordFormat {
  alpaca,    // a column for each part
  sharegpt,  // a list of messages that alternate
  openai     // the same with roles as of OpenAI's interface
};

/// Names of the columns of records. Empty: the data set has no such column.
struct Columns {
  std::string prompt = "instruction";
  std::string query = "input";
  std::string response = "output";
  std::string history;
  std::string messages = "conversations";
  std::string system;
  std::string tools;
};

/// Names inside a message, and how its roles are called. Empty: there is no such role.
struct Tags {
  std::string role = "from";
  std::string content = "value";
  std::string user = "human";
  std::string assistant = "gpt";
  std::string observation = "observation";
  std::string function = "function_call";
  std::string system = "system";
};

struct DatasetEntry {
  std::string name;
  std::string place =
      "dataset_info.json";         // where the entry stands: "data/dataset_info.json:3: name"
  std::vector<std::string> files;  // as paths that can be opened; never empty
  RecordFormat format = RecordFormat::alpaca;
  Columns columns;
  bool columns_are_named = false;  // by the entry: then each of them must be in some record
  Tags tags;
  std::optional<std::int64_t> sample_count;  // num_samples: so many, chosen at random
};

/// Reads the entries `names`, in that order. `folder` is dataset_dir. Only these entries are
/// checked: a file may describe sets that this program does not read.
/// Errors: not_found (file, entry with the nearest name, data file), bad_config (an unknown key
/// with the nearest known one, a wrong type), unsupported (pictures and sound, preferences, remote
/// sources, files of other kinds).
Result<std::vector<DatasetEntry>> read_dataset_info(io::FileSystem& files,
                                                    const std::filesystem::path& folder,
                                                    const std::vector<std::string>& names);
/// The same of a description under any name; `path` lies in dataset_dir.
Result<std::vector<DatasetEntry>> read_dataset_description(io::FileSystem& files,
                                                           const std::filesystem::path& path,
                                                           const std::vector<std::string>& names);

/// Whether a data file may be named so: .txt, .json, .jsonl or .csv, in small letters, as LLaMA-Factory wants it. `place`
/// is where it is named, "" for nowhere.
/// Errors: unsupported.
Result<void> check_data_file_name(const std::filesystem::path& path, std::string_view place);

}  // namespace underkeel::data
