// Which samples a run sees: data sets, blocks, order, what is held out.

#include <cmath>

#include "spec/run_sections.h"

namespace underkeel::spec {

void read_data(RunReading& reading) {
  Fields& fields = reading.fields;
  DataConfig& data = reading.run.data;
  EvaluationConfig& evaluation = reading.run.evaluation;
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
  data.cutoff_tokens = reading.keep<std::int64_t>(
      "cutoff_len", fields.integer("cutoff_len", {2, most_sequences}), 2048);
  const auto packing = fields.boolean("packing");
  data.packing = reading.keep("packing", packing, true);
  if (packing == true) {
    --data.cutoff_tokens;
    reading.run.notes.push_back(fmt::format(
        "packing: true makes blocks of cutoff_len - 1 = {} tokens, as in LLaMA-Factory; leave the "
        "key out (stage pt packs anyway) for blocks of cutoff_len",
        data.cutoff_tokens));
  }
  const auto samples = fields.integer("max_samples", {1, INT64_MAX});
  data.max_samples = samples;
  if (samples) reading.keep<std::int64_t>("max_samples", samples, 0);
  data.packing_batch_records = reading.keep<std::int64_t>(
      "preprocessing_batch_size", fields.integer("preprocessing_batch_size", {1, INT32_MAX}), 1000);
  const auto workers = fields.integer("preprocessing_num_workers", {1, 100000});
  if (workers.value_or(1) > 1)
    reading.run.notes.push_back(fmt::format(
        "preprocessing_num_workers: {} is passed over; LLaMA-Factory cuts the data in as many "
        "parts before it packs, so that blocks at the ends of parts can differ",
        *workers));
  data.template_name = fields.text("template").value_or("");
  data.shuffle = !reading.keep("disable_shuffling", fields.boolean("disable_shuffling"), false);
  data.drop_last =
      reading.keep("dataloader_drop_last", fields.boolean("dataloader_drop_last"), false);

  evaluation.validation_size = reading.keep("val_size", fields.number("val_size", {}), 0.0);
  if (evaluation.validation_size == 1)
    fields.problem("val_size", "1 is neither a share below 1 nor a number of records above 1");
  if (evaluation.validation_size > 1 &&
      std::trunc(evaluation.validation_size) != evaluation.validation_size)
    fields.problem("val_size", "a number of records must be whole");
  if (evaluation.validation_size > 1e-6 && !data.evaluation_datasets.empty())
    fields.problem("val_size", "eval_dataset and val_size exclude each other");
}

}  // namespace underkeel::spec
