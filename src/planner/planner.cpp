// Runs the passes in order.

#include "planner/planner.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "plan/lifetimes.h"
#include "plan/uses.h"
#include "planner/batch_rows.h"
#include "planner/builder.h"
#include "planner/steps_alone.h"
#include "tensor/shard.h"
#include "verify/verify.h"

namespace underkeel::planner {

namespace {

using plan::SegmentKind;

plan::Rotary rotary_of(const spec::ModelSpec& model) {
  plan::Rotary rotary;
  switch (model.rope.type) {
    case spec::RopeType::plain:
      rotary.kind = plan::Rotary::Kind::plain;
      break;
    case spec::RopeType::linear:
      rotary.kind = plan::Rotary::Kind::linear;
      break;
    case spec::RopeType::dynamic:
      rotary.kind = plan::Rotary::Kind::dynamic;
      break;
    case spec::RopeType::llama3:
      rotary.kind = plan::Rotary::Kind::llama3;
      break;
    case spec::RopeType::yarn:
      rotary.kind = plan::Rotary::Kind::yarn;
      break;
  }
  rotary.theta = model.rope.theta;
  rotary.factor = model.rope.factor;
  rotary.low_freq_factor = model.rope.low_freq_factor;
  rotary.high_freq_factor = model.rope.high_freq_factor;
  rotary.beta_fast = model.rope.beta_fast;
  rotary.beta_slow = model.rope.beta_slow;
  rotary.truncate = model.rope.truncate;
  rotary.attention_scaling = model.rope.attention_scaling;
  rotary.max_position_embeddings = model.max_position_embeddings;
  rotary.original_max_position_embeddings = model.rope.original_max_position_embeddings;
  return rotary;
}

// Even parts of the largest micro-batch, so that a short batch costs little more than it is: on average half a part.
// Large ones are cut finer, at whole tiles of a GPU's products.
struct ClassCut {
  std::int64_t count;
  std::int64_t granule_rows;
};
ClassCut class_cut(std::int64_t max_rows) {
  constexpr std::int64_t large_rows = 8192;
  return max_rows < large_rows ? ClassCut{8, 16} : ClassCut{16, 128};
}

std::vector<std::int64_t> shape_classes(std::int64_t max_rows) {
  const ClassCut cut = class_cut(max_rows);
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 1; i <= cut.count; ++i) {
    const std::int64_t rows =
        std::min(max_rows, round_up(ceil_div(max_rows * i, cut.count), cut.granule_rows));
    if (classes.empty() || rows > classes.back()) classes.push_back(rows);
  }
  return classes;
}

BufferId add_totals(Builder& builder, std::string name) {
  return builder.add_buffer({.name = std::move(name),
                             .kind = plan::BufferKind::workspace,
                             .persistent = true,
                             .type = DType::f64,
                             .size_bytes = 8 * plan::total_count});
}

Op clear_totals(BufferId totals) {
  return compute(
      {.kernel = plan::Kernel::fill,
       .operands = {fixed(totals, plan::Access::write, DType::f64, 1, plan::total_count)}},
      "clear totals");
}

// Every pass is held to what its list must keep; a violation is a fault of the pass.
void verify_pass(const Builder& builder, const plan::Segment& segment, std::string_view pass,
                 std::span<const BufferId> given = {}) {
  if (!builder.is_verified) return;
  for (const verify::Violation& violation : verify::check_list(builder.schedule, segment, given))
    UK_CHECK(false, fmt::format("{} of {}: {}", pass, name_of(segment.kind), violation.what));
}

// Whole weights that stage 3 has yet to gather.
std::vector<BufferId> weights_to_gather(const Builder& builder) {
  std::vector<BufferId> waiting;
  for (const UnitBuffers& buffers : builder.unit_buffers)
    if (buffers.full != plan::no_buffer && !builder.schedule.buffer(buffers.full).persistent)
      waiting.push_back(buffers.full);
  return waiting;
}

// One micro-step in the form that `kind` needs.
plan::Segment micro_segment(Builder& builder, SegmentKind kind, BufferId totals) {
  plan::Segment segment{
      .kind = kind, .max_rows = builder.request.max_rows, .mean_rows = builder.request.mean_rows};
  const bool first = kind == SegmentKind::micro_first || kind == SegmentKind::micro_only;
  std::vector<Op>& ops = segment.ops;
  const Forward forward = lower_forward(builder, segment.max_rows, true, "");
  if (first) ops.push_back(clear_totals(totals));
  ops.insert(ops.end(), forward.ops.begin(), forward.ops.end());
  const BufferId hidden_gradient = lower_loss(builder, forward, true, totals, "", ops);
  const std::vector<BufferId> given = weights_to_gather(builder);
  verify_pass(builder, segment, "lower", given);
  std::vector<Op> backward = differentiate(builder, forward, hidden_gradient);
  const std::size_t forward_count = ops.size();
  const auto append_backward = [&](std::string_view pass) {
    ops.insert(ops.end(), std::make_move_iterator(backward.begin()),
               std::make_move_iterator(backward.end()));
    verify_pass(builder, segment, pass, given);
  };
  append_backward("differentiate");
  backward.assign(std::make_move_iterator(ops.begin() + static_cast<std::ptrdiff_t>(forward_count)),
                  std::make_move_iterator(ops.end()));
  ops.resize(forward_count);
  recompute(builder, forward.ops, backward);
  append_backward("recompute");
  gather_weights(builder, ops);
  verify_pass(builder, segment, "gather");
  if (accumulates_in_place(builder.request)) {
    accumulate_in_place(builder, ops, first);
  } else {
    reduce_gradients(builder, ops, first);
  }
  verify_pass(builder, segment, "reduce");
  return segment;
}

// Transient buffers belong to one segment each: the next segment gets its own.
void renew_unit_buffers(Builder& builder) {
  for (std::size_t i = 0; i < builder.unit_buffers.size(); ++i) {
    UnitBuffers& buffers = builder.unit_buffers[i];
    const auto renew = [&](BufferId& id) {
      if (id == plan::no_buffer || builder.schedule.buffer(id).persistent) return;
      plan::Buffer copy = builder.schedule.buffer(id);
      id = builder.add_buffer(std::move(copy));
    };
    renew(buffers.full);
    renew(buffers.micro_gradient);
  }
}

// A forward pass without gradients: its passes after lowering.
void finish_forward(Builder& builder, plan::Segment segment) {
  verify_pass(builder, segment, "lower", weights_to_gather(builder));
  gather_weights(builder, segment.ops);
  verify_pass(builder, segment, "gather");
  renew_unit_buffers(builder);
  builder.schedule.segments.push_back(std::move(segment));
}

// One pass from the first token on; with a cache that pass fills it, and each token after it is a pass of one row.
void build_generation(Builder& builder) {
  const Request& request = builder.request;
  const spec::ModelSpec& model = request.model;
  const auto add = [&](SegmentKind kind, std::int64_t max_rows, const std::string& prefix) {
    plan::Segment segment{.kind = kind, .max_rows = max_rows};
    const Forward forward = builder.cache.empty() ? lower_forward(builder, max_rows, false, prefix)
                                                  : lower_cached_forward(builder, max_rows, prefix);
    segment.ops = forward.ops;
    const BufferId logits =
        builder.add_buffer({.name = prefix + "logits",
                            .kind = plan::BufferKind::workspace,
                            .size_bytes = bytes_of(DType::f32, model.vocabulary)});
    lower_last_logits(builder, forward, logits, segment.ops);
    finish_forward(builder, std::move(segment));
  };
  if (request.cache_rows > 0) {
    UK_CHECK(!request.on_gpu, "attention_cached has no CUDA kernel");
    UK_CHECK(request.cache_rows >= request.max_generation_rows, "a cache holds all positions");
    const std::int64_t columns = model.key_heads * model.head_width;
    plan::Segment& load = builder.schedule.segments.front();
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      const auto keep = [&](std::string_view what) {
        const BufferId id = builder.add_buffer(
            {.name = fmt::format("cache.layers.{}.{}", layer, what),
             .kind = plan::BufferKind::activations,
             .persistent = true,
             .type = builder.type(),
             .size_bytes = bytes_of(builder.type(), request.cache_rows * columns)});
        load.ops.push_back(compute({.kernel = plan::Kernel::fill,
                                    .operands = {fixed(id, plan::Access::write, builder.type(),
                                                       request.cache_rows, columns)}},
                                   fmt::format("clear cache.layers.{}.{}", layer, what), -1));
        return id;
      };
      builder.cache.push_back({.keys = keep("keys"), .values = keep("values")});
    }
  }
  add(SegmentKind::generate, request.max_generation_rows, "generation.");
  if (request.cache_rows > 0) add(SegmentKind::generate_next, 1, "generation.next.");
}

enum class Segments : std::uint8_t { all, of_steps };

void build_segments(Builder& builder, Segments wanted) {
  const Request& request = builder.request;
  if (wanted == Segments::all) {
    build_state_segments(builder);
  } else {
    add_state_ring(builder);
  }
  if (request.train) {
    const BufferId totals = add_totals(builder, "totals");
    // A window's first micro-step starts the sums, the later ones add to them.
    const auto add = [&](SegmentKind kind, std::vector<SegmentKind> also) {
      builder.schedule.segments.push_back(micro_segment(builder, kind, totals));
      builder.schedule.segments.back().also = std::move(also);
      renew_unit_buffers(builder);
    };
    if (request.accumulation_steps == 1) {
      add(SegmentKind::micro_only, {});
    } else {
      add(SegmentKind::micro_first, {SegmentKind::micro_only});
      add(SegmentKind::micro_last, request.accumulation_steps > 2
                                       ? std::vector{SegmentKind::micro_middle}
                                       : std::vector<SegmentKind>{});
    }
    build_update(builder, totals);
  }
  if (request.max_evaluation_rows > 0) {
    const BufferId totals = add_totals(builder, "evaluation.totals");
    plan::Segment segment{.kind = SegmentKind::evaluate,
                          .max_rows = request.max_evaluation_rows,
                          .mean_rows = request.mean_evaluation_rows};
    const Forward forward = lower_forward(builder, segment.max_rows, true, "evaluation.");
    segment.ops = forward.ops;
    lower_loss(builder, forward, false, totals, "evaluation.", segment.ops);
    finish_forward(builder, std::move(segment));
    build_evaluate_end(builder, totals);
    for (plan::Segment& loading : builder.schedule.segments)
      if (loading.kind == SegmentKind::load || loading.kind == SegmentKind::resume)
        loading.ops.push_back(clear_totals(totals));
  }
  if (request.max_generation_rows > 0) build_generation(builder);
}

void find_peaks(plan::Plan& plan) {
  const plan::Schedule& schedule = plan.schedule;
  for (std::size_t space = 0; space < plan::memory_space_count; ++space)
    plan.persistent_bytes[space] =
        plan::persistent_bytes(schedule, static_cast<plan::MemorySpace>(space));
  std::array<std::array<std::int64_t, plan::buffer_kind_count>, plan::memory_space_count> base{};
  for (const plan::Buffer& buffer : schedule.buffers)
    if (buffer.persistent) base[index(buffer.space)][index(buffer.kind)] += buffer.size_bytes;
  for (const plan::Segment& segment : schedule.segments) {
    std::array<plan::Peak, plan::memory_space_count> peaks{};
    auto live = base;
    std::array<std::int64_t, plan::memory_space_count> sum = plan.persistent_bytes;
    for (std::size_t space = 0; space < peaks.size(); ++space)
      peaks[space] = {.segment = segment.kind,
                      .space = static_cast<plan::MemorySpace>(space),
                      .size_bytes = sum[space],
                      .by_kind = base[space]};
    for (std::size_t i = 0; i < segment.ops.size(); ++i) {
      const BufferId born = plan::acquired_by(segment.ops[i]);
      const BufferId gone = plan::released_by(segment.ops[i]);
      if (born == plan::no_buffer && gone == plan::no_buffer) continue;
      const plan::Buffer& buffer = schedule.buffer(born != plan::no_buffer ? born : gone);
      const std::int64_t change = born != plan::no_buffer ? buffer.size_bytes : -buffer.size_bytes;
      live[index(buffer.space)][index(buffer.kind)] += change;
      sum[index(buffer.space)] += change;
      plan::Peak& peak = peaks[index(buffer.space)];
      if (sum[index(buffer.space)] <= peak.size_bytes) continue;
      peak.size_bytes = sum[index(buffer.space)];
      peak.op = plan::OpIndex{static_cast<std::uint32_t>(i)};
      peak.by_kind = live[index(buffer.space)];
    }
    std::vector<SegmentKind> kinds = segment.also;
    kinds.insert(kinds.begin(), segment.kind);
    for (const SegmentKind kind : kinds)
      for (plan::Peak& peak : peaks) {
        peak.segment = kind;
        if (peak.size_bytes > 0) plan.peaks.push_back(peak);
      }
  }
}

/// Operations in their lanes, buffers with their lifetimes, and where they lie.
plan::ArenaLayout lay_out(Builder& builder, Segments wanted) {
  const Request& request = builder.request;
  UK_CHECK(request.max_rows > 0 || !request.train, "a training plan needs rows");
  plan::Schedule& schedule = builder.schedule;
  schedule.lanes = {{"compute"}, {"collective"}, {"save_copy"}, {"save_disk"}};
  schedule.rotary = rotary_of(request.model);
  schedule.shape_classes = shape_classes(
      std::max({request.max_rows, request.max_evaluation_rows, request.max_generation_rows}));
  lay_out_units(builder);
  build_segments(builder, wanted);
  build_program(schedule, request.reloads);
  if (request.on_gpu) {
    serve_gpu(builder);
    fuse(builder);
  }
  for (plan::Segment& segment : schedule.segments) {
    assign_lanes(segment, request.bounds.overlap_comm);
    place_lifetimes(schedule, segment);
  }
  // Cache lines; on a GPU what the matrix library assumes.
  return lay_out_arenas(schedule, request.on_gpu ? 256 : 64,
                        request.guards_buffers ? guard_bytes : 0);
}

plan::Plan make_plan_with(const Request& request, Segments wanted) {
  Builder builder{.request = request, .is_verified = wanted == Segments::all};
  plan::Schedule& schedule = builder.schedule;
  plan::Plan plan;
  plan.layout = lay_out(builder, wanted);
  add_edges(schedule, plan.layout);
  estimate_costs(schedule, request);
  plan.schedule = std::move(builder.schedule);
  plan.on_gpu = request.on_gpu;
  plan.world_size = request.world_size;
  plan.stage = request.stage;
  plan.accumulation_steps = request.accumulation_steps;
  plan.overhead_bytes = request.overhead_bytes;
  plan.parameter_count = spec::parameter_count(request.model);
  plan.decisions = decisions_of(request, plan.schedule);
  find_peaks(plan);
  if (builder.is_verified)
    for (const verify::Violation& violation : verify::check(plan))
      UK_CHECK(false, verify::to_text(plan.schedule, violation));
  return plan;
}

}  // namespace

plan::Plan make_plan(const Request& request) {
  return make_plan_with(request, Segments::all);
}

plan::Plan make_plan_of_steps(const Request& request) {
  return make_plan_with(request, Segments::of_steps);
}

std::array<std::int64_t, plan::memory_space_count> sizes_of_steps(const Request& request) {
  Builder builder{.request = request, .is_verified = false};
  return lay_out(builder, Segments::of_steps).size_bytes;
}

bool has_masters(const Request& request) {
  return request.keeps_masters && request.weight_type != DType::f32;
}

DType moment_type(const Request& request) {
  return request.keeps_masters ? DType::f32 : request.weight_type;
}

Request request_of(const spec::ModelSpec& model, const spec::RunConfig& run,
                   std::int64_t world_size) {
  Request request{.model = model};
  request.world_size = world_size;
  request.stage = run.zero.stage;
  switch (run.precision) {
    case spec::Precision::f32:
      request.weight_type = DType::f32;
      break;
    case spec::Precision::pure_bf16:
      request.keeps_masters = false;
      request.seed = run.seed;
      request.weight_type = DType::bf16;
      break;
    case spec::Precision::bf16:
      request.weight_type = DType::bf16;
      break;
    case spec::Precision::f16:
      request.weight_type = DType::f16;
      break;
  }
  // Over several micro-steps the sum is f32 unless a DeepSpeed JSON or pure_bf16 says otherwise; over one it is
  // stored as it came.
  request.accumulate_type = run.gradient_accumulation_type.value_or(
      run.accumulation_steps > 1 && request.keeps_masters ? DType::f32 : request.weight_type);
  request.recompute =
      run.recompute == spec::Recompute::automatic ? spec::Recompute::cheap : run.recompute;
  request.accumulation_steps = run.accumulation_steps;
  request.max_rows = training_rows(run, run.sequences_per_micro_batch);
  request.max_sequence_rows = run.data.longest_sample();
  request.max_evaluation_rows = evaluation_rows(run, run.evaluation.batch_size);
  if (const auto& samples = run.data.samples) {
    request.mean_rows = samples->training.mean_of(run.sequences_per_micro_batch);
    request.mean_evaluation_rows = samples->evaluation.mean_of(run.evaluation.batch_size);
  }
  request.decisions = decisions_on_rows(run);
  if (!run.gradient_accumulation_type && request.weight_type != DType::f32 && request.keeps_masters)
    request.decisions.push_back(gradient_sums(request, model));
  request.optimizer = run.optimizer;
  spec::RunConfig resolved = run;
  spec::resolve_auto(resolved, model.width);
  request.bounds = resolved.zero;
  request.reloads = run.evaluation.loads_best_at_end;
  request.guards_buffers = run.guards_buffers;
  return request;
}

}  // namespace underkeel::planner
