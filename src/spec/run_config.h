#pragma once
// A run as plain data, checked: the LLaMA-Factory YAML, its DeepSpeed JSON, the `underkeel:`
// mapping and the command line, merged, with the source of every value.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest_word.h"
#include "base/result.h"
#include "spec/hardware_spec.h"
#include "spec/lr_schedule.h"
#include "tensor/dtype.h"

namespace underkeel::spec {

enum class Stage { pt, sft };
enum class MixStrategy { concat, interleave_under, interleave_over, interleave_once };
enum class Recompute { automatic, none, cheap, block };
enum class Precision { f32, bf16, f16, pure_bf16 };
enum class Cadence { no, steps, epoch, best };  // best: save_strategy alone

struct OptimizerConfig {
  double learning_rate = 5e-5;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  double max_grad_norm = 1.0;  // 0: no clipping
  LearningRateSchedule schedule = LearningRateSchedule::linear;
  ScheduleOptions schedule_options;
  std::optional<DeepspeedSchedule> deepspeed_schedule;  // in place of `schedule`
  double warmup_ratio = 0.0;
  std::int64_t warmup_steps = 0;
};

/// Loss scaling of fp16, as DeepSpeed's `fp16` section has it.
struct LossScaleConfig {
  double fixed = 0;  // loss_scale; 0: dynamic
  int initial_power = 16;
  std::int64_t window = 1000;
  std::int64_t hysteresis = 2;
  bool refills_hysteresis = false;  // consecutive_hysteresis
  double least = 1;                 // min_loss_scale
};

/// Keys of DeepSpeed's zero_optimization as bounds. nullopt: absent, the planner decides; "auto"
/// becomes a bound once the model is known (resolve_auto()).
struct ZeroConfig {
  int stage = 0;
  bool auto_reduce_bucket = false;
  bool auto_prefetch_bucket = false;
  bool auto_param_persistence = false;
  std::optional<std::int64_t> reduce_bucket_elements;
  std::optional<std::int64_t> allgather_bucket_elements;
  std::optional<std::int64_t> prefetch_bucket_elements;
  std::optional<std::int64_t> param_persistence_elements;
  std::optional<std::int64_t> model_persistence_elements;
  std::optional<std::int64_t> max_live_elements;
  std::optional<std::int64_t> max_reuse_distance_elements;
  bool overlap_comm = true;
  bool gather_weights_on_save = true;
};

struct SaveConfig {
  Cadence strategy = Cadence::steps;
  std::int64_t steps = 500;
  double steps_fraction = 0;  // above 0: every ceil(fraction x all steps), instead of `steps`
  std::optional<std::int64_t> total_limit;
  bool asynchronous = true;
  bool weights_only = false;  // save_only_model
};

struct EvaluationConfig {
  Cadence strategy = Cadence::no;
  std::int64_t steps = 500;
  double steps_fraction = 0;      // as in SaveConfig
  bool at_end = false;            // once more after training (do_eval, or a strategy other than no)
  bool on_start = false;          // eval_on_start
  double delay = 0;               // eval_delay: steps or epochs before the first one
  std::int64_t batch_size = 8;    // sequences per rank
  double validation_size = 0;     // above 1: records; below 1: share of the training set; 0: none
  bool tracks_best = false;       // evaluations are compared: metric_for_best_model, ...
  bool larger_is_better = false;  // greater_is_better
  bool loads_best_at_end = false;                    // load_best_model_at_end
  std::optional<std::int64_t> early_stopping_steps;  // evaluations in a row that are no better
};

/// Tokens of a run's micro-batches, found before it starts.
struct LargestBatches {
  std::int64_t longest = 1;                     // sample
  std::map<std::int64_t, std::int64_t> tokens;  // of the largest met, by sequences; empty: unknown
  std::int64_t sample_count = 0;                // that were looked through
  std::int64_t token_count = 0;                 // of all of them
  std::int64_t epochs = 0;  // whose orders were looked at, or were too many for it

  /// Tokens of the largest micro-batch of `sequences`: as many of the longest where it was not looked for.
  std::int64_t of(std::int64_t sequences) const {
    const auto found = tokens.find(sequences);
    return found != tokens.end() ? found->second : sequences * longest;
  }
  /// Tokens of a micro-batch of `sequences` on average; 0 where there are no samples.
  std::int64_t mean_of(std::int64_t sequences) const {
    return sample_count == 0 ? 0 : (sequences * token_count + sample_count - 1) / sample_count;
  }
};

/// Of a run's samples, once its data have been read.
struct SampleSizes {
  LargestBatches training;
  LargestBatches evaluation;
  // Host memory: of the samples' lists in each process, and of the orders of this epoch and the next in each rank.
  std::int64_t list_bytes = 0;
  std::int64_t order_bytes = 0;

  /// Tokens of the longest sample, held-out ones too.
  std::int64_t longest() const { return std::max(training.longest, evaluation.longest); }
};

struct DataConfig {
  std::filesystem::path folder = "data";
  std::vector<std::string> datasets;
  std::vector<std::string> evaluation_datasets;
  std::int64_t cutoff_tokens = 2048;
  std::optional<std::int64_t> max_samples;
  MixStrategy mix_strategy = MixStrategy::concat;
  std::vector<double> interleave_probabilities;  // empty: the data sets in turn
  bool packing = false;  // pt: blocks of cutoff_tokens, the default there; sft: whole samples
  bool neat_packing = false;
  bool shared_attention = false;              // underkeel.packing_attention: shared
  std::int64_t packing_batch_records = 1000;  // preprocessing_batch_size: packs never cross it
  std::int64_t packing_shards = 1;            // preprocessing_num_workers: nor parts of the data
  std::string template_name;                  // empty: none was named
  std::optional<std::string> default_system;
  std::optional<bool> enable_thinking = true;  // nullopt: null, which removes no thoughts
  bool preserve_thinking = false;
  bool train_on_prompt = false;
  bool mask_history = false;
  bool skip_broken_records = false;
  bool overwrite_cache = false;
  std::filesystem::path token_cache;  // empty: a folder in the output
  bool shuffle = true;
  bool drop_last = false;
  std::uint64_t seed = 42;             // of the order: data_seed, else seed
  std::optional<SampleSizes> samples;  // until the data have been read cutoff_tokens bounds each

  /// Tokens that no sample goes beyond.
  std::int64_t longest_sample() const { return samples ? samples->longest() : cutoff_tokens; }
};

/// A value in force and where it came from, for the table that `train` and `plan` print.
struct Provenance {
  std::string key;
  std::string value;
  std::string source;  // "train.yaml", "ds_config.json", "command line", "default", "derived"
};

struct RunConfig {
  Stage stage = Stage::sft;
  std::filesystem::path model;
  std::filesystem::path output;
  bool train_from_scratch = false;
  bool overwrite_output = false;
  std::string
      resume_from;  // empty: the newest complete checkpoint in `output`, if any; "none": fresh
  bool resume_weights_only = false;
  Precision precision = Precision::f32;
  std::optional<DType>
      gradient_accumulation_type;  // DeepSpeed's grad_accum_dtype rule, when a JSON is given
  Recompute recompute = Recompute::block;
  OptimizerConfig optimizer;
  LossScaleConfig loss_scale;
  ZeroConfig zero;
  SaveConfig save;
  EvaluationConfig evaluation;
  DataConfig data;
  std::int64_t sequences_per_micro_batch = 8;  // per_device_train_batch_size
  std::int64_t accumulation_steps = 1;
  // DeepSpeed's train_batch_size when it is a number; see check_world_size().
  std::optional<std::int64_t> global_batch_sequences;
  bool has_deepspeed = false;  // a DeepSpeed config was given
  double epochs = 3.0;
  std::int64_t max_steps = -1;
  std::uint64_t seed = 42;
  Cadence logging = Cadence::steps;
  std::int64_t logging_steps = 500;
  double logging_fraction = 0;  // as SaveConfig::steps_fraction
  bool log_first_step = false;
  bool plot_loss = false;
  bool reports_to_tensorboard = false;
  std::filesystem::path logging_folder;  // of TensorBoard's files; empty: runs/ in `output`
  // The `underkeel:` mapping.
  std::string device = "auto";  // "cpu", "cuda", or "auto": a GPU where there is one
  int ranks = 1;                // ranks as threads, when not started by MPI
  int threads_per_rank = 0;     // 0: cores / ranks on the node
  /// On a GPU: at most so long to time the matrix library's algorithms; 0: its first proposals.
  double matmul_timing_s = 30;
  bool guards_buffers = false;  // underkeel.guard: the guard layout, to find wrong accesses
  double collective_time_limit_s = 1800;
  double save_time_limit_s = 1800;
  std::optional<std::int64_t> device_budget_bytes;
  std::optional<std::int64_t> host_budget_bytes;
  std::filesystem::path run_file;    // how it was read, so that it can be read again
  std::vector<std::string> changes;  // the overrides
  std::vector<Provenance> provenance;
  std::vector<std::string>
      notes;  // keys accepted without effect, knobs honoured differently; shown once
};

/// How many ranks a run has, and who said so: "mpirun", "--ranks", "underkeel.ranks".
struct WorldSize {
  std::int64_t ranks = 1;
  std::string source;
  bool yields = false;  // to a number that the run file or an override names
};

/// Reads a run file with `key=value` overrides (dotted keys reach into mappings:
/// underkeel.ranks=2, deepspeed.zero_optimization.stage=3, also when `deepspeed` names a file).
/// All problems of the file and its DeepSpeed JSON are reported in one error, one line each:
/// unknown keys with the nearest known one, wrong types, conflicts, what is not supported yet.
/// Relative paths are relative to the working folder. The model's folder is not looked at.
/// `world`, when it is known here, is held against DeepSpeed's train_batch_size. One that yields stands as
/// `underkeel.ranks` behind the overrides, and in RunConfig::changes, where nothing else names the ranks.
Result<RunConfig> read_run_file(const std::filesystem::path& file,
                                const std::vector<std::string>& overrides,
                                const std::optional<WorldSize>& world = std::nullopt);

/// DeepSpeed's batch equation, train_batch_size = micro-batch x accumulation x ranks. To be called
/// once the number of ranks is known, unless read_run_file() was told it.
/// Errors:  bad_config with the source of every number.
Result<void> check_world_size(const RunConfig& run, const WorldSize& world);

/// The element type of exported weights: f32 for `bf16: true` without a DeepSpeed config, where the
/// Trainer keeps f32 weights under autocast and saves them; else that of the run's mode.
DType export_type(const RunConfig& run);

/// Gives bounds to the keys of zero_optimization that say "auto", as transformers does: a reduce
/// bucket of width^2 elements; at stage 3 a prefetch bucket of 0.9 width^2 and a persistence
/// threshold of 10 width. The planner's own choice holds for keys that are left out.
void resolve_auto(RunConfig& run, std::int64_t width);

/// Holds what depends on the number of optimizer steps against it: steps that a DeepSpeed schedule
/// names, the parts of warmup_stable_decay.
/// Errors:  bad_config with both values and their sources.
Result<void> check_total_steps(const RunConfig& run, std::int64_t total_steps);

/// Steps of linear warmup: warmup_steps, else ceil(total_steps * warmup_ratio) as computed in
/// double.
std::int64_t warmup_steps_of(const OptimizerConfig& config, std::int64_t total_steps);

/// The values in force and their sources as aligned columns, one a line.
std::string provenance_table(const RunConfig& run);
/// All of them as one JSON object: {KEY: {"value": ..., "source": ...}}, numbers as numbers.
std::string values_json(const RunConfig& run);
/// The table for what is no default.
std::string chosen_values_table(const RunConfig& run);

}  // namespace underkeel::spec
