#pragma once
// The end of a process whose failed rank cannot be torn down: a GPU's queue or a library may wait for a peer for ever.

#include "base/error.h"

namespace underkeel::train {

/// Ends this process in `grace_s` seconds if it has not ended by then, with the error's words and exit code; a launcher then
/// ends the others. Starts a thread once a process; later calls do nothing.
void end_process_after(double grace_s, const Error& error);

}  // namespace underkeel::train
