#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "data/random_order.h"
#include "data/tokenise_set.h"
#include "io/checksum.h"

namespace underkeel::data {
namespace {

using Order = std::vector<std::uint32_t>;

constexpr std::size_t packs_kept = 8;

class Loader {
 public:
  Loader(io::FileSystem& files, const Tokenizer& tokenizer, const DatasetOptions& options)
      : files_(files), tokenizer_(tokenizer), options_(options), choice_(options.seed) {}

  Result<Datasets> run() {
    UK_TRY_VOID(check_options());
    UK_TRY(training, read_sets(options_.names));
    const std::string training_records = records_identity();
    const std::size_t training_sets = loaded_.sets.size();
    UK_TRY(evaluation, read_sets(options_.evaluation_names));
    for (std::size_t set = training_sets; set < loaded_.sets.size(); ++set)
      loaded_.sets[set].is_evaluation = true;
    UK_TRY_VOID(split(training, evaluation));
    UK_TRY_VOID(make_source(training, "train", loaded_.training, loaded_.training_figures));
    loaded_.training_identity = identity_of(training_records, *loaded_.training);
    if (!evaluation.empty())
      UK_TRY_VOID(
          make_source(evaluation, "evaluate", loaded_.evaluation, loaded_.evaluation_figures));
    if (loaded_.evaluation)
      loaded_.evaluation_identity = identity_of(records_identity(), *loaded_.evaluation);
    note_attention();
    return std::move(loaded_);
  }

 private:
  bool is_text() const { return options_.content == RecordContent::text; }

  Result<void> check_options() {
    if (options_.names.empty())
      return fail(ErrorCode::bad_config, "no data set is named", "dataset");
    if (options_.cutoff_tokens < 1 || options_.cutoff_tokens > std::numeric_limits<int>::max())
      return fail(ErrorCode::bad_config,
                  fmt::format("a cut-off of {} tokens", options_.cutoff_tokens), "cutoff_len");
    if (options_.batches.batch_records < 1)
      return fail(ErrorCode::bad_config, "a batch holds at least one record",
                  "preprocessing_batch_size");
    const double size = options_.validation_size;
    if (!(size >= 0) || size == 1 || (size > 1 && size != std::floor(size)))
      return fail(ErrorCode::bad_config, fmt::format("`val_size` is {}", size), "val_size",
                  "a share below 1, or a whole number of samples above 1");
    if (size > 0 && !options_.evaluation_names.empty())
      return fail(ErrorCode::bad_config, "both `eval_dataset` and `val_size` are given", "val_size",
                  "leave one of them out");
    if (is_text()) {
      UK_TRY(end, text_end_of(tokenizer_, options_));
      if (options_.text_end.empty() && !tokenizer_.special_tokens().end)
        loaded_.notes.push_back(
            fmt::format("tokenizer_config.json names no eos_token; {} is used", end));
    } else if (options_.train_on_prompt && options_.style.style->efficient_eos) {
      return fail(ErrorCode::bad_config,
                  fmt::format("template `{}` puts one end token behind all turns, so that prompts "
                              "cannot be trained",
                              options_.style.style->name),
                  "train_on_prompt", "leave it out, or take another template");
    }
    return {};
  }

  // Of the records that the store holds now, without how they are cut.
  std::string records_identity() const {
    return fmt::format("{:016x} {}", store_->content_checksum(), store_->end_token());
  }
  static std::string identity_of(const std::string& records, const SampleSource& source) {
    const std::string parts = fmt::format("{} {:016x}", records, source.cut_checksum());
    io::Checksum identity;
    identity.update(std::as_bytes(std::span(parts)));
    return io::checksum_text(identity.value());
  }

  // Record numbers of the sets, in the order that the run uses.
  Result<Order> read_sets(const std::vector<std::string>& names) {
    if (names.empty()) return Order();
    UK_TRY(entries, read_dataset_info(files_, options_.folder, names));
    std::vector<Order> orders;
    for (const DatasetEntry& entry : entries) {
      UK_TRY(order, read_set(entry));
      orders.push_back(std::move(order));
    }
    return mix(orders, options_.mix_strategy, options_.mix_probabilities, options_.seed);
  }

  Result<Order> read_set(const DatasetEntry& entry) {
    const std::int64_t first = store_->record_count();
    UK_TRY(set, tokenise_set(files_, tokenizer_, entry, options_));
    loaded_.largest_token_id = std::max(loaded_.largest_token_id, set.tokens.largest_token());
    UK_TRY_VOID(store_->add(std::move(set.tokens)));
    if (is_text() && entry.format == RecordFormat::alpaca && !entry.columns.response.empty() &&
        !entry.files[0].ends_with(".txt"))
      loaded_.notes.push_back(
          fmt::format("data set `{}`: stage pt trains on `{}` alone; `{}` is not used", entry.name,
                      entry.columns.prompt, entry.columns.response));
    loaded_.sets.push_back(std::move(set.figures));
    Order chosen(static_cast<std::size_t>(store_->record_count() - first));
    std::iota(chosen.begin(), chosen.end(), static_cast<std::uint32_t>(first));
    if (entry.sample_count) {
      UK_TRY_VOID(check_choice(entry));
      choose(*entry.sample_count, kept_choices(entry), first, chosen);
    }
    if (options_.max_samples && static_cast<std::int64_t>(chosen.size()) > *options_.max_samples)
      chosen.resize(static_cast<std::size_t>(*options_.max_samples));
    return chosen;
  }

  /// Those of num_samples that max_samples leaves.
  std::int64_t kept_choices(const DatasetEntry& entry) const {
    return std::min(*entry.sample_count, options_.max_samples.value_or(*entry.sample_count));
  }

  // Chosen records are numbers in memory, 4 bytes each: those drawn, those of the set, of the mix and of the samples,
  // and the orders of two epochs.
  Result<void> check_choice(const DatasetEntry& entry) const {
    constexpr std::int64_t bytes_of_choice = 24;
    constexpr std::int64_t most_draws = std::int64_t{1} << 32;
    const std::string where = fmt::format("`{}` in dataset_info.json", entry.name);
    if (*entry.sample_count > most_draws)
      return fail(ErrorCode::bad_config,
                  fmt::format("`num_samples` {} is more than can be drawn",
                              format_count(*entry.sample_count)),
                  where, fmt::format("num_samples of at most {}", most_draws));
    const std::int64_t kept = kept_choices(entry);
    if (!options_.memory_bytes || kept * bytes_of_choice <= *options_.memory_bytes) return {};
    return fail(
        ErrorCode::bad_config,
        fmt::format("the lists of `num_samples` {} records take {}, {} bytes each, and {} of host "
                    "memory are left for them (the node's budget less what bare processes take)",
                    format_count(kept), format_bytes(kept * bytes_of_choice), bytes_of_choice,
                    format_bytes(*options_.memory_bytes)),
        where,
        fmt::format("num_samples or max_samples of at most {}, or more host memory "
                    "(underkeel.memory.host)",
                    *options_.memory_bytes / bytes_of_choice));
  }

  // The front of a permutation; where that is not enough, more with replacement. Of all of them the first `kept`.
  void choose(std::int64_t wanted, std::int64_t kept, std::int64_t first, Order& chosen) {
    const auto count = static_cast<std::int64_t>(chosen.size());
    chosen = choice_.permutation(count);
    chosen.resize(static_cast<std::size_t>(std::min({wanted, kept, count})));
    if (count > 0 && wanted > count) {
      const Order more =
          choice_.choice(count, wanted - count, std::max<std::int64_t>(kept - count, 0));
      chosen.insert(chosen.end(), more.begin(), more.end());
    }
    for (std::uint32_t& record : chosen) record += static_cast<std::uint32_t>(first);
  }

  // As `datasets` splits: the held-out part is the front of a permutation, the rest is the training
  // set in that order.
  Result<void> split(Order& training, Order& evaluation) {
    if (options_.validation_size <= 1e-6) return {};
    const auto count = static_cast<std::int64_t>(training.size());
    const auto held_out = static_cast<std::int64_t>(
        options_.validation_size > 1
            ? options_.validation_size
            : std::ceil(options_.validation_size * static_cast<double>(count)));
    if (held_out >= count)
      return fail(ErrorCode::bad_config,
                  fmt::format("`val_size` {} would hold out {} of {} records and leave none",
                              options_.validation_size, held_out, count),
                  "val_size");
    const Order shuffled = numpy_permutation(count, options_.seed);
    const auto at = [&](std::int64_t place) {
      return training[shuffled[static_cast<std::size_t>(place)]];
    };
    Order kept;
    kept.reserve(static_cast<std::size_t>(count - held_out));
    for (std::int64_t place = 0; place < count; ++place)
      (place < held_out ? evaluation : kept).push_back(at(place));
    training = std::move(kept);
    return {};
  }

  Result<void> make_source(const Order& order, std::string_view purpose,
                           std::shared_ptr<const SampleSource>& source, SplitFigures& figures) {
    return is_text() ? make_text_source(order, purpose, source, figures)
                     : make_chat_source(order, purpose, source, figures);
  }

  // A block of this many tokens fits in at least one batch of records.
  std::int64_t mean_batch_tokens(const SplitFigures& figures) const {
    return figures.dropped_tokens / ceil_div(figures.documents, options_.batches.batch_records);
  }

  Result<void> make_text_source(const Order& order, std::string_view purpose,
                                std::shared_ptr<const SampleSource>& source,
                                SplitFigures& figures) {
    for (const std::uint32_t record : order)
      if (!store_->is_dropped(record)) ++figures.documents;
    TextSampleOptions sample_options{.cutoff_tokens = options_.cutoff_tokens,
                                     .packing = options_.packing,
                                     .attention = options_.attention,
                                     .batches = options_.batches};
    const SpecialTokens& special = tokenizer_.special_tokens();
    if (special.add_begin && special.begin) sample_options.block_begin = special.begin->id;
    auto samples = std::make_shared<TextSamples>(store_, order, sample_options);
    figures.samples = samples->count();
    figures.tokens = samples->used_tokens();
    figures.dropped_tokens = samples->dropped_tokens();
    if (figures.samples == 0)
      return fail(
          ErrorCode::bad_config,
          fmt::format("nothing to {} on: {} records with {} tokens make no block of {}", purpose,
                      figures.documents, figures.dropped_tokens, options_.cutoff_tokens),
          "cutoff_len",
          figures.dropped_tokens == 0
              ? "look at the data set's files"
              : fmt::format("cutoff_len: {}, or packing: false", mean_batch_tokens(figures)));
    // A text of one token, its end, has nothing to predict.
    if (samples->largest_tokens() <= 1)
      return fail(ErrorCode::bad_config,
                  fmt::format("nothing to {} on: none of {} texts has a token to predict", purpose,
                              figures.samples),
                  "dataset",
                  "the texts are empty, or cutoff_len is 1: look at the data set's files");
    if (figures.dropped_tokens > 0)
      loaded_.notes.push_back(fmt::format(
          "{}: {} of {} tokens are in no sample ({})", purpose,
          format_count(figures.dropped_tokens),
          format_count(figures.dropped_tokens + figures.tokens),
          options_.packing ? fmt::format("the rest of each {} records that fills no block of {}",
                                         options_.batches.batch_records, options_.cutoff_tokens)
                           : fmt::format("what is beyond cutoff_len {}", options_.cutoff_tokens)));
    source = std::move(samples);
    return {};
  }

  Result<void> make_chat_source(const Order& order, std::string_view purpose,
                                std::shared_ptr<const SampleSource>& source,
                                SplitFigures& figures) {
    auto samples =
        std::make_shared<ChatSamples>(store_, order,
                                      ChatSampleOptions{.packing = options_.packing,
                                                        .capacity_tokens = options_.cutoff_tokens,
                                                        .attention = options_.attention,
                                                        .batches = options_.batches});
    figures.documents = samples->record_count();
    figures.samples = samples->count();
    figures.tokens = samples->used_tokens();
    for (std::int64_t index = 0; index < samples->count(); ++index) {
      if (options_.packing && figures.packs.size() < packs_kept) {
        figures.packs.push_back(samples->records_in(index));
        figures.filled.push_back(samples->tokens_in(index));
      }
      if (!samples->is_untrained(index)) continue;
      ++figures.untrained;
      if (purpose == "train") loaded_.untrained_samples.push_back(index);
    }
    if (figures.samples == 0)
      return fail(ErrorCode::bad_config,
                  fmt::format("nothing to {} on: none of {} records is usable{}", purpose,
                              order.size(), first_problems(purpose)),
                  "dataset",
                  order.empty() ? "the files of the data sets are empty"
                                : "dataset_info.json says how records are read: look at "
                                  "formatting, columns and tags");
    if (figures.untrained == figures.samples) return nothing_is_trained(purpose, figures);
    source = std::move(samples);
    return {};
  }

  // Held-out samples are of the training's sets, unless there are others.
  bool is_for(std::string_view purpose, const DatasetFigures& set) const {
    return set.is_evaluation == (purpose == "evaluate" && !options_.evaluation_names.empty());
  }

  // Why records were dropped: the first reason of each data set.
  std::string first_problems(std::string_view purpose) const {
    std::string text;
    for (const DatasetFigures& set : loaded_.sets)
      if (is_for(purpose, set) && !set.records.problems.empty()) {
        const RecordProblem& first = set.records.problems.front();
        text += fmt::format("\n  {}:{}: {}, and {} more", first.file, first.line, first.reason,
                            set.records.dropped + set.records.broken - 1);
      }
    return text;
  }

  tl::unexpected<Error> nothing_is_trained(std::string_view purpose,
                                           const SplitFigures& figures) const {
    std::int64_t longest = 0, untrained = 0, unanswered = 0;
    for (const DatasetFigures& set : loaded_.sets) {
      if (!is_for(purpose, set)) continue;
      longest = std::max(longest, set.cut.longest_uncut);
      untrained += set.cut.untrained;
      unanswered += set.cut.unanswered;
    }
    const bool is_cut = longest > options_.cutoff_tokens && unanswered < untrained;
    return fail(
        ErrorCode::bad_config,
        fmt::format("nothing to {} on: none of {} samples keeps a trained token at "
                    "cutoff_len {}",
                    purpose, figures.samples, options_.cutoff_tokens + (options_.packing ? 1 : 0)),
        "cutoff_len",
        is_cut ? fmt::format("cutoff_len: {} keeps every sample whole",
                             longest + (options_.packing ? 1 : 0))
               : "all answers are empty, and the template ends them with nothing");
  }

  // Where LLaMA-Factory lets samples see each other and we do not.
  void note_attention() {
    if (!options_.packing) return;
    if (options_.attention == PackingAttention::shared) {
      loaded_.notes.push_back(fmt::format(
          "packing: {}s of a pack see those before them (underkeel.packing_attention: shared)",
          is_text() ? "text" : "sample"));
      return;
    }
    std::string note = fmt::format("packing: attention: separate per {}; positions restart",
                                   is_text() ? "text" : "sample");
    if (!options_.neat_packing)
      note += fmt::format(
          "; LLaMA-Factory's {} would let them see each other, as underkeel.packing_attention: "
          "shared does",
          is_text() ? "blocks" : "plain packing");
    if (options_.train_on_prompt)
      note += "; no sample predicts the first token of the next, as there with train_on_prompt";
    loaded_.notes.push_back(std::move(note));
  }

  io::FileSystem& files_;
  const Tokenizer& tokenizer_;
  const DatasetOptions& options_;
  LegacyNumpy choice_;
  std::shared_ptr<TokenStore> store_ = std::make_shared<TokenStore>();
  Datasets loaded_;
};

}  // namespace

std::int64_t resident_bytes(const Datasets& datasets) {
  std::int64_t bytes = datasets.training->resident_bytes();
  if (datasets.evaluation) bytes += datasets.evaluation->resident_bytes();
  return bytes +
         static_cast<std::int64_t>(datasets.untrained_samples.capacity() * sizeof(std::int64_t));
}

Result<Datasets> load_datasets(io::FileSystem& files, const Tokenizer& tokenizer,
                               const DatasetOptions& options) {
  return Loader(files, tokenizer, options).run();
}

}  // namespace underkeel::data
