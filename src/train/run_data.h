#pragma once
// A run's data from its configuration: the tokenizer as the template wants it, and what the data
// layer is asked for. `train` and `plan` share it.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "io/file.h"
#include "planner/fit.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"
#include "train/template_files.h"

namespace underkeel::train {

struct RunDataRequest {
  const spec::RunConfig& run;
  const spec::ModelSpec& model;
  std::filesystem::path model_folder;
  int thread_count = 1;
  int world_size = 1;
  std::optional<std::int64_t> memory_bytes;  // what tokenising may hold at once; absent: no limit
};

/// Tokenising ends before the arenas exist: it may take what the node has, but for the bare processes.
std::optional<std::int64_t> memory_for_data(const planner::Room& room);

struct RunData {
  data::Datasets datasets;
  TemplateFiles template_files;    // stage sft: what an export must say
  std::string report;              // for the user, before training
  std::vector<std::string> notes;  // for the user, once
};

/// The order of a run's samples for one rank.
data::SamplerConfig sampler_config(const spec::RunConfig& run, std::int64_t sample_count,
                                   int world_size, int rank);

struct MetBy {
  int world_size = 1;
  std::int64_t epochs =
      0;  // of a resumed run, which may meet more of them than one that starts anew
};
/// Puts the sizes of the samples into the run, so that it is planned for those and not for cutoff_len: the longest, the
/// largest micro-batches of all epochs, however the global batch is split, and what the samples' lists take.
void take_sizes(const data::Datasets& datasets, const MetBy& met_by, spec::RunConfig& run);

/// Errors: unsupported where the datasets library has saved a data set in the folder for tokens
/// (LLaMA-Factory's tokenized_path), whose files are not read.
Result<void> check_token_folder(io::FileSystem& files, const std::string& folder);

/// Reads and tokenises a run's data. Fills the report.
/// Errors: those of load_datasets(); bad_file when tokenizer and model do not fit; bad_config or
/// unsupported for templates.
Result<RunData> read_run_data(io::FileSystem& files, const RunDataRequest& request);

}  // namespace underkeel::train
