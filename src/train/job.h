#pragma once
// What all ranks of a run share before the first of them starts: plain data, made once a process.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "plan/plan.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"
#include "train/checkpoint_files.h"
#include "train/checkpoint_writer.h"
#include "train/rank_device.h"
#include "train/resume.h"
#include "train/same_run.h"
#include "train/template_files.h"

namespace underkeel::train {

struct Job {
  spec::RunConfig run;
  spec::ModelSpec model;
  std::filesystem::path model_folder;
  std::string model_config_text;  // config.json as it was read
  int world_size = 1;
  int threads_per_rank = 1;
  int ranks_in_process = 1;
  std::int64_t planned_process_bytes = 0;  // bound on this process's resident memory
  bool is_on_gpus = false;
  std::int64_t joining_bytes = 0;  // that joining the GPUs took of a card, beside the plan
  plan::Plan plan;
  data::Datasets datasets;
  TemplateFiles template_files;
  std::string data_report;  // for the user, before training
  std::int64_t updates_per_epoch = 0;
  std::int64_t total_steps = 0;
  double counted_parameters = 0;  // all but the embedding's: what total_flos counts
  CheckpointFiles checkpoint_files;
  CheckpointFiles final_files;  // weights alone
  std::optional<Resume> resume;
  std::vector<std::string> notes;  // for the user, once

  std::string output() const { return run.output.string(); }
  data::SamplerConfig sampler_config(int rank) const;
  DataIdentity data_identity() const;
  ResumedRun as_resumed() const;
  std::int64_t sequences_per_step() const;  // of all ranks
  /// config.json, tokenizer and generation files for a folder that is to be opened elsewhere.
  Result<std::vector<ExtraFile>> folder_files(io::FileSystem& files) const;
};

/// How the ranks of a run are spread.
struct World {
  int size = 1;
  int ranks_on_node = 1;
  int ranks_in_process = 1;
  std::string source;  // "mpirun", "--ranks": for messages
};

/// For the memory that `devices` have left. Reads the model's description, finds the checkpoint to resume from, reads and tokenises the data, makes and
/// checks the plan for the largest micro-batch, and checks the disk. Reads no weights. What could not fit whatever
/// the data are is refused before they are read.
/// Errors: does_not_fit with changes that fit; everything that its parts refuse.
Result<Job> prepare_job(io::FileSystem& files, const spec::RunConfig& run, const World& world,
                        const RankDevices& devices);

}  // namespace underkeel::train
