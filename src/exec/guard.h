#pragma once
// The guard layout at work: memory that nothing has written holds numbers that are none, and room behind every buffer shows
// who wrote beyond its end. For finding wrong accesses; a run pays for it in memory, and in time where buffers begin.

#include "base/result.h"
#include "device/queue.h"
#include "exec/bind.h"

namespace underkeel::exec {

/// Fills all arenas: before anything lies in them.
Result<void> fill_guarded(const Context& context, device::Queue& queue);
/// Fills a buffer whose life begins.
Result<void> fill_guarded(const Context& context, plan::BufferId id, device::Queue& queue);
/// Looks at the room behind every buffer. Nothing may be queued.
/// Errors:  io naming the first buffer behind which something was written, and how many there are.
Result<void> check_guards(const Context& context, device::Queue& queue);

}  // namespace underkeel::exec
