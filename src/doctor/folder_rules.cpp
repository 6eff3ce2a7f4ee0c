#include "doctor/folder_rules.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/units.h"
#include "doctor/config_rules.h"
#include "doctor/run_facts.h"
#include "io/checkpoint.h"
#include "io/model_files.h"
#include "io/model_shards.h"
#include "io/value_look.h"
#include "plan/stored_name.h"
#include "spec/tied_copy.h"

namespace underkeel::doctor {
namespace {

namespace fs = std::filesystem;

void tell(Diagnosis& diagnosis, std::string_view id, Severity severity, std::string file,
          std::string key, std::vector<Slot> slots, Engine engine = Engine::both) {
  diagnosis.findings.push_back({.id = std::string(id),
                                .severity = severity,
                                .engine = engine,
                                .file = std::move(file),
                                .key = std::move(key),
                                .slots = std::move(slots)});
}

bool is_adapter(const io::SafetensorsHeader& header, std::string_view file) {
  return file.starts_with("adapter_model") ||
         std::any_of(header.tensors.begin(), header.tensors.end(),
                     [](const io::TensorEntry& entry) {
                       return entry.name.find(".lora_") != std::string::npos;
                     });
}

/// The last part of the path; of "." the folder's own name.
std::string file_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  if (!name.empty() && name != ".") return name;
  std::error_code status;
  return fs::weakly_canonical(path, status).filename().string();
}

void tell_broken(Diagnosis& diagnosis, std::string file, const Error& error) {
  tell(diagnosis, "weights-broken", Severity::error, std::move(file), "",
       {{"what", error.what}, {"where", error.where}, {"fix", error.fix}});
}

/// An entry of the head of a tied model that cannot be read came from whoever wrote it: another copy has it too.
bool tell_tied_entry(const Inputs& inputs, const std::string& file, const Error& error,
                     Diagnosis& diagnosis) {
  const auto tied = inputs.model ? spec::tied_copy(*inputs.model) : std::nullopt;
  if (!tied) return false;
  const std::string place = fmt::format(", tensor {}", tied->copy);
  if (!error.where.ends_with(place)) return false;
  tell(diagnosis, "weights-tied-entry-broken", Severity::error, file, std::string(tied->copy),
       {{"what", error.what},
        {"where", error.where.substr(0, error.where.size() - place.size())},
        {"copy", std::string(tied->copy)},
        {"kept", std::string(tied->kept)}});
  return true;
}

std::string_view how_text(bool is_whole) {
  return is_whole ? "@look.whole" : "@look.sampled";
}

/// Values that are no numbers. Of files that are all broken or away there is nothing to say.
void check_values(io::FileSystem& files, const std::vector<io::SafetensorsHeader>& headers,
                  const std::string& file, bool is_all, Diagnosis& diagnosis) {
  if (headers.empty()) return;
  const auto seen = io::look_at_values(files, headers, most_value_bytes);
  if (!seen) return tell_broken(diagnosis, file, seen.error());
  const std::vector<Slot> read = {
      {"read", amount(static_cast<double>(seen->read_bytes))},
      {"total", amount(static_cast<double>(seen->total_bytes))},
      {"how",
       std::string(is_all || !seen->is_whole() ? how_text(seen->is_whole()) : "@look.rest")}};
  if (!seen->first_not_finite)
    return tell(diagnosis, "weights-finite", Severity::info, file, "", read);
  const io::ValueLook::Place& first = *seen->first_not_finite;
  std::vector<Slot> slots = {{"count", fmt::format("{}", seen->tensors_not_finite)},
                             {"tensor", first.tensor},
                             {"element", fmt::format("{}", first.element_index)}};
  slots.insert(slots.end(), read.begin(), read.end());
  tell(diagnosis, "weights-not-finite", Severity::error, file_of(first.path), first.tensor, slots);
}

/// A head that is stored beside the embedding it is tied to: a second copy, or another matrix.
void check_tied(io::FileSystem& files, const io::FoundTensor& head,
                const io::FoundTensor& embedding, const std::string& file, Diagnosis& diagnosis) {
  const auto alike = io::compare_tensors(files, head, embedding, most_value_bytes);
  if (!alike) return tell_broken(diagnosis, file, alike.error());
  const std::string bytes = amount(static_cast<double>(head.entry.size_bytes()));
  if (!alike->is_equal)
    return tell(diagnosis, "tied-heads-differ", Severity::error, file, head.entry.name,
                {{"head", head.entry.name}, {"embedding", embedding.entry.name}});
  tell(diagnosis, "tied-head-doubled", Severity::warning, file, head.entry.name,
       {{"bytes", bytes}, {"how", std::string(how_text(alike->is_whole()))}});
}

/// Compares tensors with what the model needs: first wrong one of each kind, and totals.
void compare(io::FileSystem& files, const std::vector<io::SafetensorsHeader>& headers,
             const spec::ModelSpec& model, const std::string& file, Diagnosis& diagnosis) {
  std::map<std::string_view, const io::TensorEntry*> found;
  std::map<std::string_view, const std::string*> path_of;
  std::vector<const io::TensorEntry*> tensors;
  for (const io::SafetensorsHeader& header : headers)
    for (const io::TensorEntry& entry : header.tensors) {
      tensors.push_back(&entry);
      found[entry.name] = &entry;
      path_of[entry.name] = &header.path;
    }
  std::int64_t expected_count = 0, found_count = 0, empty = 0, missing = 0, wrong = 0;
  std::string first_empty, first_missing, first_wrong, empty_shape, wrong_found, wrong_expected;
  for (const spec::Parameter& parameter : spec::parameters_of(model)) {
    expected_count += parameter.element_count();
    const auto at = found.find(parameter.name);
    if (at == found.end()) {
      if (missing++ == 0) first_missing = parameter.name;
      continue;
    }
    const io::TensorEntry& entry = *at->second;
    const auto shape = parameter.shape();
    if (entry.shape == shape) {
      found_count += parameter.element_count();
    } else if (entry.element_count() == 0) {
      if (empty++ == 0) {
        first_empty = parameter.name;
        empty_shape = io::shape_text(shape);
      }
    } else if (wrong++ == 0) {
      first_wrong = parameter.name;
      wrong_found = io::shape_text(entry.shape);
      wrong_expected = io::shape_text(shape);
    }
  }
  const std::vector<Slot> totals = {{"expected", fmt::format("{}", expected_count)},
                                    {"found", fmt::format("{}", found_count)}};
  const auto with = [&](std::vector<Slot> slots) {
    slots.insert(slots.end(), totals.begin(), totals.end());
    return slots;
  };
  if (empty > 0)
    tell(diagnosis, "weights-empty", Severity::error, file, first_empty,
         with({{"tensor", first_empty},
               {"shape", empty_shape},
               {"count", fmt::format("{}", empty)}}));
  if (missing > 0)
    diagnosis.findings.push_back(missing_tensors({.found = found,
                                                  .first = first_missing,
                                                  .count = missing,
                                                  .is_all = empty + wrong == 0,
                                                  .totals = totals,
                                                  .file = file},
                                                 model));
  if (wrong > 0)
    tell(diagnosis, "weights-other-shape", Severity::error, file, first_wrong,
         with({{"tensor", first_wrong},
               {"shape", wrong_found},
               {"wanted", wrong_expected},
               {"count", fmt::format("{}", wrong)}}));
  if (const auto tied = spec::tied_copy(model);
      tied && found.count(tied->copy) > 0 && found.count(tied->kept) > 0)
    check_tied(files, {*path_of[tied->copy], *found[tied->copy]},
               {*path_of[tied->kept], *found[tied->kept]}, file, diagnosis);
  if (empty + missing + wrong == 0)
    tell(diagnosis, "weights-whole", Severity::info, file, "", totals);
  std::set<std::string> types;
  for (const io::TensorEntry* entry : tensors) types.insert(entry->dtype_text);
  if (types.size() > 1)
    tell(diagnosis, "weights-of-several-types", Severity::info, file, "",
         {{"types", fmt::format("{}", fmt::join(types, ", "))}});
}

/// A folder that is given alone is asked about for its weights; beside a run, its config may be all that is here.
void tell_absent(io::FileSystem& files, const Inputs& inputs, const std::string& folder,
                 Diagnosis& diagnosis) {
  std::int64_t count = 0;
  std::string first;
  if (const auto entries = files.list(folder))
    for (const io::FolderEntry& entry : *entries)
      if (io::is_shard_file_name(entry.name) && count++ == 0) first = entry.name;
  if (count > 0)
    return tell(diagnosis, "weights-without-index", Severity::error, file_of(folder),
                std::string(io::weight_index_file),
                {{"count", fmt::format("{}", count)}, {"first", first}});
  if (auto unfinished = unfinished_download(files, folder, file_of(folder)))
    return diagnosis.findings.push_back(std::move(*unfinished));
  const bool is_alone =
      !inputs.run && !inputs.deepspeed && !inputs.exporting && !holds_deepspeed_state(folder);
  tell(diagnosis, "weights-absent", is_alone ? Severity::error : Severity::warning, file_of(folder),
       "", {});
}

}  // namespace

void check_weights(io::FileSystem& files, const Inputs& inputs, const std::string& path,
                   Diagnosis& diagnosis, const WeightLook& look) {
  std::error_code status;
  const bool is_folder = fs::is_directory(path, status);
  const std::string folder = is_folder ? path : io::folder_of(path);
  const bool has_index = files.exists(io::join_path(folder, "model.safetensors.index.json"));
  const auto header_bytes = is_folder || has_index ? io::scan_bytes(files, folder)
                                                   : io::safetensors_header_bytes(files, path);
  if (header_bytes && *header_bytes > most_header_bytes)
    return tell(diagnosis, "weights-headers-large", Severity::warning, file_of(path), "",
                {{"bytes", amount(static_cast<double>(*header_bytes))},
                 {"most", amount(static_cast<double>(most_header_bytes))}});
  if (!is_folder && !has_index) {
    const auto header = io::read_safetensors_header(files, path);
    if (!header) return tell_broken(diagnosis, file_of(path), header.error());
    if (is_adapter(*header, file_of(path)))
      return check_adapter(files, inputs, *header, folder, diagnosis);
    if (inputs.model) compare(files, {*header}, *inputs.model, file_of(path), diagnosis);
    return check_values(files, {*header}, file_of(path), true, diagnosis);
  }
  const auto scan = io::scan_model_folder(files, folder);
  if (!scan) {
    if (scan.error().code != ErrorCode::not_found)
      tell_broken(diagnosis, file_of(folder), scan.error());
    else if (look.expects_weights)
      tell_absent(files, inputs, folder, diagnosis);
    return;
  }
  for (const Error& problem : scan->problems)
    if (!tell_tied_entry(inputs, file_of(folder), problem, diagnosis))
      tell_broken(diagnosis, file_of(folder), problem);
  if (!scan->adapter_files.empty())
    check_adapters_beside(inputs, folder, scan->adapter_files, diagnosis);
  for (const std::string& warning : scan->warnings)
    tell(diagnosis, "weights-odd", Severity::warning, file_of(folder), "", {{"what", warning}});
  if (scan->problems.empty() && inputs.model)
    compare(files, scan->model.files, *inputs.model, file_of(folder), diagnosis);
  if (look.reads_values)
    check_values(files, scan->model.files, file_of(folder), scan->problems.empty(), diagnosis);
}

namespace {

// Of more an answer has no time to read.
constexpr std::int64_t most_manifest_bytes = 64 * mebibyte;

/// What is told of a checkpoint that was given is not told again of the folder around it.
bool is_told(const Diagnosis& diagnosis, std::string_view id, const std::string& file) {
  return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                     [&](const Finding& each) { return each.id == id && each.file == file; });
}

bool is_stage_0(const Inputs& inputs) {
  return inputs.deepspeed && stage_in(inputs.deepspeed->root) == 0;
}

}  // namespace

std::optional<std::set<std::string>> files_of_weights(io::FileSystem& files,
                                                      const std::string& folder) {
  const std::string path = io::join_path(folder, io::manifest_file);
  const auto text = files.read_text(path, most_manifest_bytes);
  const auto manifest =
      text ? io::parse_manifest(*text, path) : Result<io::Manifest>(tl::unexpected(text.error()));
  if (!manifest) return std::nullopt;
  struct Found {
    bool is_there = false;
    bool is_whole = false;
  };
  std::map<std::string, Found> found;
  for (const io::CheckpointFile& listed : manifest->files) {
    const auto file = files.stat(io::join_path(folder, listed.name));
    const bool is_there = file && *file;
    found[listed.name] = {is_there, is_there && (*file)->size_bytes == listed.size_bytes};
  }
  // A master copy is read wherever its file stands, be it whole or not; the weights where it is gone.
  std::map<std::string, const io::CheckpointTensor*> read;
  const std::string master = plan::stored_name(plan::StatePart::master, "");
  for (const io::CheckpointTensor& tensor : manifest->tensors) {
    const bool is_master = tensor.name.starts_with(master);
    bool is_moment = false;
    for (const plan::StatePart part : {plan::StatePart::moment1, plan::StatePart::moment2})
      is_moment = is_moment || tensor.name.starts_with(plan::stored_name(part, ""));
    if (is_moment) continue;
    const auto [at, is_first] =
        read.try_emplace(is_master ? tensor.name.substr(master.size()) : tensor.name, &tensor);
    const bool is_preferred =
        is_master ? found[tensor.file].is_there : !found[at->second->file].is_there;
    if (!is_first && is_preferred) at->second = &tensor;
  }
  if (read.empty()) return std::nullopt;
  std::set<std::string> names;
  for (const auto& [name, tensor] : read) {
    if (!found[tensor->file].is_whole) return std::nullopt;
    names.insert(tensor->file);
  }
  return names;
}

std::string check_output_folder(io::FileSystem& files, const Inputs& inputs,
                                const std::string& path, Diagnosis& diagnosis) {
  auto list = io::list_checkpoints(files, path);
  if (!list || (list->complete.empty() && list->skipped.empty())) return {};
  // Ours have a manifest; the others are the Trainer's. The newest are looked at first.
  std::error_code status;
  std::int64_t newest = list->complete.empty() ? -1 : list->complete.front().step;
  std::string newest_folder = list->complete.empty() ? "" : list->complete.front().folder;
  const auto step_of = [](const io::CheckpointList::Skipped& each) {
    return step_of_name(fs::path(each.folder).filename().string());
  };
  std::stable_sort(list->skipped.begin(), list->skipped.end(),
                   [&](const auto& a, const auto& b) { return step_of(a) > step_of(b); });
  std::int64_t header_bytes = most_header_bytes;
  for (const io::CheckpointList::Skipped& skipped : list->skipped) {
    const fs::path folder = skipped.folder;
    const std::string name = folder.filename().string();
    const std::int64_t step = step_of(skipped);
    const auto has = [&](std::string_view file) { return fs::exists(folder / file, status); };
    // Ours that is not complete is none of the Trainer's either: its state files look alike.
    if (step >= 0 && (has(io::manifest_file) || has("training_args.json"))) {
      tell(diagnosis,
           files_of_weights(files, skipped.folder) ? "checkpoint-lacks-state"
                                                   : "checkpoint-not-complete",
           Severity::warning, name, "", {{"reason", skipped.reason}, {"folder", skipped.folder}});
      continue;
    }
    if (skipped.is_unfinished) {
      tell(diagnosis, "checkpoint-not-complete", Severity::warning, name, "",
           {{"reason", "@save-unfinished"}});
      continue;
    }
    std::vector<Lack> lacks = lacks_of_checkpoint(
        files, {.folder = skipped.folder, .step = step, .is_stage_0 = is_stage_0(inputs)},
        header_bytes);
    if (lacks.empty() && step > newest) {
      newest = step;
      newest_folder = skipped.folder;
    }
    for (Lack& lack : lacks)
      if (!is_told(diagnosis, lack.id, name))
        tell(diagnosis, lack.id, Severity::warning, name, "", std::move(lack.slots));
  }
  if (newest >= 0)
    tell(diagnosis, "checkpoint-newest", Severity::info, file_of(newest_folder), "",
         {{"step", fmt::format("{}", newest)}});
  else
    tell(diagnosis, "checkpoint-none-complete", Severity::warning, file_of(path), "", {});
  return newest_folder;
}

namespace {

class FolderLook {
 public:
  FolderLook(const Question& question, const Inputs& inputs, Diagnosis& diagnosis)
      : question_(question), inputs_(inputs), diagnosis_(diagnosis) {}

  void run() {
    for (const Document& document : inputs_.others) look_at(document);
    // What the run names is read when it starts; here its headers are.
    const bool has_folder = inputs_.run && !inputs_.model_folder.empty();
    const bool from_scratch =
        has_folder && truth_at(inputs_.run->root, "underkeel.train_from_scratch").value_or(false);
    if (has_folder && !from_scratch)
      look_at_weights(inputs_.model_folder.string(), {.reads_values = false});
    check_stop_tokens(inputs_, diagnosis_);
    check_adapter_config(question_, inputs_, diagnosis_);
    check_resume_by_itself(files_, inputs_, diagnosis_);
    if (checkpoints_.empty()) tell_ranks_of_resume(question_, inputs_, diagnosis_);
  }

 private:
  void look_at(const Document& document) {
    const std::string& path = document.path;
    switch (document.kind) {
      case FileKind::weights: {
        const std::string folder = io::folder_of(path);
        const bool has_index = files_.exists(io::join_path(folder, io::weight_index_file));
        if (!has_index || scanned_.insert(folder).second)
          check_weights(files_, inputs_, path, diagnosis_, {});
        break;
      }
      case FileKind::weight_index:
        look_at_weights(io::folder_of(path), {});
        break;
      case FileKind::model_folder:
        look_at_weights(path, {});
        if (files_.exists(io::join_path(path, adapter_file))) look_at_adapter(path);
        look_at_deepspeed(path);
        look_at_trainers(path);
        look_at_deepspeed(
            check_output_folder(files_, inputs_, path, diagnosis_));  // a run leaves both
        break;
      case FileKind::adapter_folder:
        look_at_adapter(path);
        look_at_deepspeed(path);
        look_at_trainers(path);
        look_at_deepspeed(check_output_folder(files_, inputs_, path, diagnosis_));
        break;
      case FileKind::deepspeed_checkpoint:
        look_at_deepspeed(path);
        break;
      case FileKind::checkpoint_folder:
        look_at_deepspeed(path);
        look_at_trainers(path);
        check_output_folder(files_, inputs_, io::folder_of(path), diagnosis_);
        if (files_.exists(io::join_path(path, io::manifest_file))) {
          check_own_checkpoint(files_, inputs_, path, diagnosis_);
          look_at_weights(path, {.expects_weights = false});
        }
        break;
      case FileKind::output_folder:
        look_at_deepspeed(check_output_folder(files_, inputs_, path, diagnosis_));
        tell(diagnosis_, "output-without-weights", Severity::warning, file_of(path), "", {});
        break;
      default:
        break;
    }
  }

  void look_at_weights(const std::string& folder, const WeightLook& look) {
    if (scanned_.insert(folder).second) check_weights(files_, inputs_, folder, diagnosis_, look);
  }

  void look_at_adapter(const std::string& folder) {
    const std::string adapter = io::join_path(folder, adapter_file);
    if (files_.exists(adapter))
      check_weights(files_, inputs_, adapter, diagnosis_, {});
    else if (!files_.exists(io::join_path(folder, "adapter_model.bin")))
      tell(diagnosis_, "adapter-absent", Severity::error, file_of(folder), "", {});
  }

  /// The state that DeepSpeed wrote there, where there is any.
  void look_at_deepspeed(const std::string& folder) {
    if (folder.empty() || !holds_deepspeed_state(folder)) return;
    if (checkpoints_.insert(folder).second) check_deepspeed_checkpoint(inputs_, folder, diagnosis_);
  }

  /// The Trainer's own state beside it; weights and DeepSpeed's files were looked at.
  void look_at_trainers(const std::string& folder) {
    if (!files_.exists(io::join_path(folder, "trainer_state.json")) ||
        files_.exists(io::join_path(folder, io::manifest_file)) ||
        files_.exists(io::join_path(folder, "training_args.json")))
      return;
    const std::string name = file_of(folder);
    std::int64_t header_bytes = 0;
    for (Lack& lack : lacks_of_checkpoint(
             files_,
             {.folder = folder, .step = step_of_name(name), .is_stage_0 = is_stage_0(inputs_)},
             header_bytes))
      if (!is_told(diagnosis_, lack.id, name))
        tell(diagnosis_, lack.id, lack.stops ? Severity::error : Severity::warning, name, "",
             std::move(lack.slots));
  }

  static constexpr std::string_view adapter_file = "adapter_model.safetensors";

  const Question& question_;
  const Inputs& inputs_;
  Diagnosis& diagnosis_;
  io::FileSystem files_;
  std::set<std::string> scanned_;      // folders whose index brings all files together
  std::set<std::string> checkpoints_;  // of DeepSpeed
};

}  // namespace

void look_at_folders(const Question& question, const Inputs& inputs, Diagnosis& diagnosis) {
  FolderLook(question, inputs, diagnosis).run();
}

}  // namespace underkeel::doctor
