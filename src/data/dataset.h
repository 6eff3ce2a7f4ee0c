#pragma once
// Data sets of a run made into samples: read, tokenised to disk, mixed, split, packed.
// Stage pt: the text of each record is its prompt and query (dataset_info.json names the columns),
// ended by the tokenizer's end token. Stage sft: the record's conversation under a chat template.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/chat_encoder.h"
#include "data/chat_samples.h"
#include "data/mixing.h"
#include "data/records.h"
#include "data/sample.h"
#include "data/text_samples.h"
#include "data/tokenizer.h"
#include "io/file.h"

namespace underkeel::data {

struct DatasetOptions {
  RecordContent content = RecordContent::text;
  std::filesystem::path folder;               // dataset_dir
  std::vector<std::string> names;             // dataset
  std::vector<std::string> evaluation_names;  // eval_dataset
  MixStrategy mix_strategy = MixStrategy::concat;
  std::vector<double> mix_probabilities;
  double validation_size = 0;               // val_size: above 1 a count, below 1 a share
  std::optional<std::int64_t> max_samples;  // of each data set
  std::uint64_t seed = 42;                  // of the split, of num_samples and of mixing
  std::int64_t cutoff_tokens = 2048;
  bool packing = true;
  PackingAttention attention = PackingAttention::block_diagonal;
  PackingBatches batches;
  std::string text_end;  // stage pt: ends each text; empty: the tokenizer's end token
  // Stage sft. The tokenizer already has the template's changes (template_tokens.h).
  ChatStyle style;
  bool train_on_prompt = false;
  bool mask_history = false;
  bool neat_packing = false;  // asks LLaMA-Factory for what block_diagonal is anyway
  bool skip_broken = false;
  std::string cache_folder;   // where tokens go; on a disk, not in memory
  bool make_anew = false;     // also where the tokens are in the cache
  std::string tokenizer_key;  // changes whenever the tokenizer does
  int thread_count = 1;
  std::optional<std::int64_t> memory_bytes;  // what reading and tokenising may hold at once
};

/// A record that the cut-off shortened.
struct CutRecord {
  std::string place;  // file:line
  std::vector<AnswerLengths> answers;
};

struct DatasetFigures {
  std::string name;
  bool is_evaluation = false;  // of eval_dataset
  std::vector<std::string> files;
  RecordReport records;
  CutFigures cut;                       // stage pt: tokens alone, with end tokens
  std::vector<std::string> untrained;   // file:line of the first samples that the cut-off left no
                                        // trained token
  std::vector<std::string> unanswered;  // of the first ones that have none in the data
  std::vector<std::string> whole;       // of the first ones that lost nothing
  std::vector<CutRecord> shortened;     // the first ones that are not whole
  bool was_cached = false;
};

struct SplitFigures {
  std::int64_t documents = 0;  // records that are usable
  std::int64_t samples = 0;
  std::int64_t tokens = 0;           // in samples
  std::int64_t dropped_tokens = 0;   // stage pt: rests of packing, tails beyond the cut-off
  std::int64_t untrained = 0;        // samples without a trained token
  std::vector<std::int64_t> packs;   // of the first packs: how many records
  std::vector<std::int64_t> filled;  // and how many tokens
};

struct Datasets {
  std::shared_ptr<const SampleSource> training;
  std::shared_ptr<const SampleSource> evaluation;  // null when the run has none
  std::vector<DatasetFigures> sets;
  /// The same for the same training samples in the same order, whatever they were read from.
  std::string training_identity;
  std::string evaluation_identity;     // empty without an evaluation
  std::int32_t largest_token_id = -1;  // must be below the model's vocabulary size
  SplitFigures training_figures;
  SplitFigures evaluation_figures;
  std::vector<std::int64_t> untrained_samples;  // of training, by index
  std::vector<std::string> notes;               // for the user, once
};

/// Host memory that they keep as long as they live.
std::int64_t resident_bytes(const Datasets& datasets);

/// Reads and tokenises everything that the run needs. `files` and `tokenizer` must outlive the call.
/// Order: file order; num_samples; max_samples; mixing; split; packing in batches.
/// Errors: those of read_dataset_info() and read_records(); bad_config when nothing is left to
/// train or evaluate on, with the figures; io when the disk of cache_folder is full.
Result<Datasets> load_datasets(io::FileSystem& files, const Tokenizer& tokenizer,
                               const DatasetOptions& options);

}  // namespace underkeel::data
