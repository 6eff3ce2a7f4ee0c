#pragma once
// Weights, adapters, checkpoints, tokenizer and generation configs: what is missing, empty, doubled or does not go
// together. Headers and small files; of weights no more is read than an answer has time for, and it says how much.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "doctor/checkpoint_look.h"
#include "doctor/doctor.h"
#include "io/file.h"
#include "io/safetensors.h"

namespace underkeel::doctor {

void look_at_folders(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);

/// The most that is read of weights: whole below it, spread blocks of larger ones. About 0.1 s.
constexpr std::int64_t most_value_bytes = std::int64_t{32} << 20;

/// The most of headers and index that is parsed: of 20,000 tensors. About 0.2 s.
constexpr std::int64_t most_header_bytes = std::int64_t{3} << 20;

// The parts.
struct WeightLook {
  bool expects_weights = true;  // a folder without any is told
  bool reads_values = true;     // else headers alone
};
void check_weights(io::FileSystem& files, const Inputs& inputs, const std::string& path,
                   Diagnosis& diagnosis, const WeightLook& look);
void check_adapter(io::FileSystem& files, const Inputs& inputs, const io::SafetensorsHeader& header,
                   const std::string& folder, Diagnosis& diagnosis);
struct MissingTensors {
  const std::map<std::string_view, const io::TensorEntry*>& found;  // by name, of all files
  std::string first;
  std::int64_t count = 0;
  bool is_all = true;        // nothing else is wrong with the tensors
  std::vector<Slot> totals;  // `found` and `expected`
  std::string file;
};
/// The error that tells them, with the cause where the names show it.
Finding missing_tensors(const MissingTensors& missing, const spec::ModelSpec& model);
/// A file that a download has left in a folder without weights.
std::optional<Finding> unfinished_download(io::FileSystem& files, const std::string& folder,
                                           const std::string& shown);
/// Of files of adapters beside a folder's weights: what either engine makes of the two.
void check_adapters_beside(const Inputs& inputs, const std::string& folder,
                           const std::vector<std::string>& names, Diagnosis& diagnosis);
/// Of a config of adapters: what it lacks, and what they would be where it is given by itself.
void check_adapter_config(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);
/// Which ranks' files are there, and whether as many ranks as would run can resume from them.
void check_deepspeed_checkpoint(const Inputs& inputs, const std::string& path,
                                Diagnosis& diagnosis);
/// For a resume whose checkpoint is not at hand.
void tell_ranks_of_resume(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);
/// The checkpoint that LLaMA-Factory goes on from without being told to; empty where there is none, or the run says what to do.
std::string resumed_by_itself(const Inputs& inputs);
/// Tells it, and what it lacks.
void check_resume_by_itself(io::FileSystem& files, const Inputs& inputs, Diagnosis& diagnosis);
/// The newest complete checkpoint's folder, "" without one. Says nothing of a folder without checkpoints.
std::string check_output_folder(io::FileSystem& files, const Inputs& inputs,
                                const std::string& path, Diagnosis& diagnosis);
/// Of a checkpoint of ours: the files that a resume with its weights alone reads; nothing where one of them is gone or
/// has another size than the manifest says.
std::optional<std::set<std::string>> files_of_weights(io::FileSystem& files,
                                                      const std::string& folder);
void check_own_checkpoint(io::FileSystem& files, const Inputs& inputs, const std::string& folder,
                          Diagnosis& diagnosis);
void check_stop_tokens(const Inputs& inputs, Diagnosis& diagnosis);

}  // namespace underkeel::doctor
