#include "train/same_run.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/model_files.h"
#include "io/weight_index.h"
#include "train/side_files.h"

namespace underkeel::train {

namespace {

using Json = nlohmann::json;

// Values that decide which samples there are and in what order.
constexpr std::array data_keys = {"dataset",
                                  "cutoff_len",
                                  "template",
                                  "packing",
                                  "neat_packing",
                                  "max_samples",
                                  "val_size",
                                  "seed",
                                  "data_seed",
                                  "mix_strategy",
                                  "interleave_probs",
                                  "train_on_prompt",
                                  "mask_history",
                                  "default_system",
                                  "enable_thinking",
                                  "preserve_thinking",
                                  "preprocessing_batch_size",
                                  "preprocessing_num_workers",
                                  "disable_shuffling",
                                  "dataloader_drop_last",
                                  "underkeel.packing_attention"};
// Values that change neither weights nor what is reported of them: places, what is printed, and what is worked out.
constexpr std::array quiet_keys = {"output_dir",
                                   "model_name_or_path",
                                   "dataset_dir",
                                   "deepspeed",
                                   "run_name",
                                   "overwrite_cache",
                                   "overwrite_output_dir",
                                   "resume_from_checkpoint",
                                   "logging_steps",
                                   "logging_strategy",
                                   "plot_loss",
                                   "report_to",
                                   "save_steps",
                                   "save_strategy",
                                   "save_total_limit",
                                   "preprocessing_num_workers",
                                   "underkeel.threads",
                                   "underkeel.ranks",
                                   "underkeel.device",
                                   "underkeel.memory.host",
                                   "underkeel.memory.device",
                                   "tokenized_path",
                                   "underkeel.token_cache",
                                   "underkeel.recompute",
                                   "underkeel.collective_time_limit",
                                   "underkeel.resume_weights_only",
                                   "updates per epoch",
                                   "total steps",
                                   "warm-up steps"};

bool is_quiet(std::string_view key) {
  return std::find(quiet_keys.begin(), quiet_keys.end(), key) != quiet_keys.end();
}

const Json* value_of(const Json& values, const std::string& key) {
  if (!values.is_object()) return nullptr;
  const auto found = values.find(key);
  if (found == values.end() || !found->is_object() || !found->contains("value")) return nullptr;
  return &found->at("value");
}

/// `KEY was A, is B`; nothing when both texts of values_file say the same of the key, or nothing.
std::optional<std::string> change_of(const std::string& key, const Json& before, const Json& now) {
  const Json* const a = value_of(before, key);
  const Json* const b = value_of(now, key);
  if (a == nullptr && b == nullptr) return std::nullopt;
  if (a != nullptr && b != nullptr && *a == *b) return std::nullopt;
  // Defaults are not always written down.
  const auto is_default = [&](const Json& values) {
    const auto source = values[key].find("source");
    return source != values[key].end() && *source == "default";
  };
  if (a == nullptr && is_default(now)) return std::nullopt;
  if (b == nullptr && is_default(before)) return std::nullopt;
  return fmt::format("{} was {}, is {}", key, a == nullptr ? "not given" : a->dump(),
                     b == nullptr ? "not given" : b->dump());
}

std::vector<std::string> changed_data_values(const Json& before, const Json& now) {
  std::vector<std::string> changed;
  for (const char* key : data_keys)
    if (auto change = change_of(key, before, now)) changed.push_back(*std::move(change));
  return changed;
}

/// Of all keys of either text but quiet ones.
std::vector<std::string> changed_values(const Json& before, const Json& now) {
  std::set<std::string> keys;
  for (const Json* values : {&before, &now})
    if (values->is_object())
      for (const auto& [key, value] : values->items())
        if (!is_quiet(key)) keys.insert(key);
  std::vector<std::string> changed;
  if (!before.is_object()) return changed;
  for (const std::string& key : keys)
    if (auto change = change_of(key, before, now)) changed.push_back(*std::move(change));
  return changed;
}

Result<Json> values_of(io::FileSystem& files, const std::string& folder) {
  const std::string path = io::join_path(folder, values_file);
  if (!files.exists(path)) return Json();
  UK_TRY(text, files.read_text(path, largest_side_file_bytes));
  return Json::parse(text, nullptr, false);
}

class Differences {
 public:
  template <class T>
  void add(std::string_view name, const T& before, const T& now) {
    if (before != now) found_.push_back(fmt::format("{} was {}, is {}", name, before, now));
  }
  const std::vector<std::string>& found() const { return found_; }

 private:
  std::vector<std::string> found_;
};

std::string_view name_of(spec::RopeType type) {
  switch (type) {
    case spec::RopeType::plain:
      return "default";
    case spec::RopeType::linear:
      return "linear";
    case spec::RopeType::dynamic:
      return "dynamic";
    case spec::RopeType::llama3:
      return "llama3";
    case spec::RopeType::yarn:
      return "yarn";
  }
  return "";
}

/// "512", or the window of each layer where they differ; 0: none.
std::string windows_text(const spec::ModelSpec& model) {
  const auto& windows = model.windows;
  const bool is_one = std::all_of(windows.begin(), windows.end(),
                                  [&](std::int64_t window) { return window == windows.front(); });
  return windows.empty() ? "none"
         : is_one        ? fmt::format("{}", windows.front())
                         : fmt::format("{}", fmt::join(windows, " "));
}

/// What would be computed differently, in the words of config.json. Shapes of tensors that differ are found
/// when they are read; these are also what shapes do not show.
std::vector<std::string> differences(const spec::ModelSpec& before, const spec::ModelSpec& now) {
  Differences all;
  all.add("architectures", before.architecture, now.architecture);
  all.add("vocab_size", before.vocabulary, now.vocabulary);
  all.add("hidden_size", before.width, now.width);
  all.add("intermediate_size", before.feed_forward, now.feed_forward);
  all.add("num_hidden_layers", before.layers, now.layers);
  all.add("num_attention_heads", before.query_heads, now.query_heads);
  all.add("num_key_value_heads", before.key_heads, now.key_heads);
  all.add("head_dim", before.head_width, now.head_width);
  all.add("rms_norm_eps", before.norm_epsilon, now.norm_epsilon);
  all.add("tie_word_embeddings", before.tied_head, now.tied_head);
  all.add("attention_bias of q, k, v", before.qkv_bias, now.qkv_bias);
  all.add("attention_bias of o", before.output_bias, now.output_bias);
  all.add("mlp_bias", before.mlp_bias, now.mlp_bias);
  all.add("norms of q and k", before.qk_norm, now.qk_norm);
  all.add("sliding windows", windows_text(before), windows_text(now));
  const spec::Rope& a = before.rope;
  const spec::Rope& b = now.rope;
  all.add("rope_type", name_of(a.type), name_of(b.type));
  all.add("rope_theta", a.theta, b.theta);
  if (a.type != b.type || a.type == spec::RopeType::plain) return all.found();
  all.add("rope factor", a.factor, b.factor);
  if (a.type == spec::RopeType::linear) return all.found();
  all.add("rope original_max_position_embeddings", a.original_max_position_embeddings,
          b.original_max_position_embeddings);
  all.add("rope low_freq_factor", a.low_freq_factor, b.low_freq_factor);
  all.add("rope high_freq_factor", a.high_freq_factor, b.high_freq_factor);
  all.add("rope beta_fast", a.beta_fast, b.beta_fast);
  all.add("rope beta_slow", a.beta_slow, b.beta_slow);
  all.add("rope truncate", a.truncate, b.truncate);
  all.add("rope attention_factor", a.attention_scaling, b.attention_scaling);
  return all.found();
}

std::string new_run_from(io::FileSystem& files, const std::string& checkpoint) {
  const bool has_weights = files.exists(io::join_path(checkpoint, io::single_weights_file)) ||
                           files.exists(io::join_path(checkpoint, io::weight_index_file));
  const std::string from =
      has_weights ? fmt::format("model_name_or_path: {}", checkpoint)
                  : fmt::format("`underkeel export {} FOLDER`, then model_name_or_path: FOLDER",
                                checkpoint);
  return fmt::format(
      "to begin anew: overwrite_output_dir: true; to train on from these weights: {}, and another "
      "output_dir",
      from);
}

Result<void> check_model(io::FileSystem& files, const std::string& folder,
                         const spec::ModelSpec& model) {
  if (!files.exists(io::join_path(folder, "config.json"))) return {};
  UK_TRY(before, spec::read_model_config(folder));
  const std::vector<std::string> changed = differences(before, model);
  if (changed.empty()) return {};
  return fail(
      ErrorCode::bad_config,
      fmt::format("the checkpoint was made from another model: {}", fmt::join(changed, "; ")),
      folder, "resume with the model it was made from; " + new_run_from(files, folder));
}

Result<void> check_data(io::FileSystem& files, const Resume& resume, const DataIdentity& now,
                        const std::vector<std::string>& changed) {
  const std::string& folder = resume.checkpoint.folder;
  const DataIdentity& before = *resume.progress.data;
  if (before == now) return {};
  std::string what = fmt::format("after step {} the order of the samples would be another: ",
                                 resume.progress.step);
  if (before.sample_count != now.sample_count)
    what += fmt::format("there were {} training samples, now there are {}", before.sample_count,
                        now.sample_count);
  else if (before.samples != now.samples)
    what += fmt::format("the {} training samples are not the same ones", now.sample_count);
  else
    what += "they are shuffled differently";
  if (!changed.empty()) what += fmt::format(" ({})", fmt::join(changed, "; "));
  return fail(ErrorCode::bad_config, std::move(what), folder,
              "give the run the data and values it had; " + new_run_from(files, folder));
}

/// Another global batch has another number of steps in an epoch: what is counted in steps no longer means the same.
std::optional<std::string> batch_note(const Progress& before, const ResumedRun& now) {
  if (before.sequences_per_step == 0 || before.sequences_per_step == now.sequences_per_step)
    return std::nullopt;
  std::string note = fmt::format(
      "a step took {} sequences and takes {} now: epochs and the learning rate's schedule count "
      "steps of the new "
      "size",
      before.sequences_per_step, now.sequences_per_step);
  const std::int64_t of_accumulation = now.sequences_per_step / now.run.accumulation_steps;
  if (before.sequences_per_step % of_accumulation == 0)
    note += fmt::format("; gradient_accumulation_steps={} keeps the old one",
                        before.sequences_per_step / of_accumulation);
  return note;
}

}  // namespace

bool is_same_evaluation(const Progress& before, const ResumedRun& now) {
  return before.evaluation.empty() || before.evaluation == now.evaluation;
}

Result<std::vector<std::string>> check_same_run(io::FileSystem& files, const Resume& resume,
                                                const ResumedRun& now) {
  const std::string& folder = resume.checkpoint.folder;
  UK_TRY_VOID(check_model(files, folder, now.model));
  UK_TRY(before, values_of(files, folder));
  const Json values = Json::parse(spec::values_json(now.run), nullptr, false);
  std::vector<std::string> notes;
  if (resume.progress.data)
    UK_TRY_VOID(check_data(files, resume, now.data, changed_data_values(before, values)));
  else
    notes.push_back(folder +
                    " does not say which samples it was trained on: they are not compared");
  if (!resume.progress.evaluation.empty() && !is_same_evaluation(resume.progress, now))
    notes.push_back(
        "the evaluation samples are others than before: losses do not compare, and the best "
        "evaluation so far "
        "counts no more");
  if (const auto note = batch_note(resume.progress, now)) notes.push_back(*note);
  if (const auto changed = changed_values(before, values); !changed.empty())
    notes.push_back(fmt::format("changed since {}: {}", folder, fmt::join(changed, "; ")));
  return notes;
}

}  // namespace underkeel::train
