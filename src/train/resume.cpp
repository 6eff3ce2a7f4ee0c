#include "train/resume.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "train/side_files.h"

namespace underkeel::train {

using Json = nlohmann::json;

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

}  // namespace underkeel::train
