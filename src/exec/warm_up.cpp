#include "exec/warm_up.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "exec/noise.h"
#include "kernels/matmul_choice.h"
#include "plan/uses.h"

namespace underkeel::exec {

namespace {

/// A batch without content: token 0, one sequence, nothing to train on.
struct EmptyBatch {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> starts;

  explicit EmptyBatch(std::int64_t rows)
      : tokens(static_cast<std::size_t>(rows), 0),
        targets(static_cast<std::size_t>(rows), kernels::ignore_target),
        positions(static_cast<std::size_t>(rows), 0),
        starts{0, static_cast<std::int32_t>(rows)} {}

  Inputs inputs() const {
    Inputs inputs;
    inputs.tokens = tokens;
    inputs.targets = targets;
    inputs.positions = positions;
    inputs.sequence_starts = starts;
    return inputs;
  }
};

/// Stands in for where state comes from: kept in one type after the other. Nothing is read from it.
class AnySource final : public StateSource {
 public:
  DType type = DType::f32;
  Result<void> read(const plan::UnitTensor&, plan::StatePart, std::int64_t, std::int64_t,
                    float*) override {
    UK_CHECK(false, "warming up reads no state");
    return {};
  }
  DType held_type(const plan::UnitTensor&, plan::StatePart) const override { return type; }
};

/// What decides which code an operation runs.
std::string signature_of(const Context& context, const plan::Op& op) {
  std::string text = fmt::format("{}", op.body.index());
  if (const auto* copy = std::get_if<plan::CopyIn>(&op.body))
    return fmt::format("{} {} {}", text, name_of(context.buffer(copy->state).type),
                       copy->twin == plan::no_buffer ? std::string_view()
                                                     : name_of(context.buffer(copy->twin).type));
  const auto* body = std::get_if<plan::Compute>(&op.body);
  if (body == nullptr) {
    plan::for_each_use(context.plan->schedule, op, [&](plan::BufferId id, plan::Access) {
      text +=
          fmt::format(" {}:{}", name_of(context.buffer(id).type), context.buffer(id).size_bytes);
    });
    return text;
  }
  text += fmt::format(" {} {}{}{}{}{} {}", plan::name_of(body->kernel), body->transpose_a,
                      body->transpose_b, body->accumulate, body->accumulate_weight,
                      body->with_gradient, body->groups);
  for (const plan::Operand& operand : body->operands) {
    const TensorView view = context.view(operand);
    const auto address = reinterpret_cast<std::uintptr_t>(view.data) % device::gpu_alignment_bytes;
    text += fmt::format(" {}:{}x{}/{}@{}", name_of(view.type), view.rows, view.columns,
                        view.row_stride, address);
  }
  return text;
}

bool moves_state(const plan::Op& op) {
  return std::holds_alternative<plan::Save>(op.body) ||
         std::holds_alternative<plan::Load>(op.body) ||
         std::holds_alternative<plan::Acquire>(op.body) ||
         std::holds_alternative<plan::Release>(op.body);
}

bool is_collective(const plan::Op& op) {
  return std::holds_alternative<plan::Gather>(op.body) ||
         std::holds_alternative<plan::ReduceScatter>(op.body) ||
         std::holds_alternative<plan::AllReduce>(op.body) ||
         std::holds_alternative<plan::GatherValues>(op.body);
}

/// All ranks at once, with nothing queued. CUDA may load a kernel only once its GPU is idle, and lets no other thread
/// load one meanwhile: a rank that waited on its GPU for one whose thread waits to load would wait for ever.
Result<void> run_together(const Context& context, const plan::Op& op, device::Queue& queue) {
  UK_TRY_VOID(context.gpu->synchronize(queue));
  UK_TRY_VOID(context.collectives->barrier());
  UK_TRY_VOID(run_operation(context, op, queue));
  return context.gpu->synchronize(queue);
}

Result<void> clear_arena(const Context& context, device::Queue& queue) {
  const Arena& arena = (*context.arenas)[index(plan::MemorySpace::device)];
  UK_TRY_VOID(context.gpu->clear(arena.data(), arena.size_bytes(), queue));
  return context.gpu->synchronize(queue);
}

}  // namespace

Result<void> warm_up(Context context, device::Queue& queue) {
  // Saves copy homes that nothing has written yet; timed products have left noise in them.
  UK_TRY_VOID(clear_arena(context, queue));
  Outputs outputs;
  AnySource source;
  context.outputs = &outputs;
  context.source = &source;
  std::unordered_set<std::string> seen;
  for (const plan::Segment& segment : context.plan->schedule.segments) {
    for (const std::int64_t class_rows : context.plan->schedule.shape_classes) {
      const std::int64_t rows = std::min(class_rows, segment.max_rows);
      const EmptyBatch batch(rows);
      const Inputs inputs = batch.inputs();
      context.inputs = &inputs;
      context.rows = context.class_rows = rows;
      for (const plan::Op& op : segment.ops) {
        const bool feeds = std::holds_alternative<plan::Feed>(op.body);
        if (moves_state(op) || (!feeds && !seen.insert(signature_of(context, op)).second)) continue;
        if (std::holds_alternative<plan::CopyIn>(op.body)) {
          for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
            source.type = type;
            UK_TRY_VOID(run_operation(context, op, queue));
          }
        } else {
          UK_TRY_VOID(is_collective(op) ? run_together(context, op, queue)
                                        : run_operation(context, op, queue));
        }
        UK_TRY_VOID(context.gpu->check_launches());
      }
      // The host's copies of the batch are read by what is queued.
      UK_TRY_VOID(context.gpu->synchronize(queue));
    }
  }
  return clear_arena(context, queue);
}

std::vector<std::int64_t> classes_to_time(const plan::Schedule& schedule) {
  std::vector<std::int64_t> classes(schedule.shape_classes.rbegin(), schedule.shape_classes.rend());
  const auto known = std::find_if(schedule.segments.begin(), schedule.segments.end(),
                                  [](const plan::Segment& one) { return one.mean_rows > 0; });
  if (classes.empty() || known == schedule.segments.end()) return classes;
  const auto usual = std::lower_bound(schedule.shape_classes.begin(), schedule.shape_classes.end(),
                                      std::min(known->mean_rows, classes.front()));
  const auto distance = [&](std::int64_t rows) { return std::abs(rows - *usual); };
  std::stable_sort(classes.begin(), classes.end(),
                   [&](std::int64_t a, std::int64_t b) { return distance(a) < distance(b); });
  return classes;
}

Result<void> choose_products(Context context, double limit_s, device::Queue& queue) {
  UK_TRY_VOID(fill_with_noise(context, noise_block(), false, queue));
  kernels::cuda_time_matmuls(limit_s);
  Outputs outputs;
  const Inputs inputs;
  context.outputs = &outputs;
  context.inputs = &inputs;
  std::unordered_set<std::string> seen;
  for (const std::int64_t rows : classes_to_time(context.plan->schedule))
    for (const plan::Segment& segment : context.plan->schedule.segments) {
      context.rows = context.class_rows = std::min(rows, segment.max_rows);
      for (const plan::Op& op : segment.ops) {
        const auto* body = std::get_if<plan::Compute>(&op.body);
        if (body == nullptr || body->kernel != plan::Kernel::matmul) continue;
        if (!seen.insert(signature_of(context, op)).second) continue;
        UK_TRY_VOID(run_operation(context, op, queue));
        UK_TRY_VOID(context.gpu->check_launches());
      }
    }
  kernels::cuda_time_matmuls(0);
  return context.gpu->synchronize(queue);
}

}  // namespace underkeel::exec
