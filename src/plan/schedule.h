#pragma once
// The schedule: everything a run does, as flat lists of operations over named buffers. Plain data:
// the planner makes it, and verify, simulate, render and exec read it.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/operations.h"
#include "tensor/dtype.h"

namespace underkeel::plan {

/// An in-order queue of work: a stream or a thread. Lanes are data; these are the usual ones.
struct Lane {
  std::string name;
};
namespace lanes {
constexpr LaneId compute{0};
constexpr LaneId collective{1};
constexpr LaneId save_copy{2};
constexpr LaneId save_disk{3};
constexpr int count = 4;
}  // namespace lanes

/// A range of bytes in one memory space.
struct Buffer {
  std::string name;
  MemorySpace space = MemorySpace::device;
  BufferKind kind = BufferKind::activations;
  bool persistent = false;  // holds its bytes for the whole run; else from Acquire to Release
  DType type = DType::f32;
  std::int64_t size_bytes = 0;
};

/// A tensor inside a unit's flat run of elements.
struct UnitTensor {
  std::string name;                 // Hugging Face name
  std::vector<std::int64_t> shape;  // as stored
  std::int64_t begin = 0;           // first element inside the unit
  std::int64_t element_count = 0;
};

/// Parameters that are gathered, reduced and updated together, as one flat run of elements. The
/// grouping depends on the model alone, so that shards, and sums over them, are the same at every
/// stage.
struct Unit {
  std::string name;  // "layers.3"
  std::int64_t element_count = 0;
  std::int64_t shard_elements = 0;  // of the largest shard
  bool weight_decay = true;
  DType micro_gradient_type = DType::f32;  // of one micro-step's gradient, before accumulation
  std::vector<UnitTensor> tensors;

  // Homes: full or one shard, as the stage says; no_buffer where there is none.
  BufferId weights = no_buffer;
  BufferId master = no_buffer;  // f32 copy; no_buffer when the weights are f32 themselves
  BufferId moment1 = no_buffer;
  BufferId moment2 = no_buffer;
  BufferId gradient = no_buffer;  // accumulated over the window
  bool weights_sharded = false;
  bool optimizer_sharded = false;
  bool gradient_sharded = false;
};

/// What an operation costs at the largest micro-batch, for the simulator.
struct Cost {
  double flops = 0;
  double memory_bytes = 0;  // read and written in its own space
  double link_bytes = 0;    // received from other ranks
  double disk_bytes = 0;
  bool per_row = false;  // flops and memory_bytes scale with the micro-batch's rows
};

struct Op {
  LaneId lane = lanes::compute;
  std::vector<OpIndex> after;        // operations of other lanes that must end first
  std::vector<EntryId> after_entry;  // likewise, begun in an earlier segment
  EntryId entry = no_entry;          // set: may still run when the segment ends
  OpBody body;
  std::string label;  // stable name: "layers.3 attention forward"
  std::int32_t layer = -1;
  Cost cost;
  BufferId when = no_buffer;  // set: an f32 flag; the operation is skipped where it is 0
  std::vector<int> on;        // ranks that run it; empty: all. Never set on a collective
};

/// Constants of the rotary embedding that every rope_table operation uses.
struct Rotary {
  enum class Kind : std::uint8_t { plain, linear, dynamic, llama3, yarn };
  Kind kind = Kind::plain;
  double theta = 10000.0;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;
  double attention_scaling = 1.0;
  std::int64_t max_position_embeddings = 2048;
  std::int64_t original_max_position_embeddings = 2048;
};

/// Work that may be in flight between segments.
struct Entry {
  std::string name;
};

enum class SegmentKind : std::uint8_t {
  load,
  resume,
  micro_first,
  micro_middle,
  micro_last,
  micro_only,
  update,
  evaluate,
  evaluate_end,
  save,
  generate,       // from the first token on
  generate_next,  // one token more, after what a cache holds
};
constexpr int segment_kind_count = 12;
std::string_view name_of(SegmentKind kind);

struct Segment {
  SegmentKind kind = SegmentKind::load;
  std::int64_t max_rows = 0;  // of the micro-batch; 0 where there is none
  std::vector<Op> ops;
  std::vector<SegmentKind> also{};  // further kinds that run the same list
  std::int64_t mean_rows = 0;       // of its micro-batches, for forecasts of time; 0: not known

  bool is(SegmentKind asked) const {
    return kind == asked || std::find(also.begin(), also.end(), asked) != also.end();
  }
};

/// Which segment may follow which. `train` picks among them from values that all ranks agree on.
struct Program {
  struct Step {
    SegmentKind from;
    SegmentKind to;
  };
  std::vector<Step> steps;
};

struct Schedule {
  std::vector<Lane> lanes;
  std::vector<Unit> units;
  std::vector<Buffer> buffers;
  std::vector<Entry> entries;
  std::vector<Segment> segments;
  Program program;
  Rotary rotary;
  std::vector<std::int64_t> shape_classes;  // rows, ascending; the last is the largest micro-batch

  const Buffer& buffer(BufferId id) const { return buffers[index(id)]; }
  const Unit& unit(UnitId id) const { return units[index(id)]; }
  const Segment* find(SegmentKind kind) const {
    for (const Segment& segment : segments)
      if (segment.is(kind)) return &segment;
    return nullptr;
  }
};

}  // namespace underkeel::plan
