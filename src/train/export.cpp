#include "train/export.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/units.h"
#include "io/checkpoint.h"
#include "io/model_files.h"
#include "io/verify_folder.h"
#include "plan/stored_name.h"
#include "spec/model_spec.h"
#include "train/expected_tensors.h"
#include "train/model_source.h"
#include "train/output_model.h"
#include "train/side_files.h"

namespace underkeel::train {

namespace {

constexpr std::int64_t chunk_elements = 64 * kibibyte;
/// Where the values of one parameter lie.
struct Place {
  std::string path;
  DType type = DType::f32;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;
};

struct Source {
  std::string folder;
  std::map<std::string, Place> weights;  // by Hugging Face name
  std::map<std::string, Place> masters;
  std::string note;  // for the user

  /// The master copy is the exact value; the weights are it, rounded.
  const Place* find(const std::string& name) const {
    for (const auto* places : {&masters, &weights})
      if (const auto found = places->find(name); found != places->end()) return &found->second;
    return nullptr;
  }
};

Source source_of(const io::FoundCheckpoint& checkpoint) {
  Source source{.folder = checkpoint.folder};
  const std::string prefix = plan::stored_name(plan::StatePart::master, "");
  const std::string moment1 = plan::stored_name(plan::StatePart::moment1, "");
  const std::string moment2 = plan::stored_name(plan::StatePart::moment2, "");
  for (const io::CheckpointTensor& tensor : checkpoint.manifest.tensors) {
    Place place{.path = io::join_path(checkpoint.folder, tensor.file),
                .type = tensor.type,
                .shape = tensor.shape,
                .begin = tensor.begin};
    if (tensor.name.starts_with(prefix)) {
      source.masters[tensor.name.substr(prefix.size())] = std::move(place);
    } else if (!tensor.name.starts_with(moment1) && !tensor.name.starts_with(moment2)) {
      source.weights[tensor.name] = std::move(place);
    }
  }
  return source;
}

Source source_of(const io::ModelFiles& model) {
  Source source{.folder = model.folder};
  for (const io::SafetensorsHeader& file : model.files)
    for (const io::TensorEntry& entry : file.tensors) {
      if (!entry.type) continue;  // found out when the model needs it
      source.weights[entry.name] = {
          .path = file.path, .type = *entry.type, .shape = entry.shape, .begin = entry.begin};
    }
  return source;
}

Result<Source> open_source(io::FileSystem& files, const std::string& from) {
  constexpr const char* what_is_taken = "give a checkpoint, an output folder or a model folder";
  UK_TRY(there, files.stat(from));
  if (!there) return fail(ErrorCode::not_found, "there is no such folder", from, what_is_taken);
  if (there->kind != io::FileKind::folder)
    return fail(ErrorCode::bad_config, "this is a file, and a folder is exported", from,
                what_is_taken);
  if (files.exists(io::join_path(from, io::manifest_file))) {
    UK_TRY(manifest, io::read_manifest(files, from));
    return source_of(io::FoundCheckpoint{from, std::move(manifest)});
  }
  UK_TRY(found, model_of_output(files, from));
  // The same weights, with their master copy where one was saved.
  if (found.checkpoint) {
    Source source = source_of(*found.checkpoint);
    source.note = std::move(found.note);
    return source;
  }
  UK_TRY(model, io::open_model_files(files, from));
  Source source = source_of(model);
  source.note = std::move(found.note);
  return source;
}

Result<void> check_place(const Place& place, const spec::Parameter& parameter) {
  if (place.shape != parameter.shape())
    return fail(ErrorCode::bad_file,
                fmt::format("tensor `{}` has shape {}, config.json needs {}", parameter.name,
                            io::shape_text(place.shape), io::shape_text(parameter.shape())),
                place.path, "give the config.json that this checkpoint was made with");
  if (place.type != DType::f32 && place.type != DType::bf16 && place.type != DType::f16)
    return fail(ErrorCode::unsupported,
                fmt::format("tensor `{}` has type {}", parameter.name, name_of(place.type)),
                place.path, "export from weights of type f32, bf16 or f16");
  return {};
}

void narrow(const float* from, std::int64_t count, DType type, std::byte* into) {
  if (type == DType::f32) {
    std::memcpy(into, from, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint16_t bits = type == DType::bf16 ? to_bf16(from[i]).bits : to_f16(from[i]).bits;
    std::memcpy(into + 2 * i, &bits, sizeof bits);
  }
}

/// Copies tensors between files through two fixed buffers, one of stored values, one of f32.
class TensorCopier {
 public:
  explicit TensorCopier(io::FileSystem& files)
      : files_(files),
        stored_(static_cast<std::size_t>(bytes_of(DType::f32, chunk_elements))),
        values_(static_cast<std::size_t>(chunk_elements)) {}

  Result<void> copy(const Place& place, const io::TensorEntry& entry, io::File& into) {
    if (!from_ || from_->path() != place.path) {
      UK_TRY(opened, files_.open(place.path));
      from_.emplace(std::move(opened));
    }
    const std::int64_t element_count = entry.element_count();
    for (std::int64_t at = 0; at < element_count; at += chunk_elements) {
      const std::int64_t count = std::min(chunk_elements, element_count - at);
      const std::span read(stored_.data(), static_cast<std::size_t>(bytes_of(place.type, count)));
      UK_TRY_VOID(from_->read(read, place.begin + bytes_of(place.type, at)));
      bytes_read_ += static_cast<std::int64_t>(read.size());
      if (place.type != *entry.type) {
        widen(stored_.data(), place.type, count, values_.data());
        narrow(values_.data(), count, *entry.type, stored_.data());
      }
      const std::span write(stored_.data(), static_cast<std::size_t>(bytes_of(*entry.type, count)));
      UK_TRY_VOID(into.write(write, entry.begin + bytes_of(*entry.type, at)));
    }
    return {};
  }
  std::int64_t bytes_read() const { return bytes_read_; }

 private:
  io::FileSystem& files_;
  std::vector<std::byte> stored_;
  std::vector<float> values_;
  std::optional<io::File> from_;
  std::int64_t bytes_read_ = 0;
};

Result<void> check_target(io::FileSystem& files, const std::string& into) {
  UK_TRY(there, files.stat(into));
  if (!there) return {};
  if (there->kind == io::FileKind::folder) {
    UK_TRY(entries, files.list(into));
    if (entries.empty()) return {};
  }
  return fail(ErrorCode::bad_config, "the folder to export into is there already", into,
              "give a name that is free, or remove it");
}

Result<void> write_side_files(io::FileSystem& files, const Source& source,
                              const std::string& config_text, const std::string& folder) {
  UK_TRY_VOID(files.write_text_durably(io::join_path(folder, "config.json"), config_text));
  for (const std::string_view name : side_files) {
    const std::string path = io::join_path(source.folder, name);
    if (!files.exists(path)) continue;
    UK_TRY(text, files.read_text(path, largest_side_file_bytes));
    UK_TRY_VOID(files.write_text_durably(io::join_path(folder, name), text));
  }
  return {};
}

struct Export {
  const Source& source;
  const spec::ModelSpec& model;
  const CheckpointFiles& layout;
  DType type = DType::f32;
  const std::string& config_text;
};

Result<void> fill_folder(io::FileSystem& files, const Export& job, const std::string& folder,
                         ExportReport& report) {
  UK_TRY_VOID(files.make_folders(folder));
  UK_TRY_VOID(write_side_files(files, job.source, job.config_text, folder));
  TensorCopier copier(files);
  for (const LaidOutFile& file : job.layout.files) {
    UK_TRY(into, io::create_safetensors(files, io::join_path(folder, file.name), file.layout));
    for (const io::TensorEntry& entry : file.layout.tensors) {
      UK_TRY_VOID(copier.copy(*job.source.find(entry.name), entry, into));
      ++report.tensor_count;
      report.parameter_count += entry.element_count();
      report.weight_bytes += entry.size_bytes();
    }
    UK_TRY_VOID(into.sync());
    UK_TRY_VOID(into.close());
  }
  if (!job.layout.weight_index.empty())
    UK_TRY_VOID(files.write_text_durably(io::join_path(folder, io::weight_index_file),
                                         job.layout.weight_index));
  report.file_count = static_cast<std::int64_t>(job.layout.files.size());
  report.bytes_read = copier.bytes_read();

  const ExpectedTensors expected = expected_tensors(job.model);
  UK_TRY(checked, io::verify_folder(files, folder, expected.tensors,
                                    {.tied = expected.tied, .buffer_bytes = mebibyte}));
  if (!checked.problems.empty()) {
    Error problem = checked.problems.front();
    problem.what = "the exported folder does not pass its check: " + problem.what;
    if (job.type == DType::f16)
      problem.fix = "export with --dtype bf16 or f32: f16 holds no value beyond 65,504";
    return tl::unexpected(std::move(problem));
  }
  return files.sync_folder(folder);
}

}  // namespace

Result<ExportReport> export_checkpoint(io::FileSystem& files, const ExportRequest& request) {
  UK_TRY_VOID(check_target(files, request.into));
  UK_TRY(source, open_source(files, request.from));
  const std::string config_path = io::join_path(source.folder, "config.json");
  UK_TRY(config, files.read_text(config_path, largest_config_bytes));
  UK_TRY(model, spec::parse_model_config(config, config_path));

  const std::vector<spec::Parameter> parameters = spec::parameters_of(model);
  for (const spec::Parameter& parameter : parameters) {
    const Place* place = source.find(parameter.name);
    if (place == nullptr)
      return fail(ErrorCode::bad_file, fmt::format("there is no tensor `{}`", parameter.name),
                  source.folder, "export from a complete checkpoint (see `underkeel inspect`)");
    UK_TRY_VOID(check_place(*place, parameter));
  }
  // A model folder, as it is loaded for training: two copies of a tied head have to be equal.
  if (!files.exists(io::join_path(source.folder, io::manifest_file)))
    UK_TRY_VOID(check_weights(files, source.folder, model));
  ExportReport report{
      .from = source.folder, .note = source.note, .from_master = !source.masters.empty()};
  const auto stored = source.weights.find(parameters.front().name);
  report.type = request.type.value_or(stored == source.weights.end() ? model.stored_type
                                                                     : stored->second.type);
  UK_TRY(config_text, spec::rewrite_model_config(config, report.type));
  UK_TRY(layout, lay_out_checkpoint(model, {.weight_type = report.type, .has_optimizer = false},
                                    request.max_shard_bytes));
  UK_TRY(free_bytes, files.free_bytes(request.into));
  if (layout.size_bytes() > free_bytes)
    return fail(ErrorCode::does_not_fit,
                fmt::format("the export needs {} of disk, {} are free",
                            format_bytes(layout.size_bytes()), format_bytes(free_bytes)),
                request.into,
                report.type == DType::f32
                    ? "free some, give a folder on another disk, or --dtype bf16"
                    : "free some, or give a folder on another disk");

  std::string target = request.into;
  while (target.size() > 1 && target.ends_with('/')) target.pop_back();
  const std::string temporary = fmt::format("{}.tmp-{}", target, getpid());
  const Export job{.source = source,
                   .model = model,
                   .layout = layout,
                   .type = report.type,
                   .config_text = config_text};
  const auto complete = [&]() -> Result<void> {
    UK_TRY_VOID(fill_folder(files, job, temporary, report));
    UK_TRY_VOID(files.remove_tree(target));  // empty, as check_target() found
    UK_TRY_VOID(files.rename(temporary, target));
    return files.sync_folder(io::folder_of(target));
  };
  if (Result<void> done = complete(); !done) {
    (void)files.remove_tree(temporary);  // the first reason is the one to tell
    return tl::unexpected(done.error());
  }
  return report;
}

}  // namespace underkeel::train
