#pragma once
// Algorithms of a GPU's products over runs: kept on this machine so that they are timed once, and in checkpoints, so that a
// resumed run has the bits of one that was not interrupted.

#include <string>
#include <vector>

#include "io/file.h"
#include "kernels/matmul_choice.h"
#include "train/resume.h"

namespace underkeel::train {

/// In a checkpoint's folder.
constexpr const char* matmul_file = "matmul.json";

/// Choices as JSON and back.
std::string to_json(const kernels::MatmulChoices& choices);
/// Errors: bad_file, naming `where`.
Result<kernels::MatmulChoices> matmul_choices_from_json(std::string_view text,
                                                        const std::string& where);

/// Where this machine keeps them: underkeel/matmul in the cache folder of the user; empty where there is none.
std::string matmul_cache_folder();

/// Gives the matrix library what the checkpoint names, and for other products, if `limit_s` is not 0, what is kept in
/// `cache_folder`. A checkpoint names all that its run used; on another number of ranks a run has other products.
/// `notes` gets what the user should know: other hardware than the checkpoint's.
/// Errors: of reading a checkpoint. A cache that cannot be read is as good as none.
Result<void> recall_matmuls(io::FileSystem& files, const Resume* resume,
                            const std::string& cache_folder, double limit_s,
                            std::vector<std::string>& notes);

/// Adds what this run used to the cache, also where time was up: the next run has the same bits. Not being able to is no
/// error: it then times again.
void keep_matmuls(io::FileSystem& files, const std::string& cache_folder);

}  // namespace underkeel::train
