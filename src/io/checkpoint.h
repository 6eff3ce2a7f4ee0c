#pragma once
// Checkpoint folders: a save that can be killed at any moment, the list of what can be resumed, and
// rotation.
//
//   output/tmp-checkpoint-400/   being written, or left by a run that died; never listed
//   output/checkpoint-400/       complete: has a manifest whose files are all there
//   output/latest                the name of the newest one, for people and other programs
//   output/earlier/              checkpoints of a run that another one, started anew, has followed
//
// Order of a save: begin_checkpoint() on rank 0; every rank writes its ranges and syncs its files;
// rank 0 merges the part lists into the manifest; finish_checkpoint() on rank 0.
// Not here: what is in the manifest (manifest.h), whether it fits the disk (checkpoint_space.h).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "io/manifest.h"
#include "io/part_list.h"  // for those who write a save

namespace underkeel::io {

std::string checkpoint_path(const std::string& output, std::int64_t step);
std::string temporary_checkpoint_path(const std::string& output, std::int64_t step);

/// Removes what dead saves have left, makes the temporary folder of this one, and gives its path.
Result<std::string> begin_checkpoint(FileSystem& files, const std::string& output,
                                     std::int64_t step);

/// An entry of the manifest for a finished file in `folder`; with the checksum of its content when
/// `buffer` is not empty (for files without tensors).
Result<CheckpointFile> describe_file(FileSystem& files, const std::string& folder,
                                     const std::string& name, std::span<std::byte> buffer = {});

/// Makes the temporary folder the checkpoint of `manifest.step`: syncs every listed file, writes the
/// manifest, reads it back and checks it against the folder, renames, and writes `latest` last. A
/// complete checkpoint of the same step is replaced in one step.
/// Errors: those of the disk; bad_file when the manifest and the folder do not agree. After an error
/// the older checkpoints are as they were; abandon_checkpoint() removes the rest.
Result<void> finish_checkpoint(FileSystem& files, const std::string& output,
                               const Manifest& manifest);

/// Removes the temporary folder of a save that failed.
Result<void> abandon_checkpoint(FileSystem& files, const std::string& output, std::int64_t step);

/// Reads the manifest in `folder` and checks that every file is there with its size.
/// Errors: not_found, bad_file, unsupported, io.
Result<Manifest> read_manifest(FileSystem& files, const std::string& folder);

struct CheckpointList {
  struct Complete {
    std::int64_t step = 0;
    std::string folder;
  };
  struct Skipped {
    std::string folder;
    std::string reason;
    bool is_unfinished = false;  // left by a save that was killed: never was one
  };
  std::vector<Complete> complete;  // newest first
  std::vector<Skipped> skipped;    // looks like a checkpoint and is none, by name
};

/// An output folder that is not there yet holds none.
Result<CheckpointList> list_checkpoints(FileSystem& files, const std::string& output);

struct FoundCheckpoint {
  std::string folder;
  Manifest manifest;
};
/// The complete checkpoint of the highest step. `latest` is not asked: it may be older than a
/// checkpoint whose save was killed after its last rename.
Result<std::optional<FoundCheckpoint>> newest_complete(FileSystem& files,
                                                       const std::string& output);

/// Which share of the checksums a rank verifies.
struct VerifyShare {
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
};
/// Reads every part (or this rank's share of them) through `buffer` and compares checksums; looks
/// into the header of every safetensors file, and that the manifest's ranges are tensors there.
/// Gives one error for each damaged place.
/// Errors: io when the disk itself fails.
Result<std::vector<Error>> verify_checkpoint(FileSystem& files, const FoundCheckpoint& checkpoint,
                                             std::span<std::byte> buffer,
                                             const VerifyShare& share = {});

/// Moves every `checkpoint-N` of an earlier run, sound or not, into output/earlier, so that a run which
/// starts anew neither resumes, rotates nor replaces it; what was set aside before under the same name
/// goes. Gives the new paths. For rank 0, before the first save.
Result<std::vector<std::string>> set_checkpoints_aside(FileSystem& files,
                                                       const std::string& output);

struct Rotation {
  std::int64_t save_total_limit = 0;          // 0: keep all
  std::vector<std::int64_t> protected_steps;  // kept whatever the limit, such as the best one
};
/// Removes the oldest complete checkpoints until as many as the limit are left, the protected ones among them, and gives
/// their paths. The newest complete one always stays; folders that are not complete are not touched or counted. A folder is
/// renamed before it is emptied, so that no half of it is ever listed.
Result<std::vector<std::string>> remove_old_checkpoints(FileSystem& files,
                                                        const std::string& output,
                                                        const Rotation& rotation);

}  // namespace underkeel::io
