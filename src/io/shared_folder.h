#pragma once
// Whether all ranks see one output folder: rank 0 leaves a file with a token, the others look for it.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/file.h"

namespace underkeel::io {

/// On rank 0: makes `output` where needed and puts the token there.
Result<void> place_probe(FileSystem& files, const std::string& output, std::string_view token);
/// On every rank, after a barrier: whether the token is the one of this run.
Result<bool> sees_probe(FileSystem& files, const std::string& output, std::string_view token);
/// On rank 0, after another barrier.
Result<void> remove_probe(FileSystem& files, const std::string& output);

}  // namespace underkeel::io
