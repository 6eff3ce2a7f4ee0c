#pragma once
// Proves that a schedule may run as its lanes and edges say: no use without its bytes, no race, no
// byte that two buffers hold at once, no collective that ranks could meet in different orders.
// Not here: whether the numbers are right (an order that is legal may still compute something else).

#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/schedule.h"

namespace underkeel::verify {

constexpr plan::OpIndex no_op{0xffffffff};

/// One thing that is wrong.
struct Violation {
  plan::SegmentKind segment = plan::SegmentKind::load;
  plan::OpIndex op = no_op;                 // no_op: of the segment or the whole schedule
  plan::BufferId buffer = plan::no_buffer;  // no_buffer: not about a buffer
  plan::OpIndex other = no_op;              // the operation that it collides with, if any
  std::string what;                         // "layers.1.full: read races its writer"
};

/// Everything wrong with a schedule, in list order; empty when it is sound. One missing edge gives
/// one violation, however many later operations relied on it. When identities are out of range only
/// those are reported. May be called after every planner pass: a schedule without a program has
/// nothing in flight between segments and is not asked what was written before it.
/// Time: linear in operations times lanes (docs/decisions/0003).
std::vector<Violation> check(const plan::Schedule& schedule);

/// What one list of operations must hold between two planner passes, before lives, lanes and edges are
/// there: identities, sizes, and that every value is written before it is read, in list order. `given`
/// are transient buffers that a later pass will fill.
std::vector<Violation> check_list(const plan::Schedule& schedule, const plan::Segment& segment,
                                  std::span<const plan::BufferId> given);

/// The same as check(schedule), and that the layout gives every byte to one living buffer at a time, that offsets are
/// aligned and inside their block, and that the peaks are those of the lists.
std::vector<Violation> check(const plan::Plan& plan);

/// "micro.last, op 412 `layers.1 attention`: layers.1.full: read races its writer (op 398 `...`)".
std::string to_text(const plan::Schedule& schedule, const Violation& violation);

}  // namespace underkeel::verify
