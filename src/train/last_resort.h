#pragma once
// The end of a process whose failed rank cannot be torn down: a GPU's queue or a library may wait for a peer for ever.

#include "base/error.h"

namespace underkeel::train {

/// Prints the error and ends this process with its exit code, whatever else still runs in it.
[[noreturn]] void end_process(const Error& error);

/// Ends this process in `grace_s` seconds if it has not ended by then, as end_process() does; a launcher then ends
/// the others. Starts a thread once a process; later calls do nothing.
void end_process_after(double grace_s, const Error& error);

}  // namespace underkeel::train
