#include "exec/lane_graphs.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "exec/warm_up.h"
#include "plan/uses.h"

namespace underkeel::exec {

namespace {

namespace lanes = plan::lanes;

/// Fewer launches than this are not worth a graph.
constexpr std::size_t fewest_launches = 4;

/// Operations of arithmetic a launch, on average, up to which graphs are made: some 40 us of a fast card, beside which the
/// microsecond that a graph saves can be seen (bench/results/2026-11-gpu-graphs.md).
constexpr double most_work_of_launch = 2e10;

/// Launches in all graphs of a run: they take host and device memory before the seal.
constexpr std::size_t most_launches = 1 << 14;

bool queues_nothing(const plan::Op& op) {
  return plan::acquired_by(op) != plan::no_buffer || plan::released_by(op) != plan::no_buffer;
}

/// Whether an operation queues the same work whatever the batch holds, and the host has no part in it.
bool is_fixed(const plan::Op& op) {
  return queues_nothing(op) || std::holds_alternative<plan::Compute>(op.body) ||
         std::holds_alternative<plan::Accumulate>(op.body);
}

/// Multiplications and additions of its products.
double work_of(const Context& context, const plan::Op& op) {
  const auto* body = std::get_if<plan::Compute>(&op.body);
  if (body == nullptr || body->kernel != plan::Kernel::matmul) return 0;
  const TensorView a = context.view(body->operands[0]);
  const TensorView c = context.view(body->operands[2]);
  return 2.0 * static_cast<double>(body->transpose_a ? a.rows : a.columns) *
         static_cast<double>(c.element_count());
}

/// Whether the segment's launches are so short in this class that graphs save time.
bool are_short(const Context& context, const plan::Segment& segment) {
  double work = 0;
  std::size_t launches = 0;
  for (const plan::Op& op : segment.ops) {
    if (op.lane != lanes::compute || !is_fixed(op) || queues_nothing(op)) continue;
    work += work_of(context, op);
    ++launches;
  }
  return launches >= fewest_launches && work <= most_work_of_launch * static_cast<double>(launches);
}

}  // namespace

Result<std::unique_ptr<LaneGraphs>> LaneGraphs::make(Context context, GpuLanes& gpu_lanes,
                                                     const std::vector<LaneProgram>& programs) {
  auto made = std::make_unique<LaneGraphs>();
  // Who asks CUDA to run kernels one by one wants to know which of them fails.
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking != nullptr && std::string_view(blocking) == "1") return made;
  const plan::Schedule& schedule = context.plan->schedule;
  const Inputs inputs;
  context.inputs = &inputs;
  for (const std::int64_t class_rows : classes_to_time(schedule))
    for (std::size_t i = 0; i < schedule.segments.size(); ++i) {
      const plan::Segment& segment = schedule.segments[i];
      const std::int64_t rows = std::min(class_rows, segment.max_rows);
      if (rows == 0 || made->of(i, rows) != nullptr) continue;
      context.rows = context.class_rows = rows;
      if (!are_short(context, segment)) continue;
      SegmentGraphs captured(i, rows);
      UK_TRY_VOID(made->capture(context, gpu_lanes, programs[i], captured));
      made->captured_.push_back(std::move(captured));
    }
  UK_TRY_VOID(gpu_lanes.drain());
  return made;
}

const SegmentGraphs* LaneGraphs::of(std::size_t segment, std::int64_t class_rows) const {
  const auto found = std::find_if(captured_.begin(), captured_.end(),
                                  [&](const auto& one) { return one.is_of(segment, class_rows); });
  return found == captured_.end() ? nullptr : &*found;
}

std::size_t LaneGraphs::count() const {
  std::size_t count = 0;
  for (const SegmentGraphs& one : captured_) count += one.count();
  return count;
}

Result<void> LaneGraphs::capture(const Context& context, GpuLanes& gpu_lanes,
                                 const LaneProgram& program, SegmentGraphs& into) {
  const plan::Segment& segment = context.plan->schedule.segments[into.segment()];
  const auto& ops = program.ops[index(lanes::compute)];
  device::Gpu& gpu = gpu_lanes.gpu();
  device::Queue& queue = gpu_lanes.queue(index(lanes::compute));
  const auto waits = [&](std::size_t place) {
    const plan::Op& op = segment.ops[ops[place]];
    return !op.after.empty() || !op.after_entry.empty();
  };
  for (std::size_t begin = 0; begin < ops.size();) {
    std::size_t end = begin;
    std::size_t launches = 0;
    while (end < ops.size() && is_fixed(segment.ops[ops[end]]) && (end == begin || !waits(end))) {
      launches += queues_nothing(segment.ops[ops[end]]) ? 0 : 1;
      ++end;
      if (gpu_lanes.is_waited_for(into.segment(), ops[end - 1])) break;
    }
    if (launches >= fewest_launches && launch_count_ + launches <= most_launches) {
      UK_TRY_VOID(gpu.begin_capture(queue));
      for (std::size_t place = begin; place < end; ++place)
        if (const plan::Op& op = segment.ops[ops[place]]; !queues_nothing(op))
          UK_TRY_VOID(run_operation(context, op, queue));
      UK_TRY(graph, gpu.end_capture(queue));
      launch_count_ += launches;
      into.add(begin, {.count = end - begin, .graph = graph});
    }
    begin = std::max(end, begin + 1);
  }
  return {};
}

void SegmentGraphs::add(std::size_t place, LaneGraph graph) {
  begins_.push_back(place);
  graphs_.push_back(graph);
}

const LaneGraph* SegmentGraphs::at(std::size_t place) const {
  const auto found = std::lower_bound(begins_.begin(), begins_.end(), place);
  if (found == begins_.end() || *found != place) return nullptr;
  return &graphs_[static_cast<std::size_t>(found - begins_.begin())];
}

}  // namespace underkeel::exec
