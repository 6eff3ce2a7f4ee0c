#include "train/resume.h"

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

DataIdentity DataIdentity::of(const data::SamplerConfig& order, std::string samples) {
  return {.samples = std::move(samples),
          .sample_count = order.sample_count,
          .seed = order.shuffle ? order.seed : 0,
          .shuffle = order.shuffle,
          .drop_last = order.drop_last};
}

std::string Progress::to_json() const {
  Json json{{"step", step},
            {"epoch", position.epoch},
            {"samples", position.samples},
            {"sequences_per_step", sequences_per_step},
            {"evaluation", evaluation},
            {"trainer_state", trainer_state}};
  if (data)
    json["data"] = {{"samples", data->samples},
                    {"count", data->sample_count},
                    {"seed", data->seed},
                    {"shuffle", data->shuffle},
                    {"drop_last", data->drop_last}};
  if (skipped_steps > 0) json["skipped_steps"] = skipped_steps;
  if (loss_scale)
    json["loss_scale"] = {{"scale", loss_scale->scale},
                          {"hysteresis_left", loss_scale->hysteresis_left},
                          {"steps", loss_scale->steps},
                          {"last_overflow_step", loss_scale->last_overflow_step}};
  return json.dump();
}

Result<Progress> Progress::from_json(std::string_view text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, false);
  const auto bad = [&](std::string_view what) {
    return fail(ErrorCode::bad_file, fmt::format("the checkpoint's loop state {}", what), where,
                "resume from an older checkpoint");
  };
  Progress read;
  try {
    read.trainer_state = json.at("trainer_state").get<std::string>();
    for (const char* key : {"step", "epoch", "samples"})
      if (!json.at(key).is_number_integer()) return bad("cannot be read");
    read.step = json.at("step");
    read.position = {.epoch = json.at("epoch"), .samples = json.at("samples")};
    if (json.contains("evaluation")) read.evaluation = json["evaluation"];
    if (json.contains("sequences_per_step")) read.sequences_per_step = json["sequences_per_step"];
    if (json.contains("data")) {
      const Json& data = json.at("data");
      read.data = DataIdentity{.samples = data.at("samples"),
                               .sample_count = data.at("count"),
                               .seed = data.at("seed"),
                               .shuffle = data.at("shuffle"),
                               .drop_last = data.at("drop_last")};
    }
    read.skipped_steps = json.value("skipped_steps", std::int64_t{0});
    if (json.contains("loss_scale")) {
      const Json& scale = json.at("loss_scale");
      for (const char* key : {"hysteresis_left", "steps", "last_overflow_step"})
        if (!scale.at(key).is_number_integer()) return bad("cannot be read");
      read.loss_scale = LossScaleState{.scale = scale.at("scale"),
                                       .hysteresis_left = scale.at("hysteresis_left"),
                                       .steps = scale.at("steps"),
                                       .last_overflow_step = scale.at("last_overflow_step")};
    }
  } catch (const Json::exception&) {
    return bad("cannot be read");
  }
  // Every epoch has an update, and its last one ends it.
  const data::DataPosition& position = read.position;
  if (read.step < 0 || position.epoch < 0 || position.samples < 0 || position.epoch > read.step ||
      (read.data && position.samples >= read.data->sample_count))
    return bad(fmt::format("is impossible: step {}, epoch {}, {} samples into it", read.step,
                           position.epoch, position.samples));
  if (read.skipped_steps < 0 || read.skipped_steps > read.step)
    return bad(
        fmt::format("is impossible: {} of {} steps are skipped", read.skipped_steps, read.step));
  if (read.loss_scale && !(read.loss_scale->scale > 0))
    return bad(fmt::format("is impossible: loss scale {}", read.loss_scale->scale));
  return read;
}

Result<std::optional<Resume>> find_resume(io::FileSystem& files, const spec::RunConfig& run,
                                          io::CheckpointList& standing) {
  const std::string output = run.output.string();
  UK_TRY(list, io::list_checkpoints(files, output));
  standing = std::move(list);
  std::optional<io::FoundCheckpoint> found;
  if (run.resume_from == "none" || (run.resume_from.empty() && run.overwrite_output)) {
    return std::optional<Resume>{};
  } else if (!run.resume_from.empty()) {
    const std::string manifest_path = io::join_path(run.resume_from, io::manifest_file);
    if (!files.exists(manifest_path)) {
      UK_TRY(there, io::list_checkpoints(files, run.resume_from));
      std::vector<std::string> names;
      for (const auto& each : there.complete) names.push_back(each.folder);
      return fail(
          ErrorCode::not_found, "there is no checkpoint of this engine", run.resume_from,
          names.empty()
              ? "name a folder checkpoint-N; without resume_from_checkpoint a run goes on from "
                "the newest one of its output_dir"
              : fmt::format("it holds {}", fmt::join(names, ", ")));
    }
    if (run.resume_weights_only) {
      // The optimizer's files may be gone; what is needed of the manifest is the loop's state.
      UK_TRY(text, files.read_text(manifest_path, largest_side_file_bytes));
      UK_TRY(manifest, io::parse_manifest(text, manifest_path));
      found = io::FoundCheckpoint{run.resume_from, std::move(manifest)};
    } else {
      auto manifest = io::read_manifest(files, run.resume_from);
      if (!manifest) {
        Error error = std::move(manifest).error();
        if (error.fix.empty())
          error.fix =
              "resume from another checkpoint, or with underkeel.resume_weights_only=true if its "
              "weights are whole";
        return tl::unexpected(std::move(error));
      }
      found = io::FoundCheckpoint{run.resume_from, *std::move(manifest)};
    }
  } else {
    UK_TRY(newest, io::newest_complete(files, output));
    found = std::move(newest);
  }
  const bool has_damaged = std::any_of(
      standing.skipped.begin(), standing.skipped.end(),
      [](const io::CheckpointList::Skipped& skipped) { return !skipped.is_unfinished; });
  if (!found && has_damaged && !run.overwrite_output) {
    std::string what = "checkpoints stand in the output folder and none of them is whole:";
    for (const io::CheckpointList::Skipped& skipped : standing.skipped)
      what += fmt::format("\n  {}: {}", skipped.folder, skipped.reason);
    return fail(ErrorCode::bad_file, std::move(what), output,
                "mend one (a file may be in a copy), name one with resume_from_checkpoint and "
                "underkeel.resume_weights_only: true if its weights are whole, or begin anew with "
                "overwrite_output_dir: true, which sets them aside");
  }
  if (!found) {
    if (!run.overwrite_output)
      for (const char* name : {"model.safetensors", "model.safetensors.index.json",
                               "adapter_model.safetensors", "pytorch_model.bin"})
        if (files.exists(io::join_path(output, name)))
          return fail(
              ErrorCode::bad_config,
              fmt::format("the output folder holds `{}` and no checkpoint to resume from", name),
              output, "choose another output_dir, or set overwrite_output_dir: true");
    return std::optional<Resume>{};
  }
  UK_TRY(progress, Progress::from_json(found->manifest.state, found->folder));
  if (progress.step != found->manifest.step)
    return fail(ErrorCode::bad_file,
                fmt::format("the manifest is of step {}, the loop state in it of step {}",
                            found->manifest.step, progress.step),
                found->folder, "resume from an older checkpoint");
  return std::optional<Resume>(Resume{.checkpoint = std::move(*found),
                                      .progress = std::move(progress),
                                      .weights_only = run.resume_weights_only});
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
