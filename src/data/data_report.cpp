#include "data/data_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"

namespace underkeel::data {
namespace {

bool is_chat(const DatasetOptions& options) {
  return options.content == RecordContent::conversation;
}

// The value of the key `cutoff_len` that gives this many tokens.
std::int64_t written_cutoff(const DatasetOptions& options, std::int64_t tokens) {
  return is_chat(options) && options.packing ? tokens + 1 : tokens;
}

/// "1 sample", "12,000 samples"; "1 micro-batch", "4 micro-batches".
std::string counted(std::int64_t count, std::string_view what) {
  const std::string_view ending = count == 1 ? "" : what.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", format_count(count), what, ending);
}

/// "1 is", "4 are".
std::string are(std::int64_t count) {
  return fmt::format("{} {}", format_count(count), count == 1 ? "is" : "are");
}

std::string places_text(const std::vector<std::string>& first, std::int64_t count) {
  return fmt::format("{}{}", fmt::join(first, ", "),
                     count > static_cast<std::int64_t>(first.size()) ? ", ..." : "");
}

std::string cut_text(const DatasetFigures& set, const DatasetOptions& options) {
  const CutFigures& cut = set.cut;
  std::string text =
      fmt::format("  {} at cutoff_len {}, {} trained; longest sample {} before the cut",
                  counted(cut.tokens, "token"), written_cutoff(options, options.cutoff_tokens),
                  format_count(cut.trained), format_count(cut.longest_uncut));
  const bool is_cut = cut.whole < set.records.usable;
  text += is_cut ? fmt::format("; cutoff_len: {} keeps all\n",
                               written_cutoff(options, cut.longest_uncut))
                 : std::string("; nothing is cut\n");
  if (is_cut)
    text += fmt::format(
        "  {} of {} {} whole; of {} {} whole, {}, {} lost; of {} {} cut and {} what announces the "
        "answer, {} lost\n",
        cut.whole, counted(set.records.usable, "sample"), cut.whole == 1 ? "is" : "are",
        counted(cut.answers, "answer"), are(cut.answers - cut.answers_cut - cut.answers_lost),
        cut.answers_cut == 1 ? "1 loses its end"
                             : fmt::format("{} lose their end", cut.answers_cut),
        are(cut.answers_lost), counted(cut.answers, "prompt"), are(cut.prompts_cut),
        cut.prompts_cut == 1 ? "loses" : "lose", are(cut.prompts_lost));
  if (const std::int64_t lost = cut.untrained - cut.unanswered; lost > 0)
    text += fmt::format("  {} sample{} no trained token; {} in place and add{} nothing: {}\n", lost,
                        lost == 1 ? " keeps" : "s keep", lost == 1 ? "it stays" : "they stay",
                        lost == 1 ? "s" : "", places_text(set.untrained, lost));
  if (cut.unanswered > 0)
    text += fmt::format(
        "  {} sample{} no answer in the data, whatever cutoff_len is; {} in place and add{} "
        "nothing: {}\n",
        cut.unanswered, cut.unanswered == 1 ? " has" : "s have",
        cut.unanswered == 1 ? "it stays" : "they stay", cut.unanswered == 1 ? "s" : "",
        places_text(set.unanswered, cut.unanswered));
  return text;
}

std::string set_text(const DatasetFigures& set, const DatasetOptions& options) {
  std::string text =
      fmt::format("data set `{}` ({}{}): {}\n", set.name,
                  set.files.size() == 1 ? set.files[0] : fmt::format("{} files", set.files.size()),
                  set.was_cached ? ", tokens from the cache" : "", describe(set.records));
  for (const std::string& note : set.records.notes) text += "  " + note + "\n";
  if (is_chat(options)) return text + cut_text(set, options);
  return text + fmt::format("  {} with end tokens; longest text {}\n",
                            counted(set.cut.tokens, "token"), format_count(set.cut.longest_uncut));
}

std::string packs_text(const SplitFigures& split, const DatasetOptions& options) {
  const std::int64_t positions = written_cutoff(options, options.cutoff_tokens);
  std::vector<std::string> first;
  for (std::size_t pack = 0; pack < split.packs.size(); ++pack)
    first.push_back(pack == 0 ? fmt::format("{} with {}", counted(split.packs[0], "sample"),
                                            counted(split.filled[0], "token"))
                              : fmt::format("{} with {}", split.packs[pack], split.filled[pack]));
  return fmt::format(
      "  {} of {} ({}{}), fill rate {:.1f}%, attention: {}\n", counted(split.samples, "pack"),
      counted(positions, "position"), fmt::join(first, ", "),
      split.samples > static_cast<std::int64_t>(split.packs.size()) ? ", ..." : "",
      100.0 * static_cast<double>(split.tokens) / static_cast<double>(split.samples * positions),
      options.attention == PackingAttention::shared ? "shared in a pack; positions restart"
                                                    : "separate per sample; positions restart");
}

std::string split_text(std::string_view name, const SplitFigures& split, const SampleSource& source,
                       const DatasetOptions& options) {
  std::string text =
      fmt::format("{}: {}, {}, longest {}\n", name, counted(split.samples, "sample"),
                  counted(split.tokens, "token"), format_count(source.largest_tokens()));
  if (is_chat(options) && options.packing) text += packs_text(split, options);
  return text;
}

std::string order_text(const Datasets& datasets, const SamplerConfig& order) {
  const auto sampler = Sampler::make(order);
  if (!sampler) return {};
  const std::int64_t count = sampler->micro_batches_per_epoch();
  std::string text =
      fmt::format("an epoch: {} of {} on each of {}, {}", counted(count, "micro-batch"),
                  order.sequences_per_micro_batch, counted(order.world_size, "rank"),
                  counted(sampler->updates_per_epoch(), "update"));
  if (const std::int64_t rest = count % order.accumulation_steps; rest != 0)
    text += fmt::format(", the last from {} micro-batch{}", rest, rest == 1 ? "" : "es");
  if (sampler->filled_samples() > 0)
    text += fmt::format("; {} places, so {} twice", order.sample_count + sampler->filled_samples(),
                        sampler->filled_samples() == 1
                            ? std::string("1 sample comes")
                            : fmt::format("{} samples come", sampler->filled_samples()));
  const std::int64_t used = order.sample_count - sampler->left_out_samples();
  if (sampler->left_out_samples() > 0)
    text += fmt::format("; {} used and {} left out",
                        used == 1 ? "1 sample is" : counted(used, "sample") + " are",
                        sampler->left_out_samples());
  if (const std::int64_t windows = untrained_windows(datasets, order); windows > 0)
    text += fmt::format("; {} update{} without a trained token in the first epoch: no update then",
                        windows, windows == 1 ? "" : "s");
  return text + "\n";
}

}  // namespace

std::int64_t untrained_windows(const Datasets& datasets, const SamplerConfig& order) {
  const auto& untrained = datasets.untrained_samples;
  if (untrained.empty()) return 0;
  std::vector<bool> has_target;
  for (int rank = 0; rank < order.world_size; ++rank) {
    SamplerConfig own = order;
    own.rank = rank;
    const auto sampler = Sampler::make(own);
    if (!sampler) return 0;
    has_target.resize(static_cast<std::size_t>(sampler->updates_per_epoch()), false);
    DataPosition position;
    for (std::size_t window = 0; window < has_target.size(); ++window) {
      const WindowSamples samples = sampler->window_at(position);
      for (const auto& batch : samples.micro_batches)
        for (const std::int64_t id : batch)
          if (!std::binary_search(untrained.begin(), untrained.end(), id))
            has_target[window] = true;
      position = samples.end;
    }
  }
  return std::count(has_target.begin(), has_target.end(), false);
}

std::string data_report(const DataReportQuestion& question) {
  const Datasets& datasets = question.datasets;
  std::string text;
  for (const DatasetFigures& set : datasets.sets) text += set_text(set, question.options);
  text += split_text("training", datasets.training_figures, *datasets.training, question.options);
  if (datasets.evaluation)
    text += split_text("evaluation", datasets.evaluation_figures, *datasets.evaluation,
                       question.options);
  return text + order_text(datasets, question.order);
}

}  // namespace underkeel::data
