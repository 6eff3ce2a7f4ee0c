#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "data/random_order.h"

namespace underkeel::data {
namespace {

using Order = std::vector<std::uint32_t>;

class TextLoader {
 public:
  TextLoader(io::FileSystem& files, const Tokenizer& tokenizer, const DatasetOptions& options)
      : files_(files), tokenizer_(tokenizer), options_(options), choice_(options.seed) {}

  Result<Datasets> run() {
    UK_TRY_VOID(check_options());
    UK_TRY(store, TokenStore::create(files_, options_.store_folder));
    store_ = std::make_shared<TokenStore>(std::move(store));
    UK_TRY(training, read_sets(options_.names));
    UK_TRY(evaluation, read_sets(options_.evaluation_names));
    UK_TRY_VOID(store_->finish());
    UK_TRY_VOID(split(training, evaluation));
    UK_TRY(train_source, make_source(std::move(training), loaded_.training_figures, "train"));
    loaded_.training = std::move(train_source);
    if (!evaluation.empty()) {
      UK_TRY(source, make_source(std::move(evaluation), loaded_.evaluation_figures, "evaluate"));
      loaded_.evaluation = std::move(source);
    }
    return std::move(loaded_);
  }

 private:
  Result<void> check_options() {
    if (options_.names.empty())
      return fail(ErrorCode::bad_config, "no data set is named", "dataset");
    if (options_.cutoff_tokens < 1 || options_.cutoff_tokens > std::numeric_limits<int>::max())
      return fail(ErrorCode::bad_config,
                  fmt::format("a cut-off of {} tokens", options_.cutoff_tokens), "cutoff_len");
    if (options_.documents_per_batch < 1)
      return fail(ErrorCode::bad_config, "a batch holds at least one record",
                  "preprocessing_batch_size");
    const double size = options_.validation_size;
    if (!(size >= 0) || size == 1 || (size > 1 && size != std::floor(size)))
      return fail(ErrorCode::bad_config, fmt::format("`val_size` is {}", size), "val_size",
                  "a share below 1, or a whole number of samples above 1");
    if (size > 0 && !options_.evaluation_names.empty())
      return fail(ErrorCode::bad_config, "both `eval_dataset` and `val_size` are given", "val_size",
                  "leave one of them out");
    return find_end_text();
  }

  Result<void> find_end_text() {
    const SpecialTokens& special = tokenizer_.special_tokens();
    if (special.end) {
      end_text_ = special.end->text;
    } else if (tokenizer_.id_of("<|endoftext|>")) {
      end_text_ = "<|endoftext|>";
      loaded_.notes.push_back("tokenizer_config.json names no eos_token; <|endoftext|> is used");
    } else {
      return fail(ErrorCode::bad_config, "the tokenizer has no end token",
                  "tokenizer_config.json: eos_token", "name a token of the vocabulary there");
    }
    if (special.add_begin && special.begin) begin_ = *special.begin;
    return {};
  }

  // Document numbers of the sets, in the order that the run uses.
  Result<Order> read_sets(const std::vector<std::string>& names) {
    Order order;
    if (names.empty()) return order;
    UK_TRY(entries, read_dataset_info(files_, options_.folder, names));
    for (const DatasetEntry& entry : entries) {
      UK_TRY(chosen, read_set(entry));
      order.insert(order.end(), chosen.begin(), chosen.end());
    }
    return order;
  }

  Result<Order> read_set(const DatasetEntry& entry) {
    DatasetFigures figures{.name = entry.name, .files = entry.files};
    const std::int64_t first = store_->document_count();
    const std::int64_t first_token = store_->token_count();
    RecordRules rules{.skip_broken = options_.skip_broken};
    if (!entry.sample_count && options_.max_samples) rules.most_records = *options_.max_samples;
    UK_TRY(report, read_records(files_, entry, rules,
                                [&](const Record& record) { return add_document(record.prompt); }));
    figures.records = std::move(report);
    figures.tokens = store_->token_count() - first_token;
    if (!entry.columns.response.empty() && !entry.files[0].ends_with(".txt"))
      note_unused_response(entry);
    loaded_.sets.push_back(std::move(figures));
    Order chosen(static_cast<std::size_t>(store_->document_count() - first));
    std::iota(chosen.begin(), chosen.end(), static_cast<std::uint32_t>(first));
    if (entry.sample_count) UK_TRY_VOID(choose(entry, first, chosen));
    if (options_.max_samples && static_cast<std::int64_t>(chosen.size()) > *options_.max_samples)
      chosen.resize(static_cast<std::size_t>(*options_.max_samples));
    return chosen;
  }

  void note_unused_response(const DatasetEntry& entry) {
    loaded_.notes.push_back(
        fmt::format("data set `{}`: stage pt trains on `{}` alone; `{}` is not used", entry.name,
                    entry.columns.prompt, entry.columns.response));
  }

  Result<void> choose(const DatasetEntry& entry, std::int64_t first, Order& chosen) {
    const auto count = static_cast<std::int64_t>(chosen.size());
    if (*entry.sample_count > count)
      return fail(ErrorCode::unsupported,
                  fmt::format("`num_samples` of data set `{}` is {}, it has {}: repeating records "
                              "is not supported yet",
                              entry.name, *entry.sample_count, count),
                  "dataset_info.json");
    chosen = choice_.permutation(count);
    chosen.resize(static_cast<std::size_t>(*entry.sample_count));
    for (std::uint32_t& document : chosen) document += static_cast<std::uint32_t>(first);
    return {};
  }

  Result<void> add_document(const std::string& text) {
    if (store_->document_count() >= std::numeric_limits<std::uint32_t>::max())
      return fail(ErrorCode::unsupported, "more than 2^32 - 1 records", "dataset",
                  "set max_samples");
    const bool with_begin = begin_ && !options_.packing;
    UK_TRY(ids, tokenizer_.encode((with_begin ? begin_->text : "") + text + end_text_));
    for (const std::int32_t id : ids)
      loaded_.largest_token_id = std::max(loaded_.largest_token_id, id);
    return store_->append(ids);
  }

  // As `datasets` splits: the held-out part is the front of a permutation, the rest is the training
  // set in that order.
  Result<void> split(Order& training, Order& evaluation) {
    if (options_.validation_size == 0) return {};
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

  // A block of this many tokens fits in at least one batch of records.
  std::int64_t mean_batch_tokens(const SplitFigures& figures) const {
    return figures.dropped_tokens / ceil_div(figures.documents, options_.documents_per_batch);
  }

  Result<std::shared_ptr<const SampleSource>> make_source(Order order, SplitFigures& figures,
                                                          std::string_view purpose) {
    figures.documents = static_cast<std::int64_t>(order.size());
    TextSampleOptions sample_options{.cutoff_tokens = options_.cutoff_tokens,
                                     .packing = options_.packing,
                                     .attention = options_.attention,
                                     .documents_per_batch = options_.documents_per_batch};
    if (begin_) sample_options.block_begin = begin_->id;
    auto samples = std::make_shared<TextSamples>(store_, std::move(order), sample_options);
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
    if (figures.dropped_tokens > 0)
      loaded_.notes.push_back(fmt::format(
          "{}: {} of {} tokens are in no sample ({})", purpose,
          format_count(figures.dropped_tokens),
          format_count(figures.dropped_tokens + figures.tokens),
          options_.packing ? fmt::format("the rest of each {} records that fills no block of {}",
                                         options_.documents_per_batch, options_.cutoff_tokens)
                           : fmt::format("what is beyond cutoff_len {}", options_.cutoff_tokens)));
    return samples;
  }

  io::FileSystem& files_;
  const Tokenizer& tokenizer_;
  const DatasetOptions& options_;
  LegacyNumpy choice_;
  std::shared_ptr<TokenStore> store_;
  std::string end_text_;
  std::optional<SpecialToken> begin_;
  Datasets loaded_;
};

}  // namespace

Result<Datasets> load_text_datasets(io::FileSystem& files, const Tokenizer& tokenizer,
                                    const DatasetOptions& options) {
  return TextLoader(files, tokenizer, options).run();
}

}  // namespace underkeel::data
