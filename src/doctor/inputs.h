#pragma once
// All that doctor was given, sorted: which config, which run, which model, which machine.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "doctor/document.h"
#include "doctor/finding.h"
#include "spec/hardware_spec.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"

namespace underkeel::doctor {

/// The packs of a run's training samples, or its blocks of text.
struct PackFigures {
  std::int64_t records = 0;           // in all of them
  std::int64_t tokens = 0;            // likewise
  std::vector<std::int64_t> samples;  // of the first packs: how many samples
  std::vector<std::int64_t> filled;   // and how many tokens
};

/// A sample that the cut-off shortened: where it stands, and of each of its answers the tokens kept and those it had.
struct CutSample {
  std::string place;  // file:line
  std::vector<std::pair<std::int64_t, std::int64_t>> answers;
};

/// What the cut-off does to the samples of one purpose, each by itself before it is packed.
struct CutSamples {
  std::int64_t samples = 0;
  std::int64_t longest_uncut = 0;        // tokens of the longest sample before it
  std::int64_t whole = 0;                // samples that lost nothing
  std::vector<std::string> whole_lines;  // file:line of the first ones
  std::vector<CutSample> first_cut;      // the first that are not whole
  std::int64_t untrained = 0;            // samples that the cut-off left no trained token
  std::vector<std::string> untrained_lines;
  std::int64_t unanswered = 0;  // samples that have none in the data
  std::vector<std::string> unanswered_lines;
  std::int64_t trained_tokens = 0;
  std::int64_t answers = 0, answers_cut = 0, answers_lost = 0;
  std::int64_t prompts_cut = 0, prompts_lost = 0;
  // Of the longest sample: tokens of its prompts and answers, and what is left of them.
  std::int64_t longest_prompt = 0, longest_prompt_kept = 0;
  std::int64_t longest_answer = 0, longest_answer_kept = 0;
};

/// What a run's data are once they were read and tokenised.
struct DataFigures {
  std::int64_t samples = 0;              // of training; packs or blocks, where the run packs
  std::optional<PackFigures> packs;      // of a run that packs
  spec::SampleSizes sizes;               // after the cut-off
  CutSamples training;                   // where `val_size` holds some out, those too
  bool holds_out = false;                // it does
  std::optional<CutSamples> evaluation;  // of data sets of their own
  // Of an epoch, on each rank; windows of accumulation.
  std::int64_t micro_batches = 0, windows = 0, last_window = 0;  // micro-batches in the last one
  std::int64_t untrained_windows = 0;                            // without a trained token
  std::int64_t filled_samples = 0, left_out_samples = 0;
};

/// What was asked on the command line.
struct Question {
  std::vector<std::filesystem::path> paths;
  std::filesystem::path
      hardware;  // of --hardware, which holds over a machine among `paths`; empty: none
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> device_budget_bytes;  // of one rank
  std::optional<std::int64_t> host_budget_bytes;    // of one node
  std::vector<std::string> changes;                 // key=value, of the run file
  bool resumes = false;                             // from a checkpoint, not fresh
  std::optional<DataFigures> data;  // whoever asks reads them: tokenising is not doctor's
  std::optional<Error> data_error;  // why they could not be read
  bool after_save = false;          // ask why memory runs out on the first step after a save
};

/// More ranks than any run has; a count beyond it in a file was mistyped.
constexpr std::int64_t most_ranks_of_file = 1 << 20;

/// How many ranks, and who says so.
struct Ranks {
  std::int64_t count = 1;
  std::int64_t on_node = 1;
  std::string source = "@ranks.default";  // a phrase or a file
};

struct Inputs {
  std::optional<Document> deepspeed;
  std::optional<Document>
      passed_over;  // the config that the run file names, where another was given
  std::optional<Document> run;
  std::optional<Document> exporting;
  std::optional<Document> accelerate;
  std::optional<Document> adapter;
  std::optional<Document> generation;
  std::optional<Document> tokenizer;
  std::optional<Document> data_shape;
  bool has_unread =
      false;  // a run file or DeepSpeed config that could not be parsed: nothing is compared with it
  bool zero_is_refused =
      false;  // DeepSpeed stops on a key of zero_optimization, so what it would hold is not known
  std::vector<Document> others;  // logs, advice, folders, weights, data sets
  std::optional<spec::ModelSpec> model;
  std::string model_file;  // config.json or the description
  std::filesystem::path model_folder;
  bool model_is_refused = false;
  bool model_is_elsewhere = false;  // the run file names one that is not on this machine
  std::optional<spec::HardwareSpec> machine;
  std::string machine_file;
  bool machine_is_refused = false;  // one was described, and could not be read
  Ranks ranks;
};

/// Opens every path, follows what a run file names (`deepspeed`, `model_name_or_path`), and settles the
/// number of ranks: --ranks, else underkeel.ranks or num_processes, else the machine's GPUs, else 1.
Inputs gather(const Question& question, std::vector<Finding>& findings);

}  // namespace underkeel::doctor
