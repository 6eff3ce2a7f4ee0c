#include "train/inspect.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include "base/units.h"
#include "io/adapter_weights.h"
#include "io/model_files.h"
#include "io/safetensors.h"
#include "io/value_look.h"
#include "plan/stored_name.h"
#include "spec/json_reader.h"
#include "spec/tied_copy.h"
#include "train/checkpoint_files.h"
#include "train/expected_tensors.h"
#include "train/side_files.h"

namespace underkeel::train {

namespace {

class Inspector {
 public:
  Inspector(io::FileSystem& files, const std::string& path, bool verify) : files_(files) {
    seen_.path = path;
    seen_.verified = verify;
  }

  Result<Inspection> run() {
    UK_TRY(there, files_.stat(seen_.path));
    if (!there)
      return fail(ErrorCode::not_found, "there is nothing of this name", seen_.path,
                  "give a safetensors file, a model folder, a checkpoint or an output folder");
    if (there->kind == io::FileKind::folder) {
      UK_TRY_VOID(look_into_folder(seen_.path));
    } else {
      UK_TRY_VOID(look_into_file());
    }
    return std::move(seen_);
  }

 private:
  bool has(const std::string& folder, std::string_view name) {
    return files_.exists(io::join_path(folder, name));
  }

  void add_file(const io::SafetensorsHeader& header, std::string name) {
    InspectedFile file{.name = std::move(name), .size_bytes = header.file_size_bytes};
    for (const io::TensorEntry& entry : header.tensors)
      file.tensors.push_back({entry.name, entry.dtype_text, entry.shape, entry.size_bytes()});
    seen_.files.push_back(std::move(file));
  }

  Result<void> look_into_file() {
    seen_.kind = PathKind::safetensors_file;
    auto header = io::read_safetensors_header(files_, seen_.path);
    if (header) {
      add_file(*header, header->path);
      warn_of_adapters(*header);
    } else if (header.error().code == ErrorCode::io) {
      return tl::unexpected(header.error());
    } else {
      seen_.problems.push_back(header.error());
      return {};
    }
    if (!seen_.verified) return {};
    const std::string folder = io::folder_of(seen_.path);
    if (seen_.path != io::join_path(folder, io::single_weights_file) &&
        seen_.path != io::single_weights_file)
      return fail(
          ErrorCode::bad_config,
          "one file alone cannot be verified: what it must hold is in config.json and the index",
          seen_.path, fmt::format("underkeel inspect --verify {}", folder));
    read_config(folder);
    return verify_weights(folder);
  }

  Result<void> look_into_folder(const std::string& folder) {
    if (has(folder, io::manifest_file)) {
      seen_.kind = PathKind::checkpoint;
      read_config(folder);
      return look_into_checkpoint(folder);
    }
    UK_TRY(list, io::list_checkpoints(files_, folder));
    seen_.checkpoints = std::move(list);
    const bool holds_checkpoints =
        !seen_.checkpoints.complete.empty() || !seen_.checkpoints.skipped.empty();
    auto scan = io::scan_model_folder(files_, folder);
    if (!scan && scan.error().code == ErrorCode::unsupported &&
        has(folder, io::adapter_weights_file))
      return look_into_adapters(folder);
    if (!scan) {
      if (scan.error().code != ErrorCode::not_found || !holds_checkpoints)
        return tl::unexpected(scan.error());
      seen_.kind = PathKind::output_folder;
      return verify_checkpoints();
    }
    seen_.kind = holds_checkpoints ? PathKind::output_folder : PathKind::model_folder;
    for (const io::SafetensorsHeader& header : scan->model.files)
      add_file(header, header.path.substr(header.path.find_last_of('/') + 1));
    read_config(folder);
    if (seen_.verified) {
      UK_TRY_VOID(verify_weights(folder));
      return verify_checkpoints();
    }
    seen_.warnings = scan->all_warnings();
    std::move(scan->problems.begin(), scan->problems.end(), std::back_inserter(seen_.problems));
    return {};
  }

  /// Adapters without their base.
  Result<void> look_into_adapters(const std::string& folder) {
    seen_.kind = PathKind::adapter_folder;
    const std::string path = io::join_path(folder, io::adapter_weights_file);
    const auto header = io::read_safetensors_header(files_, path);
    if (!header && header.error().code == ErrorCode::io) return tl::unexpected(header.error());
    if (!header) {
      seen_.problems.push_back(header.error());
      return {};
    }
    add_file(*header, std::string(io::adapter_weights_file));
    warn_of_adapters(*header);
    if (header->tensors.empty())
      seen_.problems.push_back(
          {.code = ErrorCode::bad_file,
           .what =
               fmt::format("the adapter file ({} bytes) holds no tensor", header->file_size_bytes),
           .where = path,
           .fix = "save the adapters again; at ZeRO-3 every rank has to take part"});
    if (!has(folder, "adapter_config.json"))
      seen_.problems.push_back(
          {.code = ErrorCode::not_found,
           .what = "there is no adapter_config.json: nothing says what the adapters are",
           .where = folder,
           .fix = "copy the adapter_config.json that was saved with them into the folder"});
    return seen_.verified ? verify_adapters(*header, folder) : Result<void>{};
  }

  /// Pairs, their rank and every value; the base that they change is not here.
  Result<void> verify_adapters(const io::SafetensorsHeader& header, const std::string& folder) {
    auto pairs = io::check_adapter_pairs(header, adapter_rank(folder));
    std::move(pairs.begin(), pairs.end(), std::back_inserter(seen_.problems));
    UK_TRY(look, io::look_at_values(files_, std::span(&header, 1), io::all_bytes));
    if (look.first_not_finite)
      seen_.problems.push_back(
          {.code = ErrorCode::bad_file,
           .what = fmt::format("element {} is not a finite number",
                               look.first_not_finite->element_index),
           .where = fmt::format("{}, tensor {}", header.path, look.first_not_finite->tensor),
           .fix = "take an earlier checkpoint"});
    seen_.warnings.push_back(
        "the adapters' pairs, their rank and their values were checked; their shapes against the "
        "base were not: it is not here");
    return {};
  }

  /// The one rank of all adapters by their config; 0 where it says none, or several.
  std::int64_t adapter_rank(const std::string& folder) {
    const std::string path = io::join_path(folder, "adapter_config.json");
    const auto text = files_.read_text(path, largest_config_bytes);
    if (!text) return 0;
    const auto document = spec::read_json(*text, path, spec::JsonDialect::strict);
    if (!document) return 0;
    const spec::Value* patterns = document->root.find("rank_pattern");
    if (patterns != nullptr && !patterns->entries.empty()) return 0;
    const spec::Value* rank = document->root.find("r");
    return rank == nullptr ? 0 : spec::to_integer(*rank).value_or(0);
  }

  void warn_of_adapters(const io::SafetensorsHeader& header) {
    if (io::second_matrices_are_zero(files_, header).value_or(false))
      seen_.warnings.push_back(
          "all second matrices (lora_B) are zero: the adapters were never trained and change "
          "nothing");
  }

  Result<void> look_into_checkpoint(const std::string& folder) {
    auto manifest = io::read_manifest(files_, folder);
    if (!manifest) {
      if (manifest.error().code == ErrorCode::io) return tl::unexpected(manifest.error());
      seen_.problems.push_back(manifest.error());
      return {};
    }
    seen_.step = manifest->step;
    std::map<std::string, std::size_t> file_index;
    for (const io::CheckpointFile& file : manifest->files) {
      file_index[file.name] = seen_.files.size();
      seen_.files.push_back({.name = file.name, .size_bytes = file.size_bytes, .tensors = {}});
    }
    for (const io::CheckpointTensor& tensor : manifest->tensors)
      seen_.files[file_index[tensor.file]].tensors.push_back(
          {tensor.name, std::string(name_of(tensor.type)), tensor.shape,
           tensor.end - tensor.begin});
    if (!seen_.verified) return {};
    return verify_checkpoint({folder, std::move(*manifest)});
  }

  Result<void> verify_checkpoint(const io::FoundCheckpoint& checkpoint) {
    std::vector<std::byte> buffer(static_cast<std::size_t>(mebibyte));
    UK_TRY(damaged, io::verify_checkpoint(files_, checkpoint, buffer));
    std::move(damaged.begin(), damaged.end(), std::back_inserter(seen_.problems));
    if (!seen_.model) return {};
    bool has_weights = false;
    for (const plan::StatePart part : {plan::StatePart::weights, plan::StatePart::master,
                                       plan::StatePart::moment1, plan::StatePart::moment2})
      if (check_part(checkpoint, part) && part == plan::StatePart::weights) has_weights = true;
    return has_weights ? verify_weights(checkpoint.folder) : Result<void>{};
  }

  // Whether the checkpoint has the part; where it has any of it, it must have all, in the right shapes.
  bool check_part(const io::FoundCheckpoint& checkpoint, plan::StatePart part) {
    std::vector<std::string> missing;
    const ExpectedTensors expected = expected_tensors(*seen_.model);
    std::map<std::string_view, const io::CheckpointTensor*> found;
    for (const io::CheckpointTensor& tensor : checkpoint.manifest.tensors)
      found[tensor.name] = &tensor;
    for (const io::ExpectedTensor& tensor : expected.tensors) {
      const std::string name = plan::stored_name(part, tensor.name);
      const auto at = found.find(name);
      if (at == found.end()) {
        missing.push_back(name);
      } else if (at->second->shape != tensor.shape) {
        seen_.problems.push_back(
            {.code = ErrorCode::bad_file,
             .what = fmt::format("`{}` has shape {}, config.json needs {}", name,
                                 io::shape_text(at->second->shape), io::shape_text(tensor.shape)),
             .where = io::join_path(checkpoint.folder, io::manifest_file),
             .fix = "take an earlier checkpoint"});
        return true;
      }
    }
    if (missing.size() == expected.tensors.size()) return false;
    if (!missing.empty())
      seen_.problems.push_back({.code = ErrorCode::bad_file,
                                .what = "the checkpoint lacks " + io::count_and_names(missing),
                                .where = io::join_path(checkpoint.folder, io::manifest_file),
                                .fix = "take an earlier checkpoint"});
    return true;
  }

  Result<void> verify_checkpoints() {
    if (!seen_.verified) return {};
    for (const io::CheckpointList::Complete& each : seen_.checkpoints.complete) {
      UK_TRY(one, inspect(files_, each.folder, true));
      std::move(one.problems.begin(), one.problems.end(), std::back_inserter(seen_.problems));
      std::move(one.warnings.begin(), one.warnings.end(), std::back_inserter(seen_.warnings));
    }
    return {};
  }

  void read_config(const std::string& folder) {
    const std::string path = io::join_path(folder, "config.json");
    if (!has(folder, "config.json")) {
      seen_.problems.push_back(
          {.code = ErrorCode::not_found,
           .what = "there is no config.json: nothing says what the weights are",
           .where = folder,
           .fix = "copy the config.json of the model into the folder"});
      return;
    }
    auto text = files_.read_text(path, largest_config_bytes);
    auto model = text ? spec::parse_model_config(*text, path) : tl::unexpected(text.error());
    if (model) {
      seen_.model = std::move(*model);
    } else {
      seen_.problems.push_back(model.error());
    }
  }

  Result<void> verify_weights(const std::string& folder) {
    if (!seen_.model) return {};  // a problem already
    const ExpectedTensors expected = expected_tensors(*seen_.model);
    UK_TRY(report, io::verify_folder(files_, folder, expected.tensors, {.tied = expected.tied}));
    seen_.totals = report.totals;
    for (Error& problem : report.problems)
      seen_.problems.push_back(with_cure_of_tied(std::move(problem)));
    std::move(report.warnings.begin(), report.warnings.end(), std::back_inserter(seen_.warnings));
    return {};
  }

  /// An entry of a tied head that cannot be read came from whoever wrote it: another copy has it too.
  Error with_cure_of_tied(Error problem) const {
    const auto tied = spec::tied_copy(*seen_.model);
    if (!tied || !problem.where.ends_with(fmt::format(", tensor {}", tied->copy))) return problem;
    problem.what +=
        fmt::format("; the head is tied to `{}`, so a file needs none of its own", tied->kept);
    problem.fix = fmt::format(
        "export again without `{}`, in the file and in the index, as `underkeel export` does: "
        "another copy of these files has the same entry",
        tied->copy);
    return problem;
  }

  io::FileSystem& files_;
  Inspection seen_;
};

}  // namespace

std::string_view name_of(PathKind kind) {
  switch (kind) {
    case PathKind::safetensors_file:
      return "safetensors file";
    case PathKind::model_folder:
      return "model folder";
    case PathKind::adapter_folder:
      return "adapter folder";
    case PathKind::checkpoint:
      return "checkpoint";
    case PathKind::output_folder:
      return "output folder";
  }
  return "";
}

Result<Inspection> inspect(io::FileSystem& files, const std::string& path, bool verify) {
  return Inspector(files, path, verify).run();
}

}  // namespace underkeel::train
