#include "io/model_files.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/units.h"
#include "io/model_shards.h"

namespace underkeel::io {

namespace {

// An index is about 100 bytes a tensor; this allows a million of them.
constexpr std::int64_t longest_index_bytes = 100'000'000;
// In the order of how much they say.
constexpr std::array<std::string_view, 3> adapter_files = {
    "adapter_model.safetensors", "adapter_model.bin", "adapter_config.json"};

tl::unexpected<Error> holds_adapters(std::string_view name, const std::string& folder) {
  return fail(ErrorCode::unsupported,
              fmt::format("the folder holds adapters (`{}`), and merging them into their base is "
                          "not built yet",
                          name),
              folder,
              "merge them with PEFT (merge_and_unload), on a machine whose memory holds the whole "
              "base, 2 bytes a parameter in 16 bit; or, for the base alone, give a folder without "
              "adapter files");
}

/// One scan: the folder, what was found in it so far.
class Scanner {
 public:
  Scanner(FileSystem& files, std::string folder) : files_(files) {
    scan_.model.folder = std::move(folder);
  }

  Result<ModelFolderScan> run() {
    UK_TRY(found, files_.stat(scan_.model.folder));
    if (!found || found->kind != FileKind::folder)
      return fail(ErrorCode::not_found, "no such model folder", scan_.model.folder);
    UK_TRY(entries, files_.list(scan_.model.folder));
    for (const FolderEntry& entry : entries) names_.insert(entry.name);
    if (has(single_weights_file)) {
      if (has(weight_index_file))
        scan_.warnings.push_back(fmt::format("{} is not used: {} stands beside it",
                                             weight_index_file, single_weights_file));
      take_file(std::string(single_weights_file));
    } else if (has(weight_index_file)) {
      UK_TRY_VOID(take_index());
    } else {
      return no_weights();
    }
    for (const std::string_view name : adapter_files)
      if (has(name)) scan_.adapter_files.emplace_back(name);
    warn_of_odd_files();
    return std::move(scan_);
  }

 private:
  bool has(std::string_view name) const { return names_.contains(name); }
  std::string path_of(std::string_view name) const { return join_path(scan_.model.folder, name); }
  void report(Error error) { scan_.problems.push_back(std::move(error)); }

  tl::unexpected<Error> no_weights() const {
    const std::string& folder = scan_.model.folder;
    if (has("pytorch_model.bin") || has("pytorch_model.bin.index.json"))
      return fail(
          ErrorCode::unsupported,
          "the folder holds its weights only as pytorch_model.bin, a pickle, which can run code",
          folder,
          fmt::format("convert it once: python -c \"from transformers import AutoModelForCausalLM "
                      "as M; M.from_pretrained('{0}', dtype='auto').save_pretrained('{0}')\"",
                      folder));
    for (const std::string_view name : adapter_files)
      if (has(name)) return holds_adapters(name, folder);
    return fail(ErrorCode::not_found, "no weights in the folder", folder,
                fmt::format("expected {} or {}", single_weights_file, weight_index_file));
  }

  /// Reads the header of one file and takes its tensors over. False after a problem.
  bool take_file(const std::string& name) {
    auto header = read_safetensors_header(files_, path_of(name));
    if (!header) {
      report(std::move(header).error());
      return false;
    }
    std::vector<std::string> twice;
    std::string other_file;
    for (std::size_t i = 0; i < header->tensors.size(); ++i) {
      const ModelFiles::Place place{scan_.model.files.size(), i};
      const auto [found, is_new] = scan_.model.places.try_emplace(header->tensors[i].name, place);
      if (is_new) continue;
      twice.push_back(header->tensors[i].name);
      other_file = scan_.model.files[found->second.file_index].path;
    }
    if (!twice.empty())
      report({.code = ErrorCode::bad_file,
              .what = fmt::format("also in {}: {}", other_file, count_and_names(twice)),
              .where = header->path,
              .fix = "keep one of them: nothing tells which is right"});
    scan_.model.files.push_back(std::move(*header));
    return true;
  }

  Result<void> take_index() {
    const std::string path = path_of(weight_index_file);
    UK_TRY(text, files_.read_text(path, longest_index_bytes));
    auto index = parse_weight_index(text, path);
    if (!index) {
      report(std::move(index).error());
      return {};
    }
    std::map<std::string, std::vector<std::string>> tensors_of_file;
    for (const auto& [tensor, file] : index->file_of_tensor)
      tensors_of_file[file].push_back(tensor);
    std::set<std::string> unread;
    for (const auto& [file, tensors] : tensors_of_file) {
      if (!has(file)) {
        report({.code = ErrorCode::not_found,
                .what = fmt::format("the index names a file that is not there; it should hold {}",
                                    count_and_names(tensors)),
                .where = path_of(file),
                .fix = "copy or download the file again"});
        unread.insert(file);
      } else if (!take_file(file)) {
        unread.insert(file);
      }
    }
    for (const auto& [file, tensors] : tensors_of_file)
      if (!unread.contains(file)) check_promised(file, tensors);
    check_unnamed(*index);
    check_total_size(*index, unread.empty());
    return {};
  }

  /// Every tensor that the index promises in `file` is in that file.
  void check_promised(const std::string& file, const std::vector<std::string>& tensors) {
    const std::string path = path_of(file);
    std::vector<std::string> missing;
    std::map<std::string, std::vector<std::string>> elsewhere;  // by the file that has them
    for (const std::string& tensor : tensors) {
      const auto found = scan_.model.find(tensor);
      if (!found) missing.push_back(tensor);
      if (found && found->path != path) elsewhere[found->path].push_back(tensor);
    }
    for (const auto& [other, names] : elsewhere)
      report({.code = ErrorCode::bad_file,
              .what = fmt::format("the index says that this file holds {}; found in {}",
                                  count_and_names(names), other),
              .where = path,
              .fix = "the index belongs to other files: copy or download the folder again"});
    if (!missing.empty())
      report({.code = ErrorCode::bad_file,
              .what = "the file lacks what the index names in it: " + count_and_names(missing),
              .where = path,
              .fix = "the index belongs to other files: copy or download the folder again"});
  }

  void check_unnamed(const WeightIndex& index) {
    std::vector<std::string> unnamed;
    for (const auto& [name, place] : scan_.model.places)
      if (!index.file_of_tensor.contains(name)) unnamed.push_back(name);
    if (!unnamed.empty())
      report(
          {.code = ErrorCode::bad_file,
           .what = "the index does not name all that the files hold: " + count_and_names(unnamed),
           .where = path_of(weight_index_file)});
  }

  void check_total_size(const WeightIndex& index, bool all_files_read) {
    std::int64_t sum = 0;
    for (const SafetensorsHeader& file : scan_.model.files)
      sum += file.file_size_bytes - file.data_begin;
    if (all_files_read && index.total_size_bytes && *index.total_size_bytes != sum)
      scan_.warnings.push_back(fmt::format("{}: total_size is {}, the files hold {} bytes",
                                           weight_index_file, format_count(*index.total_size_bytes),
                                           format_count(sum)));
  }

  void warn_of_odd_files() {
    std::set<std::string> used;
    for (const SafetensorsHeader& file : scan_.model.files) {
      used.insert(file.path);
      if (file.tensors.empty())
        scan_.warnings.push_back(fmt::format("{} holds no tensor", file.path));
      if (!file.metadata.contains("format"))
        scan_.warnings.push_back(fmt::format(
            "{} names no `format` in its metadata; older loaders refuse it", file.path));
    }
    // A broken index or shard says more than the files around it.
    if (!scan_.problems.empty()) return;
    for (const std::string& name : names_)
      if (is_shard_file_name(name) && !used.contains(path_of(name)))
        scan_.warnings.push_back(
            fmt::format("{} belongs to no index and is not used", path_of(name)));
  }

  FileSystem& files_;
  ModelFolderScan scan_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace

std::optional<FoundTensor> ModelFiles::find(std::string_view name) const {
  const auto found = places.find(name);
  if (found == places.end()) return std::nullopt;
  const SafetensorsHeader& file = files[found->second.file_index];
  return FoundTensor{file.path, file.tensors[found->second.tensor_index]};
}

Result<ModelFolderScan> scan_model_folder(FileSystem& files, const std::string& folder) {
  return Scanner(files, folder).run();
}

Result<std::int64_t> scan_bytes(FileSystem& files, const std::string& folder) {
  UK_TRY(entries, files.list(folder));
  std::int64_t sum_bytes = 0;
  for (const FolderEntry& entry : entries) {
    const std::string path = join_path(folder, entry.name);
    if (entry.name == weight_index_file) {
      if (const auto found = files.stat(path); found && *found) sum_bytes += (*found)->size_bytes;
    } else if (entry.name.ends_with(".safetensors")) {
      sum_bytes += safetensors_header_bytes(files, path).value_or(0);
    }
  }
  return sum_bytes;
}

std::vector<std::string> ModelFolderScan::all_warnings() const {
  std::vector<std::string> all = warnings;
  for (const std::string& name : adapter_files)
    all.push_back(
        fmt::format("{} lies beside the weights: train, generate and export refuse a folder with "
                    "adapters",
                    join_path(model.folder, name)));
  return all;
}

Result<void> refuse_adapters(FileSystem& files, const std::string& folder) {
  for (const std::string_view name : adapter_files)
    if (files.exists(join_path(folder, name))) return holds_adapters(name, folder);
  return {};
}

Result<ModelFiles> open_model_files(FileSystem& files, const std::string& folder) {
  UK_TRY_VOID(refuse_adapters(files, folder));
  UK_TRY(scan, scan_model_folder(files, folder));
  if (scan.problems.empty()) return std::move(scan.model);
  Error first = std::move(scan.problems.front());
  if (scan.problems.size() > 1)
    first.what += fmt::format(" (and {} more problems)", scan.problems.size() - 1);
  return tl::unexpected(std::move(first));
}

std::string count_and_names(const std::vector<std::string>& names) {
  constexpr std::size_t most_names = 3;
  std::string text = fmt::format("{} {} (", format_count(std::ssize(names)),
                                 names.size() == 1 ? "tensor" : "tensors");
  for (std::size_t i = 0; i < std::min(names.size(), most_names); ++i)
    text += fmt::format("{}`{}`", i == 0 ? "" : ", ", printable(names[i]));
  return text + (names.size() > most_names ? ", ...)" : ")");
}

}  // namespace underkeel::io
