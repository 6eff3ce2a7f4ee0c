// Which samples a run sees, and how they are made: data sets, templates, truncation, packing, order.

#include <cmath>

#include "spec/run_sections.h"

namespace underkeel::spec {
namespace {

void read_sets(RunReading& reading) {
  Fields& fields = reading.fields;
  DataConfig& data = reading.run.data;
  data.folder = reading.keep<std::string>("dataset_dir", fields.text("dataset_dir"), "data");
  data.datasets = fields.words("dataset").value_or(std::vector<std::string>());
  data.evaluation_datasets = fields.words("eval_dataset").value_or(std::vector<std::string>());
  if (data.datasets.empty())
    fields.problem("dataset", "the key is missing: names of dataset_info.json are wanted");
  else
    reading.note_source("dataset", fmt::format("{}", fmt::join(data.datasets, ", ")), true);
  if (!data.evaluation_datasets.empty())
    reading.note_source("eval_dataset",
                        fmt::format("{}", fmt::join(data.evaluation_datasets, ", ")), true);
  const auto samples = fields.integer("max_samples", {1, INT64_MAX});
  data.max_samples = samples;
  if (samples) reading.keep<std::int64_t>("max_samples", samples, 0);
  data.overwrite_cache =
      reading.keep("overwrite_cache", fields.boolean("overwrite_cache"), data.overwrite_cache);
}

// There the folder holds the samples of one run, which are then taken whatever the other keys say. Here it is the
// token cache: what was made from the same files and settings is found again, anything else is made beside it.
void read_tokenized_path(RunReading& reading) {
  DataConfig& data = reading.run.data;
  const auto folder = reading.fields.text("tokenized_path");
  if (!folder) return;
  if (folder->empty()) {
    reading.fields.problem("tokenized_path", "a folder is wanted, an empty text was found",
                           "name a folder, or leave the key out");
    return;
  }
  data.token_cache = reading.keep("tokenized_path", folder, std::string());
  reading.run.notes.push_back(
      fmt::format("tokenized_path: tokens are kept in {} and found there again by the same data "
                  "files and keys; "
                  "LLaMA-Factory would take what is there whatever the other data keys say",
                  *folder));
}

void read_mixing(RunReading& reading) {
  Fields& fields = reading.fields;
  DataConfig& data = reading.run.data;
  struct Strategy {
    std::string_view name;
    MixStrategy strategy;
  };
  constexpr Strategy strategies[] = {{"concat", MixStrategy::concat},
                                     {"interleave_under", MixStrategy::interleave_under},
                                     {"interleave_over", MixStrategy::interleave_over},
                                     {"interleave_once", MixStrategy::interleave_once}};
  const std::string wanted =
      reading.keep<std::string>("mix_strategy", fields.text("mix_strategy"), "concat");
  bool is_known = false;
  for (const Strategy& known : strategies)
    if (known.name == wanted) {
      data.mix_strategy = known.strategy;
      is_known = true;
    }
  if (!is_known)
    fields.problem("mix_strategy", fmt::format("`{}` is no way to mix data sets", wanted),
                   "write concat, interleave_under, interleave_over or interleave_once");

  const auto words = fields.words("interleave_probs");
  if (!words) return;
  double sum = 0;
  for (const std::string& word : *words) {
    const auto share = parse_double(word);
    if (!share || *share < 0 || *share > 1) {
      fields.problem("interleave_probs", fmt::format("`{}` is no probability", word));
      return;
    }
    data.interleave_probabilities.push_back(*share);
    sum += *share;
  }
  reading.note_source("interleave_probs", fmt::format("{}", fmt::join(*words, ", ")), true);
  if (data.mix_strategy == MixStrategy::concat)
    fields.problem("interleave_probs", "this belongs to an interleaving mix_strategy");
  for (const auto* names : {&data.datasets, &data.evaluation_datasets})
    if (!names->empty() && names->size() != words->size())
      fields.problem("interleave_probs",
                     fmt::format("{} probabilities for {} data sets", words->size(), names->size()),
                     "name one for each data set");
  if (std::abs(sum - 1) > 1e-8)
    fields.problem("interleave_probs", fmt::format("the probabilities add up to {}, not 1", sum));
}

void read_packing(RunReading& reading) {
  Fields& fields = reading.fields;
  DataConfig& data = reading.run.data;
  const bool is_pt = reading.run.stage == Stage::pt;
  data.cutoff_tokens = reading.keep<std::int64_t>(
      "cutoff_len", fields.integer("cutoff_len", {2, most_sequences}), 2048);
  const auto packing = fields.boolean("packing");
  data.neat_packing = reading.keep("neat_packing", fields.boolean("neat_packing"), false);
  if (data.neat_packing && is_pt)
    fields.problem("neat_packing", "this belongs to stage sft", "leave the key out");
  const bool is_asked_for = data.neat_packing || packing == true;
  data.packing = data.neat_packing || reading.keep("packing", packing, is_pt);
  if (is_asked_for) --data.cutoff_tokens;
  if (is_asked_for && is_pt)
    reading.run.notes.push_back(fmt::format(
        "packing: true makes blocks of cutoff_len - 1 = {} tokens, as in LLaMA-Factory; leave the "
        "key out (stage pt packs anyway) for blocks of cutoff_len",
        data.cutoff_tokens));
  data.packing_batch_records = reading.keep<std::int64_t>(
      "preprocessing_batch_size", fields.integer("preprocessing_batch_size", {1, INT32_MAX}), 1000);
  const auto workers = fields.integer("preprocessing_num_workers", {1, 100000});
  data.packing_shards = workers.value_or(1);
  if (workers) reading.keep<std::int64_t>("preprocessing_num_workers", workers, 1);
  if (data.packing_shards > 1 && data.packing)
    reading.run.notes.push_back(fmt::format(
        "preprocessing_num_workers: {} cuts the data in as many parts before packing, as in "
        "LLaMA-Factory; how many threads tokenise does not depend on it",
        data.packing_shards));
}

void read_template(RunReading& reading) {
  Fields& fields = reading.fields;
  DataConfig& data = reading.run.data;
  const bool is_pt = reading.run.stage == Stage::pt;
  const auto name = fields.text("template");
  data.template_name = name.value_or("");
  if (name) reading.keep<std::string>("template", name, "");
  data.default_system = fields.text("default_system");
  if (data.default_system) reading.keep<std::string>("default_system", data.default_system, "");
  const auto thinking = fields.boolean("enable_thinking");
  if (fields.is_null("enable_thinking")) {
    data.enable_thinking = std::nullopt;
    reading.note_source("enable_thinking", "null", true);
  } else {
    data.enable_thinking = reading.keep("enable_thinking", thinking, true);
  }
  data.preserve_thinking =
      reading.keep("preserve_thinking", fields.boolean("preserve_thinking"), false);
  data.train_on_prompt = reading.keep("train_on_prompt", fields.boolean("train_on_prompt"), false);
  data.mask_history = reading.keep("mask_history", fields.boolean("mask_history"), false);
  if (is_pt && data.train_on_prompt)
    fields.problem("train_on_prompt", "this belongs to stage sft", "leave the key out");
  if (is_pt && data.mask_history)
    fields.problem("mask_history", "this belongs to stage sft", "leave the key out");
  if (data.mask_history && data.train_on_prompt)
    fields.problem("mask_history", "mask_history and train_on_prompt exclude each other",
                   "keep one of the two");
}

void read_held_out(RunReading& reading) {
  Fields& fields = reading.fields;
  EvaluationConfig& evaluation = reading.run.evaluation;
  evaluation.validation_size = reading.keep("val_size", fields.number("val_size", {}), 0.0);
  if (evaluation.validation_size == 1)
    fields.problem("val_size", "1 is neither a share below 1 nor a number of records above 1");
  if (evaluation.validation_size > 1 &&
      std::trunc(evaluation.validation_size) != evaluation.validation_size)
    fields.problem("val_size", "a number of records must be whole");
  if (evaluation.validation_size > 1e-6 && !reading.run.data.evaluation_datasets.empty())
    fields.problem("val_size", "eval_dataset and val_size exclude each other");
}

}  // namespace

void read_data(RunReading& reading) {
  Fields& fields = reading.fields;
  DataConfig& data = reading.run.data;
  read_sets(reading);
  read_tokenized_path(reading);
  read_mixing(reading);
  read_packing(reading);
  read_template(reading);
  data.shuffle = !reading.keep("disable_shuffling", fields.boolean("disable_shuffling"), false);
  data.drop_last =
      reading.keep("dataloader_drop_last", fields.boolean("dataloader_drop_last"), false);
  read_held_out(reading);
}

}  // namespace underkeel::spec
