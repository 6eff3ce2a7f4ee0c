#pragma once
// Plans of a step without the segments that move state (load, resume, save): a third of a plan's operations, and more of
// one with few layers. Sizes and times of a step are make_plan()'s. Not verified. For estimates; never to be run.

#include <array>
#include <cstdint>

#include "planner/planner.h"

namespace underkeel::planner {

struct Builder;

plan::Plan make_plan_of_steps(const Request& request);

/// The sizes of its arenas alone.
std::array<std::int64_t, plan::memory_space_count> sizes_of_steps(const Request& request);

/// The buffers through which state moves; plans have them whether state moves or not.
void add_state_ring(Builder& builder);

}  // namespace underkeel::planner
