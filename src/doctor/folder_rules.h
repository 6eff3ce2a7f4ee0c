#pragma once
// Weights, adapters, checkpoints, tokenizer and generation configs: what is missing, empty, doubled or does not go
// together. Headers and small files; of weights no more is read than an answer has time for, and it says how much.

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
/// Of files of adapters beside a folder's weights: what either engine makes of the two.
void check_adapters_beside(const Inputs& inputs, const std::string& folder,
                           const std::vector<std::string>& names, Diagnosis& diagnosis);
/// Of a config of adapters: what it lacks, and what they would be where it is given by itself.
void check_adapter_config(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);
/// Whether DeepSpeed saved there: `latest`, a tag's folder, or the files themselves.
bool holds_deepspeed_state(const std::string& folder);
/// Which ranks' files are there, and whether as many ranks as would run can resume from them.
void check_deepspeed_checkpoint(const Inputs& inputs, const std::string& path,
                                Diagnosis& diagnosis);
/// For a resume whose checkpoint is not at hand.
void tell_ranks_of_resume(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);
/// The newest complete checkpoint's folder, "" without one. Says nothing of a folder without checkpoints.
std::string check_output_folder(io::FileSystem& files, const std::string& path,
                                Diagnosis& diagnosis);
void check_own_checkpoint(io::FileSystem& files, const Inputs& inputs, const std::string& folder,
                          Diagnosis& diagnosis);
void check_stop_tokens(const Inputs& inputs, Diagnosis& diagnosis);

}  // namespace underkeel::doctor
