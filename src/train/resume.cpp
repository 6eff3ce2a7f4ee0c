#include "train/resume.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

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
// Values that may change between two parts of a run, and change its curve.
constexpr std::array curve_keys = {"learning_rate",
                                   "lr_scheduler_type",
                                   "lr_scheduler_kwargs",
                                   "warmup_ratio",
                                   "warmup_steps",
                                   "num_train_epochs",
                                   "max_steps",
                                   "weight_decay",
                                   "adam_beta1",
                                   "adam_beta2",
                                   "adam_epsilon",
                                   "max_grad_norm",
                                   "bf16",
                                   "fp16",
                                   "per_device_train_batch_size",
                                   "gradient_accumulation_steps",
                                   "deepspeed.zero_optimization.stage"};

/// `KEY was A, is B` for each key that two texts of values_file both have with another value.
std::vector<std::string> changed_values(std::span<const char* const> keys, const Json& before,
                                        const Json& now) {
  std::vector<std::string> changed;
  const auto value_of = [](const Json& values, const char* key) -> const Json* {
    if (!values.is_object()) return nullptr;
    const auto found = values.find(key);
    if (found == values.end() || !found->is_object() || !found->contains("value")) return nullptr;
    return &found->at("value");
  };
  for (const char* key : keys) {
    const Json* const a = value_of(before, key);
    const Json* const b = value_of(now, key);
    if (a != nullptr && b != nullptr && *a != *b)
      changed.push_back(fmt::format("{} was {}, is {}", key, a->dump(), b->dump()));
  }
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
  all.add("sliding window of each layer", fmt::format("{}", fmt::join(before.windows, " ")),
          fmt::format("{}", fmt::join(now.windows, " ")));
  all.add("rope type", static_cast<int>(before.rope.type), static_cast<int>(now.rope.type));
  all.add("rope_theta", before.rope.theta, now.rope.theta);
  all.add("rope factor", before.rope.factor, now.rope.factor);
  all.add("rope low_freq_factor", before.rope.low_freq_factor, now.rope.low_freq_factor);
  all.add("rope high_freq_factor", before.rope.high_freq_factor, now.rope.high_freq_factor);
  all.add("rope beta_fast", before.rope.beta_fast, now.rope.beta_fast);
  all.add("rope beta_slow", before.rope.beta_slow, now.rope.beta_slow);
  all.add("rope attention_factor", before.rope.attention_scaling, now.rope.attention_scaling);
  all.add("rope original_max_position_embeddings", before.rope.original_max_position_embeddings,
          now.rope.original_max_position_embeddings);
  return all.found();
}

std::string new_run_from(const std::string& checkpoint) {
  return fmt::format(
      "to begin anew: overwrite_output_dir: true; to train on from these weights: "
      "model_name_or_path: {}, and "
      "another output_dir",
      checkpoint);
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
      folder, "resume with the model it was made from; " + new_run_from(folder));
}

Result<void> check_data(const Resume& resume, const DataIdentity& now,
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
              "give the run the data and values it had; " + new_run_from(folder));
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
    UK_TRY_VOID(check_data(resume, now.data, changed_values(data_keys, before, values)));
  else
    notes.push_back(folder +
                    " does not say which samples it was trained on: they are not compared");
  if (const auto note = batch_note(resume.progress, now)) notes.push_back(*note);
  if (const auto changed = changed_values(curve_keys, before, values); !changed.empty())
    notes.push_back(fmt::format("changed since {}: {}", folder, fmt::join(changed, "; ")));
  return notes;
}

}  // namespace underkeel::train
