#include "doctor/sample_rules.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "doctor/packing_rules.h"
#include "doctor/run_facts.h"
#include "spec/fields.h"

namespace underkeel::doctor {
namespace {

constexpr std::size_t places_shown = 8;

std::string count(std::int64_t value) {
  return fmt::format("{}", value);
}

/// How an epoch is cut into windows of accumulation, and which of them are not like the others.
void tell_epoch(const Inputs& inputs, const DataFigures& data, Diagnosis& diagnosis) {
  const std::string file = inputs.run ? inputs.run->file : "";
  const RunFacts run = inputs.run ? run_facts(inputs.run->root) : RunFacts{};
  diagnosis.findings.push_back(
      {.id = "data-epoch",
       .file = file,
       .key = "gradient_accumulation_steps",
       .slots = {{"micro_batches", count(data.micro_batches)},
                 {"micro", count(run.micro_batch)},
                 {"ranks", count(inputs.ranks.count)},
                 {"windows", count(data.windows)},
                 {"places", count(data.micro_batches * run.micro_batch * inputs.ranks.count)},
                 {"samples", count(data.samples)},
                 {"steps", count(run.accumulation_steps)},
                 {"last", count(data.last_window)},
                 {"filled", count(data.filled_samples)},
                 {"left_out", count(data.left_out_samples)}}});
  if (data.untrained_windows == 0) return;
  diagnosis.findings.push_back(
      {.id = "data-windows-untrained",
       .severity = Severity::warning,
       .file = file,
       .key = "gradient_accumulation_steps",
       .slots = {{"count", count(data.untrained_windows)}, {"windows", count(data.windows)}}});
}

/// Whose samples a finding is about, and the key that names their data sets.
struct Purpose {
  std::string_view many;
  std::string_view one;
  std::string_view key;
};
constexpr Purpose training{"@cut.training", "@cut.one-training", "dataset"};
constexpr Purpose with_held_out{"@cut.both", "@cut.one-of-both", "dataset"};
constexpr Purpose evaluation{"@cut.evaluation", "@cut.one-evaluation", "eval_dataset"};

/// " (9 before it)"; nothing where what was before is not known of these samples alone.
std::string before_cut(std::int64_t longest_uncut) {
  return longest_uncut > 0 ? fmt::format("@[cut.longest-before]{}@[cut.before-it]", longest_uncut)
                           : std::string();
}

/// The longest samples, and the micro-batches that they make with each engine.
void tell_longest(const DataFigures& data, const Inputs& inputs, Diagnosis& diagnosis) {
  const std::string file = inputs.run ? inputs.run->file : "";
  const RunFacts run = inputs.run ? run_facts(inputs.run->root) : RunFacts{};
  const auto padded = [&](std::int64_t longest) {
    return inputs.run ? padded_positions(inputs.run->root, longest) : longest;
  };
  const auto tell = [&](std::string_view id, std::int64_t samples, std::int64_t sequences,
                        const spec::LargestBatches& sizes, std::int64_t uncut) {
    diagnosis.findings.push_back({.id = std::string(id),
                                  .file = file,
                                  .key = "cutoff_len",
                                  .slots = {{"samples", count(samples)},
                                            {"longest", count(sizes.longest)},
                                            {"before", before_cut(uncut)},
                                            {"micro", count(sequences)},
                                            {"padded", count(padded(sizes.longest))},
                                            {"met", count(sizes.of(sequences))}}});
  };
  if (!data.packs)
    tell("data-longest", data.samples, inputs.run ? run.micro_batch : 1, data.sizes.training,
         data.holds_out ? 0 : data.training.longest_uncut);
  if (const spec::LargestBatches& sizes = data.sizes.evaluation; sizes.sample_count > 0)
    tell("data-longest-evaluation", sizes.sample_count, run.evaluation_batch, sizes,
         data.evaluation && !data.packs ? data.evaluation->longest_uncut : 0);
}

std::string first_of(const std::vector<std::string>& places, std::int64_t all) {
  std::string text;
  const std::size_t shown = std::min(places.size(), places_shown);
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + places[i];
  return text + (static_cast<std::int64_t>(shown) < all ? ", ..." : "");
}

/// "data.jsonl:4 (30 of 30, 5 of 22), ...": of each answer the tokens that are left.
std::string first_cut(const CutSamples& cut) {
  std::vector<std::string> places;
  for (const CutSample& sample : cut.first_cut) {
    std::string answers;
    for (const auto& [kept, uncut] : sample.answers)
      answers += fmt::format("{}{}@[cut.of]{}", answers.empty() ? "" : ", ", kept, uncut);
    places.push_back(fmt::format("{} ({})", sample.place, answers));
  }
  return first_of(places, cut.samples - cut.whole);
}

void tell_cut(const CutSamples& cut, const Purpose& purpose, const std::string& file,
              Diagnosis& diagnosis) {
  if (cut.longest_answer > 0)
    diagnosis.findings.push_back({.id = "data-longest-parts",
                                  .file = file,
                                  .key = "cutoff_len",
                                  .slots = {{"which", std::string(purpose.one)},
                                            {"prompt", count(cut.longest_prompt)},
                                            {"prompt_kept", count(cut.longest_prompt_kept)},
                                            {"answer", count(cut.longest_answer)},
                                            {"answer_kept", count(cut.longest_answer_kept)}}});
  if (cut.unanswered > 0)
    diagnosis.findings.push_back(
        {.id = "data-unanswered",
         .severity = Severity::warning,
         .file = file,
         .key = std::string(purpose.key),
         .slots = {{"who", std::string(purpose.many)},
                   {"count", count(cut.unanswered)},
                   {"samples", count(cut.samples)},
                   {"lines", first_of(cut.unanswered_lines, cut.unanswered)}}});
  if (cut.answers_cut + cut.answers_lost + cut.prompts_cut + cut.untrained == 0) return;
  // Where most are cut, those that are not say more.
  const bool names_whole = cut.whole > 0 && cut.whole < cut.samples - cut.whole;
  diagnosis.findings.push_back(
      {.id = "data-cut",
       .severity = Severity::warning,
       .file = file,
       .key = "cutoff_len",
       .slots = {
           {"who", std::string(purpose.many)},
           {"samples", count(cut.samples)},
           {"whole", count(cut.whole)},
           {"whole_lines", names_whole ? fmt::format(" ({})", first_of(cut.whole_lines, cut.whole))
                                       : std::string()},
           {"untrained", cut.untrained > 0
                             ? fmt::format("@[cut.untrained] {} ({})", cut.untrained,
                                           first_of(cut.untrained_lines, cut.untrained))
                             : std::string()},
           {"answers", count(cut.answers)},
           {"answers_whole", count(cut.answers - cut.answers_cut - cut.answers_lost)},
           {"answers_cut", count(cut.answers_cut)},
           {"answers_lost", count(cut.answers_lost)},
           {"kept", cut.first_cut.empty() ? std::string() : "@[cut.kept]" + first_cut(cut)},
           {"prompts_cut", count(cut.prompts_cut)},
           {"prompts_lost", count(cut.prompts_lost)},
           {"trained", count(cut.trained_tokens)},
           {"uncut", count(cut.longest_uncut)}}});
}

std::set<std::string> sets_named(const spec::Value& run, std::string_view key) {
  std::set<std::string> names;
  if (const auto words = text_at(run, key))
    for (const std::string& name : spec::split_words(*words)) names.insert(name);
  if (const spec::Value* list = value_at(run, key))
    for (const spec::Value& name : list->items) names.insert(name.text);
  return names;
}

/// Adds one described set. A length that is not said is as long as any sample may be.
void add(const spec::Value& described, const Inputs& inputs, DescribedSamples& samples) {
  samples.count += whole_at(described, "samples").value_or(0);
  const std::int64_t cutoff =
      inputs.run ? run_facts(inputs.run->root).cutoff_tokens : RunFacts{}.cutoff_tokens;
  const std::int64_t tokens = whole_at(described, "tokens").value_or(cutoff);
  samples.longest = std::max(samples.longest, inputs.run ? std::min(tokens, cutoff) : tokens);
}

}  // namespace

bool is_described(const Inputs& inputs, const std::string& name) {
  return inputs.data_shape && inputs.data_shape->root.find(name) != nullptr;
}

std::optional<DescribedSamples> described_training(const Inputs& inputs) {
  if (!inputs.data_shape || !inputs.run) return std::nullopt;
  const std::set<std::string> names = sets_named(inputs.run->root, "dataset");
  DescribedSamples samples;
  for (const std::string& name : names) {
    if (!is_described(inputs, name)) return std::nullopt;
    add(*inputs.data_shape->root.find(name), inputs, samples);
  }
  return samples.count > 0 ? std::optional(samples) : std::nullopt;
}

std::optional<DescribedSamples> described_evaluation(const Inputs& inputs) {
  if (!inputs.data_shape) return std::nullopt;
  std::set<std::string> trained, evaluated;
  if (inputs.run) {
    trained = sets_named(inputs.run->root, "dataset");
    evaluated = sets_named(inputs.run->root, "eval_dataset");
  }
  const auto& entries = inputs.data_shape->root.entries;
  const bool names_one = std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
    return trained.count(entry.key) + evaluated.count(entry.key) > 0;
  });
  DescribedSamples samples;
  for (const spec::Entry& entry : entries)
    if (!names_one || evaluated.count(entry.key) > 0) add(entry.value, inputs, samples);
  return samples.count > 0 ? std::optional(samples) : std::nullopt;
}

void look_at_samples(const Question& question, const Inputs& inputs, Diagnosis& diagnosis) {
  const std::string file = inputs.run ? inputs.run->file : "";
  if (question.data_error)
    diagnosis.findings.push_back({.id = "data-unusable",
                                  .severity = Severity::error,
                                  .file = file,
                                  .key = "dataset",
                                  .slots = {{"what", question.data_error->what},
                                            {"where", question.data_error->where},
                                            {"do", question.data_error->fix}}});
  if (!question.data) return;
  const DataFigures& data = *question.data;
  if (data.packs) tell_packs(data, inputs, diagnosis);
  tell_longest(data, inputs, diagnosis);
  if (data.windows > 0) tell_epoch(inputs, data, diagnosis);
  tell_cut(data.training, data.holds_out ? with_held_out : training, file, diagnosis);
  if (data.evaluation) tell_cut(*data.evaluation, evaluation, file, diagnosis);
}

}  // namespace underkeel::doctor
