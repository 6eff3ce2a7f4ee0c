#pragma once
// What the passes share while a plan is being made: the schedule so far, and where each parameter lies.

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/plan.h"
#include "planner/planner.h"

namespace underkeel::planner {

using plan::BufferId;
using plan::Op;
using plan::UnitId;

/// A parameter's place in its unit.
struct Place {
  UnitId unit{};
  std::int64_t begin = 0;  // element
  std::int64_t rows = 1;
  std::int64_t columns = 0;
};

/// Buffers of a unit that live within a micro-step.
struct UnitBuffers {
  BufferId full = plan::no_buffer;  // weights as kernels read them; the home unless gathered
  BufferId micro_gradient = plan::no_buffer;  // whole unit
};

/// Keys and values of one layer, of every position so far.
struct LayerCache {
  BufferId keys = plan::no_buffer;
  BufferId values = plan::no_buffer;
};

struct Builder {
  const Request& request;
  plan::Schedule schedule;
  std::vector<UnitBuffers> unit_buffers;
  std::unordered_map<std::string, Place> places;  // by parameter name
  std::vector<LayerCache> cache;                  // by layer; empty: generation keeps none
  bool is_verified = true;                        // after every pass

  DType type() const { return request.weight_type; }
  BufferId add_buffer(plan::Buffer buffer);
  /// A transient matrix with a row for every token of a micro-batch of `max_rows`.
  BufferId add_rows_buffer(std::string name, plan::BufferKind kind, DType type,
                           std::int64_t max_rows, std::int64_t columns);
  /// The operand for a parameter's weights, or for its micro-step gradient.
  plan::Operand weight(const std::string& parameter) const;
  plan::Operand weight_gradient(const std::string& parameter, plan::Access access) const;
};

/// (all rows of the batch, columns) inside a buffer that holds `row_stride` columns.
plan::Operand batch_rows(BufferId buffer, plan::Access access, DType type, std::int64_t max_rows,
                         std::int64_t columns, std::int64_t first_column = 0,
                         std::int64_t row_stride = 0);
plan::Operand fixed(BufferId buffer, plan::Access access, DType type, std::int64_t rows,
                    std::int64_t columns, std::int64_t offset_bytes = 0);

Op compute(plan::Compute body, std::string label, std::int32_t layer = -1);

// The passes, in order. Each states what it needs and gives in its own file.

/// Groups parameters into units and gives every unit its homes.
void lay_out_units(Builder& builder);

/// Forward operations of one micro-batch, embedding to final norm.
struct Forward {
  std::vector<Op> ops;
  BufferId tokens, targets, sequence_starts, gradient_scale;
  BufferId hidden = plan::no_buffer;  // after the final norm, (rows, D)
  std::int64_t max_rows = 0;
};
Forward lower_forward(Builder& builder, std::int64_t max_rows, bool with_targets,
                      const std::string& prefix);
/// The same for rows that go on where the builder's cache ends, of one sequence, without targets.
Forward lower_cached_forward(Builder& builder, std::int64_t max_rows, const std::string& prefix);

/// Rows of logits that exist at once, of a segment with so many: as the kernels say, and more where that would make more
/// than 512 chunks, so that a list stays short however large a micro-batch is asked about. Not a matter of the budget.
std::int64_t loss_chunk_rows(const Request& request, std::int64_t rows);
/// Head and loss in chunks of rows; with gradients, also d(hidden) and the head's gradient.
/// Returns the buffer of d(hidden), or no_buffer.
BufferId lower_loss(Builder& builder, const Forward& forward, bool with_gradient, BufferId totals,
                    const std::string& prefix, std::vector<Op>& ops);
/// Logits of the batch's last row.
void lower_last_logits(Builder& builder, const Forward& forward, BufferId logits,
                       std::vector<Op>& ops);

/// Backward operations of `forward`, from d(hidden) to the embedding's gradient.
std::vector<Op> differentiate(Builder& builder, const Forward& forward, BufferId hidden_gradient);

/// Re-runs forward operations before the backward ones that need their results, instead of keeping them.
void recompute(Builder& builder, const std::vector<Op>& forward, std::vector<Op>& backward);

/// Stage 3: gathers a unit's weights before use, ahead as the bounds allow, and lets go of them after.
void gather_weights(Builder& builder, std::vector<Op>& ops);

/// Reduces each unit's micro-step gradient over ranks once it is complete and adds it to its home.
void reduce_gradients(Builder& builder, std::vector<Op>& ops, bool first);

/// On one GPU: instead of that, operations add to the homes themselves.
bool accumulates_in_place(const Request& request);
void accumulate_in_place(Builder& builder, std::vector<Op>& ops, bool first);

/// Whether gradients are larger by a scale that the update takes out: small ones would vanish in f16.
bool scales_loss(const Request& request);
/// Norm, clipping, update, and the gathers that follow; save, load, resume.
void build_update(Builder& builder, BufferId totals);
void build_evaluate_end(Builder& builder, BufferId totals);
void build_state_segments(Builder& builder);

/// On a GPU: pinned twins of what crosses the link, the matrix library's workspace, and scratch for sums
/// that are added in a written order.
void serve_gpu(Builder& builder);

/// On a GPU: operations that one pass over memory can do together become one.
void fuse(Builder& builder);

/// The bytes through which state moves to and from disk.
constexpr int staging_ring_size = 2;

/// Writes Acquire before the first and Release after the last use of every transient buffer.
void place_lifetimes(const plan::Schedule& schedule, plan::Segment& segment);

/// Puts every operation on its lane. `overlap` false keeps collectives on the compute lane.
void assign_lanes(plan::Segment& segment, bool overlap);

/// Adds the `after` edges, within segments and to entries, that list order implied.
void add_edges(plan::Schedule& schedule, const plan::ArenaLayout& layout);

/// Which segments may follow which.
void build_program(plan::Schedule& schedule, bool reloads);

/// Offsets for every buffer. Persistent ones lie below, transient ones above, segment by segment.
plan::ArenaLayout lay_out_arenas(const plan::Schedule& schedule, std::int64_t alignment_bytes,
                                 std::int64_t room_behind_bytes = 0);
/// Behind a buffer in the guard layout: more than the widest access of any kernel.
constexpr std::int64_t guard_bytes = 4096;

/// What was chosen where the request left a choice, with the alternatives in numbers: the request's own first.
std::vector<plan::Decision> decisions_of(const Request& request, const plan::Schedule& schedule);
/// The type that gradients are added in, where the run does not name one.
plan::Decision gradient_sums(const Request& request, const spec::ModelSpec& model);

/// Fills in the cost of every operation.
void estimate_costs(plan::Schedule& schedule, const Request& request);

}  // namespace underkeel::planner
