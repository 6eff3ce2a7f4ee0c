#include "train/run_data.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"
#include "data/chat_encoder.h"
#include "data/data_report.h"
#include "data/largest_batches.h"
#include "data/sampler.h"
#include "data/template_tokens.h"
#include "data/token_cache.h"
#include "planner/settings.h"
#include "train/known_template.h"
#include "train/side_files.h"

namespace underkeel::train {

namespace {

// Whatever a tokenizer may be read from.
constexpr std::array tokenizer_files = {
    "tokenizer.json",    "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "tokenizer.model",       "vocab.json",
    "merges.txt"};

Result<std::string> tokenizer_key(io::FileSystem& files, const std::filesystem::path& folder) {
  std::string key;
  for (const char* name : tokenizer_files) {
    const std::string path = (folder / name).string();
    if (!files.exists(path)) continue;
    UK_TRY(sum, data::content_checksum(files, path));
    key += fmt::format("{} {} ", name, sum);
  }
  return key;
}

/// Null: stage pt without a template.
Result<const data::Template*> choose_template(io::FileSystem& files, const RunDataRequest& request,
                                              std::vector<std::string>& notes) {
  const spec::DataConfig& config = request.run.data;
  if (!config.template_name.empty()) return data::find_template(config.template_name);
  if (request.run.stage == spec::Stage::pt) return nullptr;
  UK_TRY(jinja, own_chat_template(files, request.model_folder));
  if (!jinja.empty()) {
    UK_TRY(writer, template_that_writes(jinja, request.model_folder));
    if (writer != nullptr) {
      notes.push_back(fmt::format(
          "no template is named: `{}`, which the tokenizer's chat template is the text of",
          writer->name));
      return writer;
    }
    const std::string likely = likely_template(jinja);
    return fail(ErrorCode::unsupported,
                "no template is named, and the tokenizer's chat template is none that a known "
                "template writes; LLaMA-Factory would derive one from it, which is not supported",
                "template",
                likely.empty() ? "name the template that the model was made for"
                               : fmt::format("template: {} looks like the model's own", likely));
  }
  notes.push_back(
      "no template is named and the tokenizer has none: `empty` is used, which sets no marks and "
      "ends answers with nothing");
  return data::find_template("empty");
}

Result<data::Tokenizer> make_tokenizer(const RunDataRequest& request, const data::Template* style) {
  const std::string folder = request.model_folder.string();
  UK_TRY(tokenizer, data::Tokenizer::load(request.model_folder));
  if (tokenizer.vocabulary_size() > request.model.vocabulary)
    return fail(ErrorCode::bad_file,
                fmt::format("the tokenizer has ids up to {}, the model's vocabulary is {}",
                            tokenizer.vocabulary_size() - 1, request.model.vocabulary),
                folder, "use the tokenizer that belongs to this model");
  if (style == nullptr) return tokenizer;
  UK_TRY(changed, tokenizer.with(data::template_changes(tokenizer, *style)));
  if (changed.vocabulary_size() <= request.model.vocabulary) return changed;
  std::vector<std::string> missing;
  for (const std::string_view word : style->stop_words)
    if (!tokenizer.id_of(word)) missing.push_back(fmt::format("`{}`", word));
  if (missing.empty()) missing.emplace_back("`<|endoftext|>`");
  return fail(ErrorCode::unsupported,
              fmt::format("template `{}` needs {}, which the tokenizer does not have; new tokens "
                          "would be beyond the model's vocabulary of {}",
                          style->name, fmt::join(missing, " and "), request.model.vocabulary),
              folder, "take a template whose tokens the model knows, such as default");
}

data::MixStrategy mix_strategy_of(spec::MixStrategy strategy) {
  switch (strategy) {
    case spec::MixStrategy::concat:
      return data::MixStrategy::concat;
    case spec::MixStrategy::interleave_under:
      return data::MixStrategy::interleave_under;
    case spec::MixStrategy::interleave_over:
      return data::MixStrategy::interleave_over;
    case spec::MixStrategy::interleave_once:
      return data::MixStrategy::interleave_once;
  }
  return data::MixStrategy::concat;
}

data::DatasetOptions options_of(const RunDataRequest& request, const data::Template* style) {
  const spec::DataConfig& config = request.run.data;
  data::DatasetOptions options;
  options.content = request.run.stage == spec::Stage::pt ? data::RecordContent::text
                                                         : data::RecordContent::conversation;
  options.folder = config.folder;
  options.names = config.datasets;
  options.evaluation_names = config.evaluation_datasets;
  options.mix_strategy = mix_strategy_of(config.mix_strategy);
  options.mix_probabilities = config.interleave_probabilities;
  options.validation_size = request.run.evaluation.validation_size;
  options.max_samples = config.max_samples;
  options.seed = request.run.seed;
  options.cutoff_tokens = config.cutoff_tokens;
  options.packing = config.packing;
  options.neat_packing = config.neat_packing;
  options.attention = config.shared_attention ? data::PackingAttention::shared
                                              : data::PackingAttention::block_diagonal;
  options.batches = {.batch_records = config.packing_batch_records,
                     .shards = config.packing_shards};
  if (request.run.stage == spec::Stage::pt && config.template_name == "llama3")
    options.text_end = "<|end_of_text|>";
  if (style != nullptr) options.style = data::ChatStyle::of(*style);
  if (config.default_system) options.style.system = *config.default_system;
  options.style.enable_thinking = config.enable_thinking;
  options.style.preserve_thinking = config.preserve_thinking;
  options.train_on_prompt = config.train_on_prompt;
  options.mask_history = config.mask_history;
  options.skip_broken = config.skip_broken_records;
  options.cache_folder = config.token_cache.empty()
                             ? io::join_path(request.run.output.string(), "token_cache")
                             : config.token_cache.string();
  options.make_anew = config.overwrite_cache;
  options.thread_count = request.thread_count;
  options.memory_bytes = request.memory_bytes;
  return options;
}

// Beyond any run: for figures that a float may hold.
constexpr double most_epochs = 1e15;

// Epochs that a run meets which starts anew, however its global batch is split between ranks and micro-steps.
std::int64_t epochs_of(const spec::RunConfig& run, std::int64_t sample_count, int world_size) {
  const auto whole = [](double epochs) {
    return static_cast<std::int64_t>(std::min(std::ceil(epochs), most_epochs));
  };
  if (run.max_steps <= 0) return whole(run.epochs);
  const std::int64_t of_step = run.sequences_per_micro_batch * run.accumulation_steps * world_size;
  // However a step is split, an epoch has at least as many; smaller micro-batches leave fewer samples out.
  const std::int64_t steps =
      run.data.drop_last ? sample_count / of_step : ceil_div(sample_count, of_step);
  return ceil_div(run.max_steps, std::max<std::int64_t>(1, steps));
}

/// For micro-batches of every size that divides `sequences`: those that the same global batch can be split into.
spec::LargestBatches largest_batches_of(const data::SampleSource& source,
                                        const data::SamplerConfig& order, std::int64_t epochs,
                                        std::int64_t sequences) {
  const std::vector<std::int64_t> sizes = planner::divisors_of(sequences);
  const data::BatchTokens found = data::largest_batches(source, order, epochs, sizes);
  // A batch of samples without any token still has a place.
  spec::LargestBatches batches{.longest = std::max<std::int64_t>(source.largest_tokens(), 1),
                               .tokens = {},
                               .sample_count = source.count(),
                               .token_count = found.all,
                               .epochs = epochs};
  for (std::size_t i = 0; i < found.largest.size(); ++i)
    batches.tokens[sizes[i]] = std::max<std::int64_t>(found.largest[i], 1);
  return batches;
}

/// Empty where the file is not there.
Result<std::string> side_file(io::FileSystem& files, const std::filesystem::path& path) {
  if (!files.exists(path.string())) return std::string();
  return files.read_text(path.string(), largest_side_file_bytes);
}

}  // namespace

Result<void> check_token_folder(io::FileSystem& files, const std::string& folder) {
  if (folder.empty()) return {};
  for (const char* name : {"dataset_dict.json", "state.json"})
    if (files.exists(io::join_path(folder, name)))
      return fail(ErrorCode::unsupported,
                  fmt::format("the folder holds a data set that LLaMA-Factory has tokenised ({}); "
                              "its Arrow files are not read",
                              name),
                  folder,
                  "name another folder: the tokens are made there from `dataset`, and found again");
  return {};
}

std::optional<std::int64_t> memory_for_data(const planner::Room& room) {
  if (!room.node) return std::nullopt;
  const std::int64_t left =
      room.node->size_bytes -
      planner::process_count(room.placement) *
          planner::process_overhead_bytes(room.placement, 0, !room.device_is_host);
  return std::max<std::int64_t>(left, 0);
}

data::SamplerConfig sampler_config(const spec::RunConfig& run, std::int64_t sample_count,
                                   int world_size, int rank) {
  return {.sample_count = sample_count,
          .sequences_per_micro_batch = run.sequences_per_micro_batch,
          .accumulation_steps = run.accumulation_steps,
          .world_size = world_size,
          .rank = rank,
          .seed = run.data.seed,
          .shuffle = run.data.shuffle,
          .drop_last = run.data.drop_last};
}

void take_sizes(const data::Datasets& datasets, const MetBy& met_by, spec::RunConfig& run) {
  const data::SampleSource& training = *datasets.training;
  spec::SampleSizes sizes{.list_bytes = data::resident_bytes(datasets),
                          .order_bytes = data::Sampler::order_bytes(training.count())};
  sizes.training = largest_batches_of(
      training, sampler_config(run, training.count(), met_by.world_size, 0),
      std::max(met_by.epochs, epochs_of(run, training.count(), met_by.world_size)),
      run.sequences_per_micro_batch * run.accumulation_steps * met_by.world_size);
  if (const data::SampleSource* held_out = datasets.evaluation.get();
      held_out != nullptr && held_out->count() > 0)
    sizes.evaluation =
        largest_batches_of(*held_out, {.sample_count = held_out->count(), .shuffle = false}, 1,
                           run.evaluation.batch_size);
  run.data.samples = std::move(sizes);
}

Result<RunData> read_run_data(io::FileSystem& files, const RunDataRequest& request) {
  RunData made;
  UK_TRY(style, choose_template(files, request, made.notes));
  UK_TRY(tokenizer, make_tokenizer(request, style));
  data::DatasetOptions options = options_of(request, style);
  UK_TRY(key, tokenizer_key(files, request.model_folder));
  options.tokenizer_key = std::move(key);
  UK_TRY_VOID(check_token_folder(files, options.cache_folder));
  UK_TRY(datasets, data::load_datasets(files, tokenizer, options));
  made.datasets = std::move(datasets);
  const data::SamplerConfig order =
      sampler_config(request.run, made.datasets.training->count(), request.world_size, 0);
  made.report = data::data_report({.datasets = made.datasets, .options = options, .order = order});
  made.notes.insert(made.notes.end(), made.datasets.notes.begin(), made.datasets.notes.end());
  if (request.run.stage == spec::Stage::pt) return made;
  made.template_files = template_files_of(tokenizer, options.style);
  UK_TRY(generation, side_file(files, request.model_folder / "generation_config.json"));
  UK_TRY(config, side_file(files, request.model_folder / "config.json"));
  if (auto note = end_token_note(made.template_files, end_tokens_of(generation, config)))
    made.notes.push_back(std::move(*note));
  return made;
}

}  // namespace underkeel::train
