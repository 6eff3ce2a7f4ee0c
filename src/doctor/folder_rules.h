#pragma once
// Weights, adapters, checkpoints, tokenizer and generation configs: what is missing, empty, doubled or does not go
// together. Headers and small files only; weights are not read, except the second matrices of adapters.

#include "doctor/doctor.h"
#include "io/file.h"
#include "io/safetensors.h"

namespace underkeel::doctor {

void look_at_folders(const Question& question, const Inputs& inputs, Diagnosis& diagnosis);

// The parts.
void check_weights(io::FileSystem& files, const Inputs& inputs, const std::string& path,
                   Diagnosis& diagnosis);
void check_adapter(io::FileSystem& files, const Inputs& inputs, const io::SafetensorsHeader& header,
                   const std::string& folder, Diagnosis& diagnosis);
void check_deepspeed_checkpoint(io::FileSystem& files, const Inputs& inputs,
                                const std::string& path, Diagnosis& diagnosis);
void check_output_folder(io::FileSystem& files, const std::string& path, Diagnosis& diagnosis);
void check_stop_tokens(const Inputs& inputs, Diagnosis& diagnosis);

}  // namespace underkeel::doctor
