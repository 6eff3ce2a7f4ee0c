#pragma once
// Data sets of a run made into samples: read, tokenised to disk, split, packed.
// Stage pt: the text of each record is its prompt and query (dataset_info.json names the columns),
// ended by the tokenizer's end token.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/records.h"
#include "data/sample.h"
#include "data/text_samples.h"
#include "data/tokenizer.h"
#include "io/file.h"

namespace underkeel::data {

struct DatasetOptions {
  std::filesystem::path folder;               // dataset_dir
  std::vector<std::string> names;             // dataset
  std::vector<std::string> evaluation_names;  // eval_dataset
  double validation_size = 0;                 // val_size: above 1 a count, below 1 a share
  std::optional<std::int64_t> max_samples;    // of each data set
  std::uint64_t seed = 42;                    // of the split and of num_samples
  std::int64_t cutoff_tokens = 2048;
  bool packing = true;
  PackingAttention attention = PackingAttention::block_diagonal;
  std::int64_t documents_per_batch = 1000;  // preprocessing_batch_size
  bool skip_broken = false;
  std::string store_folder;  // where tokens go; on a disk, not in memory
};

struct DatasetFigures {
  std::string name;
  std::vector<std::string> files;
  RecordReport records;
  std::int64_t tokens = 0;  // with end tokens
};

struct SplitFigures {
  std::int64_t documents = 0;
  std::int64_t samples = 0;
  std::int64_t tokens = 0;          // in samples
  std::int64_t dropped_tokens = 0;  // rests of packing, tails beyond the cut-off
};

struct Datasets {
  std::shared_ptr<const SampleSource> training;
  std::shared_ptr<const SampleSource> evaluation;  // null when the run has none
  std::vector<DatasetFigures> sets;
  std::int32_t largest_token_id = -1;  // must be below the model's vocabulary size
  SplitFigures training_figures;
  SplitFigures evaluation_figures;
  std::vector<std::string> notes;  // for the user, once
};

/// Reads and tokenises everything that the run needs. `files` must outlive the result.
/// Order: file order; num_samples; max_samples; sets one after the other; split; packing in batches.
/// Errors: those of read_dataset_info() and read_records(); bad_config when nothing is left to
/// train or evaluate on, with the figures; io when the disk of store_folder is full.
Result<Datasets> load_text_datasets(io::FileSystem& files, const Tokenizer& tokenizer,
                                    const DatasetOptions& options);

}  // namespace underkeel::data
