#include "io/verify_folder.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/check.h"
#include "base/printable.h"
#include "base/units.h"
#include "io/model_files.h"
#include "io/safetensors.h"
#include "io/value_look.h"

namespace underkeel::io {

namespace {

/// Buffers of rotary frequencies that old Llama files carry; every loader computes them.
bool is_known_leftover(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq");
}

class Verifier {
 public:
  Verifier(FileSystem& files, ModelFolderScan scan, const VerifyOptions& options)
      : files_(files), options_(options) {
    report_.warnings = scan.all_warnings();
    report_.problems = std::move(scan.problems);
    model_ = std::move(scan.model);
  }

  Result<FolderReport> run(std::span<const ExpectedTensor> expected) {
    count();
    compare(expected);
    report_unexpected(expected);
    report_types();
    for (const TiedTensor& pair : options_.tied) check_tied(pair);
    if (options_.read_values) check_values();
    return std::move(report_);
  }

 private:
  void report(ErrorCode code, std::string what, std::string where, std::string fix = {}) {
    report_.problems.push_back({code, std::move(what), std::move(where), std::move(fix)});
  }

  static std::string place_of(const FoundTensor& tensor) {
    return fmt::format("{}, tensor {}", tensor.path, printable(tensor.entry.name));
  }

  void count() {
    report_.totals.file_count = std::ssize(model_.files);
    report_.totals.tensor_count = std::ssize(model_.places);
    for (const SafetensorsHeader& file : model_.files)
      report_.totals.tensor_bytes += file.file_size_bytes - file.data_begin;
  }

  void compare(std::span<const ExpectedTensor> expected) {
    std::vector<std::string> missing;
    std::string first_wrong;
    std::string first_place;
    std::int64_t wrong_count = 0;
    for (const ExpectedTensor& tensor : expected) {
      std::int64_t parameters = 1;
      for (const std::int64_t size : tensor.shape) parameters *= size;
      report_.totals.parameters_expected += parameters;
      const auto found = model_.find(tensor.name);
      if (!found) {
        missing.push_back(tensor.name);
        continue;
      }
      report_.totals.parameters_found += found->entry.element_count();
      if (found->entry.shape == tensor.shape) continue;
      if (++wrong_count > 1) continue;
      first_wrong = fmt::format("expected {}, found {}", shape_text(tensor.shape),
                                shape_text(found->entry.shape));
      first_place = place_of(*found);
    }
    if (wrong_count > 0) {
      if (wrong_count > 1)
        first_wrong += fmt::format("; {} more tensors are wrong", format_count(wrong_count - 1));
      first_wrong += fmt::format(" ({} parameters expected, {} found)",
                                 format_count(report_.totals.parameters_expected),
                                 format_count(report_.totals.parameters_found));
      report(ErrorCode::bad_file, "wrong shape: " + first_wrong, first_place,
             placeholders() ? "the weights were not gathered before this file was written: save or "
                              "export again from a checkpoint"
                            : "is config.json the one of these weights?");
    }
    if (!missing.empty())
      report(ErrorCode::not_found, "missing: " + count_and_names(missing), model_.folder,
             lacks_prefix(missing)
                 ? "the names lack the prefix `model.`: the folder was saved from "
                   "the model without its head"
                 : "");
  }

  bool placeholders() const {
    return std::any_of(model_.places.begin(), model_.places.end(), [&](const auto& item) {
      const auto& entry = model_.files[item.second.file_index].tensors[item.second.tensor_index];
      return entry.shape == std::vector<std::int64_t>{0};
    });
  }

  bool lacks_prefix(const std::vector<std::string>& missing) const {
    constexpr std::string_view prefix = "model.";
    return std::any_of(missing.begin(), missing.end(), [&](const std::string& name) {
      return name.starts_with(prefix) && model_.find(name.substr(prefix.size()));
    });
  }

  void report_unexpected(std::span<const ExpectedTensor> expected) {
    std::set<std::string_view> known;
    for (const ExpectedTensor& tensor : expected) known.insert(tensor.name);
    for (const TiedTensor& pair : options_.tied) known.insert(pair.copy);
    std::vector<std::string> unexpected;
    std::vector<std::string> leftovers;
    for (const auto& [name, place] : model_.places)
      if (!known.contains(name)) (is_known_leftover(name) ? leftovers : unexpected).push_back(name);
    if (!unexpected.empty() && options_.allow_unexpected)
      report_.warnings.push_back("not part of this model and passed over: " +
                                 count_and_names(unexpected));
    else if (!unexpected.empty())
      report(ErrorCode::bad_file, "not part of this model: " + count_and_names(unexpected),
             model_.folder);
    if (!leftovers.empty())
      report_.warnings.push_back("not needed and passed over: " + count_and_names(leftovers));
  }

  void report_types() {
    for (const SafetensorsHeader& file : model_.files) {
      const auto unreadable = std::find_if(file.tensors.begin(), file.tensors.end(),
                                           [](const TensorEntry& entry) { return !entry.type; });
      if (unreadable == file.tensors.end()) continue;
      report(ErrorCode::unsupported, fmt::format("type {} cannot be read", unreadable->dtype_text),
             place_of({file.path, *unreadable}), "convert the weights to bfloat16 or float32");
      return;
    }
  }

  void check_tied(const TiedTensor& pair) {
    const auto copy = model_.find(pair.copy);
    const auto kept = model_.find(pair.kept);
    // Without a copy all is well; a missing or empty `kept` is reported already.
    if (!copy || !kept || kept->entry.size_bytes() == 0) return;
    const auto likeness = compare_tensors(files_, *copy, *kept, all_bytes);
    if (!likeness) {
      report_.problems.push_back(likeness.error());
    } else if (likeness->is_equal) {
      report_.warnings.push_back(fmt::format(
          "{}: `{}` is a second copy of `{}`, {} bytes; the model ties them, and some loaders stop "
          "at it",
          copy->path, pair.copy, pair.kept, format_count(copy->entry.size_bytes())));
    } else {
      report(ErrorCode::bad_file,
             fmt::format("`{}` and `{}` differ, though the model ties them", pair.copy, pair.kept),
             place_of(*copy),
             "nothing tells which is right: set tie_word_embeddings to false, or remove one");
    }
  }

  void check_values() {
    std::vector<std::byte> buffer(static_cast<std::size_t>(options_.buffer_bytes));
    for (const SafetensorsHeader& header : model_.files) {
      const auto result = check_values_of(header, buffer);
      if (!result) report_.problems.push_back(result.error());
    }
  }

  Result<void> check_values_of(const SafetensorsHeader& header, std::span<std::byte> buffer) {
    UK_TRY(file, files_.open(header.path));
    for (const TensorEntry& entry : header.tensors) {
      for (std::int64_t done = 0; done < entry.size_bytes(); done += std::ssize(buffer)) {
        const auto chunk = buffer.first(
            static_cast<std::size_t>(std::min(std::ssize(buffer), entry.size_bytes() - done)));
        UK_TRY_VOID(file.read(chunk, entry.begin + done));
        if (!entry.type) continue;
        const std::int64_t bad = first_not_finite(*entry.type, chunk);
        if (bad < 0) continue;
        report(ErrorCode::not_finite,
               fmt::format("element {} is not a finite number",
                           format_count(done * 8 / bits_of(*entry.type) + bad)),
               place_of({header.path, entry}), "take an earlier checkpoint");
        break;
      }
    }
    return {};
  }

  FileSystem& files_;
  const VerifyOptions& options_;
  ModelFiles model_;
  FolderReport report_;
};

}  // namespace

Result<FolderReport> verify_folder(FileSystem& files, const std::string& folder,
                                   std::span<const ExpectedTensor> expected,
                                   const VerifyOptions& options) {
  UK_CHECK(options.buffer_bytes > 0 && options.buffer_bytes % 8 == 0,
           "a buffer holds whole elements");
  UK_TRY(scan, scan_model_folder(files, folder));
  return Verifier(files, std::move(scan), options).run(expected);
}

}  // namespace underkeel::io
