#include "io/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/units.h"
#include "io/safetensors.h"

namespace underkeel::io {

namespace {

constexpr std::string_view name_prefix = "checkpoint-";
constexpr std::string_view temporary_prefix = "tmp-checkpoint-";
constexpr std::string_view latest_file = "latest";
constexpr std::string_view earlier_folder = "earlier";
// About 150 bytes a part; this allows a model of 1,000 tensors on 1,000 ranks.
constexpr std::int64_t longest_manifest_bytes = 512 * mebibyte;

/// N of "checkpoint-N".
std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(name_prefix)) return std::nullopt;
  name.remove_prefix(name_prefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc{} || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

/// Puts the finished temporary folder in the place of `path`, whatever is there.
Result<void> move_into_place(FileSystem& files, const std::string& temporary,
                             const std::string& path) {
  UK_TRY(found, files.stat(path));
  if (!found) return files.rename(temporary, path);
  const std::string replaced = temporary + "-replaced";
  if (!read_manifest(files, path)) {
    // Nothing that could be resumed: no moment without a checkpoint to fear.
    UK_TRY_VOID(files.rename(path, replaced));
    return files.rename(temporary, path);
  }
  auto swapped = files.exchange(temporary, path);
  if (!swapped && swapped.error().code == ErrorCode::unsupported) {
    swapped.error().what = "a complete checkpoint of this step is there already";
    swapped.error().fix = "move it away, or choose another output_dir";
  }
  return swapped;
}

/// Errors of one file of a checkpoint, found by reading it.
class FileVerifier {
 public:
  FileVerifier(FileSystem& files, const FoundCheckpoint& checkpoint, std::span<std::byte> buffer,
               const VerifyShare& share)
      : files_(files), checkpoint_(checkpoint), buffer_(buffer), share_(share) {}

  Result<std::vector<Error>> run() {
    std::map<std::string_view, std::vector<const CheckpointTensor*>> tensors_of_file;
    for (const CheckpointTensor& tensor : checkpoint_.manifest.tensors)
      tensors_of_file[tensor.file].push_back(&tensor);
    for (const CheckpointFile& listed : checkpoint_.manifest.files) {
      UK_TRY(file, files_.open(path_of(listed.name)));
      if (listed.xxh3_64 && is_mine())
        UK_TRY_VOID(check(file, {0, listed.size_bytes, *listed.xxh3_64}, ""));
      const auto& tensors = tensors_of_file[listed.name];
      for (const CheckpointTensor* tensor : tensors)
        for (const FilePart& part : tensor->parts)
          if (is_mine()) UK_TRY_VOID(check(file, part, tensor->name));
      if (listed.name.ends_with(".safetensors") && is_mine()) check_header(listed.name, tensors);
    }
    return std::move(damages_);
  }

 private:
  std::string path_of(const std::string& name) const { return join_path(checkpoint_.folder, name); }
  bool is_mine() { return next_task_++ % share_.world_size == share_.rank; }

  Result<void> check(const File& file, const FilePart& part, const std::string& tensor) {
    UK_TRY(found, checksum_of(file, part.begin, part.end, buffer_));
    if (found == part.xxh3_64) return {};
    damages_.push_back(
        {.code = ErrorCode::bad_file,
         .what =
             fmt::format("bytes {} to {} are damaged: checksum {} expected, {} found", part.begin,
                         part.end, checksum_text(part.xxh3_64), checksum_text(found)),
         .where = tensor.empty() ? file.path()
                                 : fmt::format("{}, tensor {}", file.path(), printable(tensor)),
         .fix = "resume from an older checkpoint"});
    return {};
  }

  void check_header(const std::string& name, const std::vector<const CheckpointTensor*>& tensors) {
    const auto header = read_safetensors_header(files_, path_of(name));
    if (!header) {
      damages_.push_back(header.error());
      return;
    }
    std::set<std::tuple<std::int64_t, std::int64_t>> ranges;
    for (const TensorEntry& entry : header->tensors) ranges.emplace(entry.begin, entry.end);
    for (const CheckpointTensor* tensor : tensors)
      if (!ranges.contains({tensor->begin, tensor->end}))
        damages_.push_back(
            {.code = ErrorCode::bad_file,
             .what = fmt::format("the header has no tensor of bytes {} to {}, the manifest has",
                                 tensor->begin, tensor->end),
             .where = fmt::format("{}, tensor {}", header->path, printable(tensor->name)),
             .fix = "resume from an older checkpoint"});
  }

  FileSystem& files_;
  const FoundCheckpoint& checkpoint_;
  std::span<std::byte> buffer_;
  const VerifyShare& share_;
  std::int64_t next_task_ = 0;
  std::vector<Error> damages_;
};

}  // namespace

std::string checkpoint_path(const std::string& output, std::int64_t step) {
  return join_path(output, fmt::format("{}{}", name_prefix, step));
}

std::string temporary_checkpoint_path(const std::string& output, std::int64_t step) {
  return join_path(output, fmt::format("{}{}", temporary_prefix, step));
}

Result<std::string> begin_checkpoint(FileSystem& files, const std::string& output,
                                     std::int64_t step) {
  UK_TRY_VOID(files.make_folders(output));
  UK_TRY(entries, files.list(output));
  for (const FolderEntry& entry : entries)
    if (entry.name.starts_with(temporary_prefix))
      UK_TRY_VOID(files.remove_tree(join_path(output, entry.name)));
  std::string folder = temporary_checkpoint_path(output, step);
  UK_TRY_VOID(files.make_folders(folder));
  return folder;
}

Result<CheckpointFile> describe_file(FileSystem& files, const std::string& folder,
                                     const std::string& name, std::span<std::byte> buffer) {
  UK_TRY(file, files.open(join_path(folder, name)));
  CheckpointFile described{.name = name};
  UK_TRY(size_bytes, file.size_bytes());
  described.size_bytes = size_bytes;
  if (!buffer.empty()) {
    UK_TRY(checksum, checksum_of(file, 0, size_bytes, buffer));
    described.xxh3_64 = checksum;
  }
  return described;
}

Result<void> finish_checkpoint(FileSystem& files, const std::string& output,
                               const Manifest& manifest) {
  const std::string temporary = temporary_checkpoint_path(output, manifest.step);
  const std::string final_path = checkpoint_path(output, manifest.step);
  UK_TRY_VOID(check_manifest(manifest, join_path(temporary, manifest_file)));
  for (const CheckpointFile& listed : manifest.files) {
    UK_TRY(file, files.open_for_update(join_path(temporary, listed.name)));
    UK_TRY_VOID(file.sync());
    UK_TRY_VOID(file.close());
  }
  UK_TRY(json, to_json(manifest));
  {
    UK_TRY(file, files.create(join_path(temporary, manifest_file)));
    UK_TRY_VOID(file.write(std::as_bytes(std::span(json)), 0));
    UK_TRY_VOID(file.sync());
    UK_TRY_VOID(file.close());
  }
  UK_TRY_VOID(read_manifest(files, temporary));
  UK_TRY_VOID(files.sync_folder(temporary));
  UK_TRY_VOID(move_into_place(files, temporary, final_path));
  UK_TRY_VOID(files.sync_folder(output));
  UK_TRY_VOID(files.write_text_durably(join_path(output, latest_file),
                                       fmt::format("{}{}\n", name_prefix, manifest.step)));
  // What was replaced, if anything, now has a temporary name.
  UK_TRY_VOID(files.remove_tree(temporary));
  return files.remove_tree(temporary + "-replaced");
}

Result<void> abandon_checkpoint(FileSystem& files, const std::string& output, std::int64_t step) {
  return files.remove_tree(temporary_checkpoint_path(output, step));
}

Result<Manifest> read_manifest(FileSystem& files, const std::string& folder) {
  const std::string path = join_path(folder, manifest_file);
  UK_TRY(text, files.read_text(path, longest_manifest_bytes));
  UK_TRY(manifest, parse_manifest(text, path));
  for (const CheckpointFile& listed : manifest.files) {
    const std::string listed_path = join_path(folder, listed.name);
    UK_TRY(found, files.stat(listed_path));
    if (!found || found->kind != FileKind::file)
      return fail(ErrorCode::not_found, "a file of the checkpoint is missing", listed_path);
    if (found->size_bytes != listed.size_bytes)
      return fail(ErrorCode::bad_file,
                  fmt::format("a file of the checkpoint has the wrong size: {} bytes expected, {} "
                              "found",
                              format_count(listed.size_bytes), format_count(found->size_bytes)),
                  listed_path);
  }
  return manifest;
}

Result<CheckpointList> list_checkpoints(FileSystem& files, const std::string& output) {
  CheckpointList list;
  UK_TRY(there, files.stat(output));
  if (!there) return list;
  UK_TRY(entries, files.list(output));
  for (const FolderEntry& entry : entries) {
    const std::string folder = join_path(output, entry.name);
    const auto skip = [&](std::string reason) {
      list.skipped.push_back({folder, std::move(reason)});
    };
    if (entry.name.starts_with(temporary_prefix)) {
      skip("the save was not finished");
      list.skipped.back().is_unfinished = true;
    }
    const auto step = step_of(entry.name);
    if (!step || entry.kind != FileKind::folder) continue;
    if (!files.exists(join_path(folder, manifest_file))) {
      skip(fmt::format("no {}: not finished, or written by another program", manifest_file));
      continue;
    }
    const auto manifest = read_manifest(files, folder);
    if (!manifest) {
      skip(fmt::format("{} ({})", manifest.error().what, manifest.error().where));
    } else if (manifest->step != *step) {
      skip(fmt::format("its manifest is of step {}", manifest->step));
    } else {
      list.complete.push_back({*step, folder});
    }
  }
  std::sort(list.complete.begin(), list.complete.end(),
            [](const auto& a, const auto& b) { return a.step > b.step; });
  return list;
}

Result<std::optional<FoundCheckpoint>> newest_complete(FileSystem& files,
                                                       const std::string& output) {
  UK_TRY(list, list_checkpoints(files, output));
  if (list.complete.empty()) return std::optional<FoundCheckpoint>{};
  FoundCheckpoint newest{.folder = list.complete.front().folder};
  UK_TRY(manifest, read_manifest(files, newest.folder));
  newest.manifest = std::move(manifest);
  return std::optional(std::move(newest));
}

Result<std::vector<Error>> verify_checkpoint(FileSystem& files, const FoundCheckpoint& checkpoint,
                                             std::span<std::byte> buffer,
                                             const VerifyShare& share) {
  return FileVerifier(files, checkpoint, buffer, share).run();
}

Result<std::vector<std::string>> set_checkpoints_aside(FileSystem& files,
                                                       const std::string& output) {
  std::vector<std::string> aside;
  UK_TRY(entries, files.list(output));
  const std::string earlier = join_path(output, earlier_folder);
  for (const FolderEntry& entry : entries) {
    if (!step_of(entry.name) || entry.kind != FileKind::folder) continue;
    UK_TRY_VOID(files.make_folders(earlier));
    std::string path = join_path(earlier, entry.name);
    for (int copy = 2; files.exists(path); ++copy)  // of a still earlier run
      path = join_path(earlier, fmt::format("{}.{}", entry.name, copy));
    UK_TRY_VOID(files.rename(join_path(output, entry.name), path));
    aside.push_back(path);
  }
  if (aside.empty()) return aside;
  const std::string latest = join_path(output, latest_file);
  if (files.exists(latest)) UK_TRY_VOID(files.remove_file(latest));
  UK_TRY_VOID(files.sync_folder(earlier));
  UK_TRY_VOID(files.sync_folder(output));
  return aside;
}

Result<std::vector<std::string>> remove_old_checkpoints(FileSystem& files,
                                                        const std::string& output,
                                                        const Rotation& rotation) {
  std::vector<std::string> removed;
  if (rotation.save_total_limit <= 0) return removed;
  UK_TRY(list, list_checkpoints(files, output));
  const auto limit = static_cast<std::size_t>(rotation.save_total_limit);
  const auto& spared = rotation.protected_steps;
  std::size_t standing = list.complete.size();
  // Newest first: the oldest go until as many as the limit are left, and the newest stays.
  for (std::size_t i = standing; i-- > 1 && standing > limit;) {
    const auto& old = list.complete[i];
    if (std::find(spared.begin(), spared.end(), old.step) != spared.end()) continue;
    --standing;
    const std::string leaving = temporary_checkpoint_path(output, old.step) + "-removed";
    UK_TRY_VOID(files.rename(old.folder, leaving));
    UK_TRY_VOID(files.sync_folder(output));
    UK_TRY_VOID(files.remove_tree(leaving));
    removed.push_back(old.folder);
  }
  return removed;
}

}  // namespace underkeel::io
