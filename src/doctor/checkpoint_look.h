#pragma once
// The one judge of checkpoints that DeepSpeed or the Trainer wrote: what a run that goes on from one would miss. Looks at names,
// sizes, ends and headers; never at values.
// Not here: our own checkpoints (io/checkpoint.h), on how many ranks one resumes (deepspeed_checkpoint_rules.cpp).

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "doctor/finding.h"
#include "io/file.h"

namespace underkeel::doctor {

/// One thing that a checkpoint lacks, as the finding that tells it.
struct Lack {
  std::string id;
  std::vector<Slot> slots;
  bool stops = true;  // else a run goes on from it, with less than it had
};

/// What DeepSpeed wrote into a folder: `latest`, and the files of the tag that it names.
struct ShardLook {
  struct Part {
    std::string name;
    std::int64_t rank = -1;  // -1: the model's file of stages 0 to 2, which is for all
    bool is_optimizer = false;
    std::int64_t size_bytes = 0;
    bool ends_as_archive = false;  // torch.save writes zip archives
  };

  std::filesystem::path folder;  // of the tag
  std::string gone;              // what `latest` names and is not there
  bool has_latest = false;
  bool is_tag_itself = false;  // the files lie in the folder that was given
  bool is_universal = false;
  std::vector<Part> parts;

  std::set<std::int64_t> ranks_of(bool optimizer) const;
  bool has_one_model_file() const;
  /// As many as the highest number of any file says.
  std::int64_t world() const;
};

/// Whether DeepSpeed saved there: `latest`, a tag's folder, or the files themselves.
bool holds_deepspeed_state(const std::string& folder);
ShardLook look_at_shards(const std::string& folder);

/// Nothing for a whole one. `is_stage_0`: the run's config says so; there the optimizer is in the model's file.
std::vector<Lack> lacks_of_shards(const ShardLook& look, bool is_stage_0);

struct TrainerCheckpoint {
  std::string folder;
  std::int64_t step = -1;  // of its name; -1: none
  bool is_stage_0 = false;
};
/// Of a checkpoint of the Trainer's, with DeepSpeed's files or its own. Takes the bytes of headers that it reads from
/// `header_bytes`, and reads none beyond.
std::vector<Lack> lacks_of_checkpoint(io::FileSystem& files, const TrainerCheckpoint& checkpoint,
                                      std::int64_t& header_bytes);

/// N of `checkpoint-N`; -1 for another name.
std::int64_t step_of_name(const std::string& name);

}  // namespace underkeel::doctor
