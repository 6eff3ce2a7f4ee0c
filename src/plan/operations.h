#pragma once
// The kinds of operation a schedule is made of, and the identities they refer to.

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "tensor/dtype.h"

namespace underkeel::plan {

enum class BufferId : std::uint32_t {};
enum class LaneId : std::uint8_t {};
enum class UnitId : std::uint32_t {};
enum class EntryId : std::uint32_t {};
/// Position of an operation in its segment's list.
enum class OpIndex : std::uint32_t {};

constexpr BufferId no_buffer{0xffffffff};
constexpr EntryId no_entry{0xffffffff};

template <class Id>
constexpr std::size_t index(Id id) {
  return static_cast<std::size_t>(id);
}

enum class MemorySpace : std::uint8_t { device, pinned_host, host, nvme };
constexpr int memory_space_count = 4;
std::string_view name_of(MemorySpace space);

/// What a buffer holds, for the forecast by kind.
enum class BufferKind : std::uint8_t {
  weights,
  gradients,
  optimizer,
  activations,
  gathered,
  staging,
  workspace,
  overhead
};
constexpr int buffer_kind_count = 8;
std::string_view name_of(BufferKind kind);

/// How many rows of an operand: a fixed number, or a slice of the micro-batch's rows.
struct Rows {
  bool of_batch = false;
  std::int64_t begin = 0;
  std::int64_t count = 0;  // of_batch: the most there can be; cut at the batch's own rows
  std::int64_t extra = 0;  // rows beyond the batch's (sequence starts have one)
  bool last_only = false;  // of_batch: the batch's last row alone
};

enum class Access : std::uint8_t { read, write, read_write };

/// A matrix inside a buffer, as one operation sees it.
struct Operand {
  BufferId buffer = no_buffer;
  Access access = Access::read;
  DType type = DType::f32;
  std::int64_t offset_bytes = 0;  // of element (0, 0), for row 0 of the batch
  Rows rows;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;  // in elements
};

/// Which function of the kernel table runs. Operands stand in the order of the argument struct's
/// views (kernels/*.h).
enum class Kernel : std::uint8_t {
  matmul,
  column_sum,
  embedding_forward,
  embedding_backward,
  rms_norm_forward,
  rms_norm_backward,
  rope_table,
  rope_apply,
  attention_forward,
  attention_backward,
  attention_cached,
  swiglu_forward,
  swiglu_backward,
  cross_entropy,
  copy,
  fill,
  clip_factor,
};
constexpr int kernel_count = 17;
std::string_view name_of(Kernel kernel);

struct Acquire {
  BufferId buffer = no_buffer;
};
struct Release {
  BufferId buffer = no_buffer;
};

/// full <- the shards of all ranks. `shard` is its own buffer, or `full` itself when the own part
/// lies there.
struct Gather {
  UnitId unit{};
  BufferId shard = no_buffer;
  BufferId full = no_buffer;
  DType type = DType::f32;
};
/// Own range of `full` <- sum over ranks, in place; or, with `into`, the gradient's home [+]= that sum, rounded to `type`
/// first, over the own range, and nothing of `full` is left.
struct ReduceScatter {
  UnitId unit{};
  BufferId full = no_buffer;
  BufferId staging = no_buffer;  // no_buffer on one rank
  DType type = DType::f32;
  BufferId into = no_buffer;
  bool first = false;  // overwrite the home instead of adding
};
/// full <- sum over ranks, in place, on every rank.
struct AllReduce {
  UnitId unit{};
  BufferId full = no_buffer;
  BufferId staging = no_buffer;
  DType type = DType::f32;
};
/// all (world x count) f64 <- the `count` f64 values of every rank, in rank order.
struct GatherValues {
  BufferId own = no_buffer;
  BufferId all = no_buffer;
  std::int64_t count = 0;
};

struct Compute {
  Kernel kernel = Kernel::copy;
  std::vector<Operand> operands;
  // What the argument struct holds besides views; each kernel reads what it has.
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;         // into the output (dx for rms_norm_backward)
  bool accumulate_weight = false;  // rms_norm_backward: into dweight
  bool inverse = false;            // rope_apply
  bool with_gradient = false;      // cross_entropy
  float value = 0;                 // epsilon, scale, fill value or the largest norm
  std::int32_t groups = 1;         // rms_norm
  std::int32_t query_heads = 0;
  std::int32_t key_heads = 0;
  std::int32_t head_width = 0;
  std::int64_t window = 0;
};

/// gradient home [+]= this micro-step's gradient, over the rank's own shard, or over the whole unit.
struct Accumulate {
  UnitId unit{};
  BufferId from = no_buffer;  // whole unit, after its reduction
  BufferId into = no_buffer;
  bool whole = false;  // stage 0: every rank keeps the sum of the whole unit
  bool first = false;  // overwrite instead of adding
};
/// Slot `slot` of `sums` <- sum of squares of the own shard's gradient.
struct SumSquares {
  UnitId unit{};
  BufferId gradient = no_buffer;
  BufferId sums = no_buffer;
  std::int64_t slot = 0;
  BufferId scratch = no_buffer;  // on a GPU
};
/// One AdamW step over what the rank holds of the unit's optimizer state.
struct Update {
  UnitId unit{};
  BufferId gradient = no_buffer;
  BufferId step_values = no_buffer;
  BufferId clip = no_buffer;
  double beta1 = 0;  // double: 1 - beta2 loses five figures when beta2 is rounded to f32 first
  double beta2 = 0;
  float epsilon = 0;
  float weight_decay = 0;
  // Weights and moments are bf16 without a master, rounded at random (AdamwAtRandomArgs; stream: the unit).
  bool rounds_at_random = false;
  std::uint64_t seed = 0;
};

/// Run-time inputs, copied from the caller into a buffer.
enum class Input : std::uint8_t {
  tokens,
  targets,
  positions,
  sequence_starts,
  gradient_scale,
  step_values,
  loss_scale,
  control
};
std::string_view name_of(Input input);
struct Feed {
  Input input = Input::tokens;
  BufferId into = no_buffer;
  BufferId pinned = no_buffer;  // on a GPU: host memory that the copy starts from
};
/// Values that ranks add up once per window, f64: the loss summed over trained tokens, and a control
/// word (how many ranks ask for something; see train/control.h).
constexpr std::int64_t total_count = 2;
constexpr std::int64_t total_loss = 0;
constexpr std::int64_t total_control = 1;

/// Values that the caller may read once the segment has ended.
enum class Output : std::uint8_t { totals, clip, logits };
std::string_view name_of(Output output);
struct Publish {
  Output output = Output::totals;
  BufferId from = no_buffer;
  BufferId pinned = no_buffer;  // on a GPU: host memory that the copy ends in
};

/// Parts of a unit that a checkpoint holds.
enum class StatePart : std::uint8_t { weights, master, moment1, moment2 };
std::string_view name_of(StatePart part);

/// A piece of the rank's own shard of a unit's part, in elements from the start of the shard.
struct StatePiece {
  UnitId unit{};
  StatePart part = StatePart::weights;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
/// staging <- piece of the state.
struct CopyOut {
  StatePiece piece;
  BufferId state = no_buffer;
  BufferId staging = no_buffer;
};
/// The piece in `staging` is written to the checkpoint.
struct Save {
  StatePiece piece;
  BufferId staging = no_buffer;
};
/// The piece is read from a model folder or checkpoint into `staging`, as f32 or, where it is kept in the type of its home,
/// in that ...
struct Load {
  StatePiece piece;
  BufferId staging = no_buffer;
  BufferId state = no_buffer;  // the home that it is for: its type counts
};
/// ... and from there into its home; into the twin of a home that already holds the piece, from there if it came in that
/// home's type, which has lost nothing.
struct CopyIn {
  StatePiece piece;
  BufferId staging = no_buffer;
  BufferId state = no_buffer;
  BufferId twin = no_buffer;
};

using OpBody =
    std::variant<Acquire, Release, Gather, ReduceScatter, AllReduce, GatherValues, Compute,
                 Accumulate, SumSquares, Update, Feed, Publish, CopyOut, Save, Load, CopyIn>;

}  // namespace underkeel::plan
