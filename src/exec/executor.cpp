#include "exec/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "base/check.h"
#include "base/random.h"
#include "exec/arena.h"
#include "exec/bind.h"
#include "exec/collective_watch.h"
#include "exec/error_place.h"
#include "exec/gpu_lanes.h"
#include "exec/guard.h"
#include "exec/lane.h"
#include "exec/lane_graphs.h"
#include "exec/lane_program.h"
#include "exec/live_bytes.h"
#include "exec/noise.h"
#include "exec/products_alone.h"
#include "exec/share_products.h"
#include "exec/warm_up.h"
#include "plan/lifetimes.h"
#include "plan/uses.h"

namespace underkeel::exec {

namespace {

namespace lanes = plan::lanes;

/// A segment that is running. Several exist: one may still have entries in flight while others run.
struct Running {
  void* executor = nullptr;  // Executor::State
  std::atomic<int> lanes_left{0};
  const plan::Segment* segment = nullptr;
  const LaneProgram* program = nullptr;
  Context context;
  Inputs inputs;  // a copy: its source and sink may be used after run() has returned
  std::array<std::uint64_t, lanes::count>
      base{};  // operations ended on the lane before this segment
  std::array<std::uint64_t, lanes::count> start{};  // counts to wait for before the first operation
  std::vector<std::uint64_t> entry_count;           // by entry: count on its lane when it has ended
};

}  // namespace

struct Executor::State {
  const plan::Plan& plan;
  const kernels::KernelTable& kernels;
  comm::Communicator& collectives;
  ExecutorOptions options;
  std::array<Arena, plan::memory_space_count> arenas;
  std::vector<LaneProgram> programs;  // by segment
  std::vector<std::size_t> entry_lane;

  std::array<Progress, lanes::count> progress;
  std::array<std::uint64_t, lanes::count> submitted{};  // operations given to each lane so far
  std::array<std::uint64_t, lanes::count>
      joined{};                            // counts at which all un-entried ones have ended
  std::vector<std::uint64_t> entry_count;  // by entry, see Running
  std::array<Running, 8> running;
  Outputs outputs;

  mutable std::mutex error_mutex;
  std::optional<Error> error;
  std::atomic<bool> failed{false};

  LiveBytes live;

  std::unique_ptr<GpuLanes> gpu_lanes;     // none: lanes run on the CPU
  std::unique_ptr<LaneGraphs> graphs;      // none: operations are launched one by one
  std::vector<BFloat16> noise;             // of run_products()
  std::unique_ptr<CollectiveWatch> watch;  // of several ranks on GPUs
  std::unique_ptr<device::ThreadPool> pool;
  std::unique_ptr<device::ThreadPool> no_pool;  // for lanes other than compute
  std::array<std::unique_ptr<LaneThread>, lanes::count> threads;

  State(const plan::Plan& p, const kernels::KernelTable& k, comm::Communicator& c,
        const ExecutorOptions& o)
      : plan(p), kernels(k), collectives(c), options(o) {}

  Result<void> prepare();
  Result<void> take_arenas();
  Result<void> prepare_gpu();
  Context context() {
    return {.plan = &plan,
            .arenas = &arenas,
            .kernels = &kernels,
            .gpu = options.gpu,
            .collectives = &collectives,
            .device_collectives = options.device_collectives};
  }
  std::size_t segment_index(const Running& now) const {
    return static_cast<std::size_t>(now.segment - plan.schedule.segments.data());
  }
  /// Ends the run if the result is an error.
  void keep(const Result<void>& result) {
    if (!result) record_failure(result.error());
  }
  /// The same; `place` tells where it came up, if the error does not.
  template <class Place>
  void keep(const Result<void>& result, Place&& place) {
    if (result) return;
    Error failure = result.error();
    if (failure.where.empty()) failure.where = place();
    record_failure(failure);
  }
  bool is_guarded() const { return plan.layout.guard_bytes > 0; }
  /// For what is done while no segment runs.
  device::Queue queue_between_segments() {
    return gpu_lanes ? gpu_lanes->queue(index(lanes::compute)) : device::Queue::on_cpu(*no_pool);
  }
  Result<void> wait_for_idle();
  Running& free_slot();
  void submit(Running& now);
  void run_lane(Running& now, std::size_t lane);
  void run_serially(Running& now);
  void run_one(Running& now, std::size_t position, std::size_t lane);
  void wait_for_others(Running& now, std::size_t position, std::size_t lane);
  void run_graph(Running& now, std::size_t place, const LaneGraph& graph);
  void begin_life(const Running& now, plan::BufferId id);
  void end_life(plan::BufferId id);
  void record_failure(const Error& failure);
  std::optional<Error> failure() const {
    const std::lock_guard lock(error_mutex);
    return error;
  }
};

Result<void> Executor::State::take_arenas() {
  for (std::size_t space = 0; space < arenas.size(); ++space) {
    UK_TRY(arena, Arena::make_for(static_cast<plan::MemorySpace>(space),
                                  plan.layout.size_bytes[space], collectives.rank(), options.gpu));
    arenas[space] = std::move(arena);
    if (!arenas[space].is_on_gpu() && !is_guarded())
      poison(arenas[space].data(), arenas[space].size_bytes());
    live.start(static_cast<plan::MemorySpace>(space), plan.persistent_bytes[space]);
  }
  return {};
}

Result<void> Executor::State::prepare_gpu() {
  UK_CHECK(plan.world_size == 1 || options.device_collectives != nullptr,
           "several ranks on GPUs need collectives there");
  UK_TRY(made, GpuLanes::make(*options.gpu, plan.schedule));
  gpu_lanes = std::move(made);
  if (plan.world_size > 1)
    watch = std::make_unique<CollectiveWatch>(*options.device_collectives, collectives,
                                              [this](const Error& lost) { record_failure(lost); });
  device::Queue& queue = gpu_lanes->queue(index(lanes::compute));
  UK_TRY_VOID(choose_products_for_all(context(), options.matmul_timing_s, queue));
  UK_TRY_VOID(warm_up(context(), queue));
  if (options.graphs && !options.serial && options.delay_seed == 0 && !is_guarded()) {
    UK_TRY(captured, LaneGraphs::make(context(), *gpu_lanes, programs));
    graphs = std::move(captured);
  }
  if (auto reason = failure()) return tl::unexpected(*std::move(reason));
  return {};
}

Result<void> Executor::State::prepare() {
  UK_TRY_VOID(take_arenas());
  for (std::size_t i = 0; i < plan.schedule.buffers.size(); ++i) {
    const plan::Buffer& buffer = plan.schedule.buffers[i];
    if (buffer.persistent && (!options.serial || options.gpu != nullptr) &&
        !arenas[index(buffer.space)].is_on_gpu())
      unpoison(arenas[index(buffer.space)].data() + plan.layout.offset_bytes[i], buffer.size_bytes);
  }
  entry_lane.assign(plan.schedule.entries.size(), 0);
  entry_count.assign(plan.schedule.entries.size(), 0);
  for (Running& slot : running) slot.entry_count = entry_count;
  for (const plan::Segment& segment : plan.schedule.segments) {
    programs.push_back(lane_program(segment));
    for (const plan::Op& op : segment.ops)
      if (op.entry != plan::no_entry) entry_lane[index(op.entry)] = index(op.lane);
  }
  pool = std::make_unique<device::ThreadPool>(options.thread_count);
  no_pool = std::make_unique<device::ThreadPool>(1);
  outputs.totals.reserve(static_cast<std::size_t>(plan.world_size * plan::total_count));
  if (options.gpu != nullptr) UK_TRY_VOID(prepare_gpu());
  if (is_guarded()) {
    device::Queue queue = queue_between_segments();
    UK_TRY_VOID(fill_guarded(context(), queue));
  }
  if (!options.serial)
    for (auto& thread : threads) thread = std::make_unique<LaneThread>();
  return {};
}

void Executor::State::record_failure(const Error& failure) {
  {
    const std::lock_guard lock(error_mutex);
    if (error) return;
    error = failure;
  }
  failed = true;
  for (Progress& lane : progress) lane.stop();
  collectives.abort(failure);
  if (options.device_collectives != nullptr) options.device_collectives->abort();
}

void Executor::State::begin_life(const Running& now, plan::BufferId id) {
  const plan::Buffer& buffer = plan.schedule.buffer(id);
  const auto space = index(buffer.space);
  if (!options.serial && !arenas[space].is_on_gpu())
    unpoison(now.context.data(id), buffer.size_bytes);
  live.add(now.segment->kind, buffer);
}

void Executor::State::end_life(plan::BufferId id) {
  const plan::Buffer& buffer = plan.schedule.buffer(id);
  const auto space = index(buffer.space);
  if (!options.serial && !is_guarded() && !arenas[space].is_on_gpu())
    poison(arenas[space].data() + plan.layout.offset_bytes[index(id)], buffer.size_bytes);
  live.remove(buffer);
}

void Executor::State::run_one(Running& now, std::size_t position, std::size_t lane) {
  const plan::Op& op = now.segment->ops[position];
  if (options.delay_seed != 0) {
    const std::uint32_t word =
        random_word(options.delay_seed, static_cast<std::uint32_t>(lane), progress[lane].ended());
    // Half of the operations are held back, by up to a millisecond.
    if ((word & 1) != 0) std::this_thread::sleep_for(std::chrono::microseconds(word >> 22));
  }
  device::Queue host = device::Queue::on_cpu(lane == index(lanes::compute) ? *pool : *no_pool);
  if (const plan::BufferId id = plan::acquired_by(op); id != plan::no_buffer) {
    begin_life(now, id);
    if (is_guarded())
      keep(fill_guarded(now.context, id, gpu_lanes ? gpu_lanes->queue(lane) : host));
  } else if (const plan::BufferId gone = plan::released_by(op); gone != plan::no_buffer) {
    end_life(gone);
  } else {
    device::Queue& queue = gpu_lanes ? gpu_lanes->queue(lane) : host;
    Result<void> result = run_operation(now.context, op, queue);
    if (result && gpu_lanes && options.serial) result = gpu_lanes->gpu().synchronize(queue);
    if (result && gpu_lanes) result = gpu_lanes->gpu().check_launches();
    keep(result, [&] { return place_of(plan, *now.segment, position); });
  }
}

void Executor::State::run_lane(Running& now, std::size_t lane) {
  const auto& ops = now.program->ops[lane];
  const std::size_t segment = segment_index(now);
  if (gpu_lanes) keep(gpu_lanes->gpu().use());
  if (!ops.empty() && !failed)
    for (std::size_t other = 0; other < lanes::count; ++other)
      progress[other].wait_for(now.start[other]);
  const bool may_have_graphs = graphs && lane == index(lanes::compute) && !now.inputs.distortion;
  const SegmentGraphs* captured =
      may_have_graphs ? graphs->of(segment, now.context.class_rows) : nullptr;
  for (std::size_t place = 0; place < ops.size();) {
    const std::uint32_t position = ops[place];
    wait_for_others(now, position, lane);
    const LaneGraph* graph = captured != nullptr ? captured->at(place) : nullptr;
    if (graph != nullptr) {
      run_graph(now, place, *graph);
      place += graph->count;
      continue;
    }
    if (!failed) run_one(now, position, lane);
    if (gpu_lanes && !failed)
      keep(gpu_lanes->mark(segment, position),
           [&] { return place_of(plan, *now.segment, position); });
    progress[lane].advance();
    ++place;
  }
}

void Executor::State::wait_for_others(Running& now, std::size_t position, std::size_t lane) {
  const plan::Op& op = now.segment->ops[position];
  for (const plan::OpIndex after : op.after) {
    const auto other = index(now.segment->ops[index(after)].lane);
    progress[other].wait_for(now.base[other] + now.program->place[index(after)] + 1);
    if (gpu_lanes && !failed) keep(gpu_lanes->wait_for(segment_index(now), index(after), lane));
  }
  for (const plan::EntryId entry : op.after_entry) {
    progress[entry_lane[index(entry)]].wait_for(now.entry_count[index(entry)]);
    if (gpu_lanes && !failed) keep(gpu_lanes->wait_for_entry(entry, lane));
  }
}

void Executor::State::run_graph(Running& now, std::size_t place, const LaneGraph& graph) {
  const std::size_t lane = index(lanes::compute);
  const auto& ops = now.program->ops[lane];
  if (!failed)
    keep(gpu_lanes->gpu().launch(graph.graph, gpu_lanes->queue(lane)),
         [&] { return place_of(plan, *now.segment, ops[place], ops[place + graph.count - 1]); });
  for (std::size_t i = place; i < place + graph.count; ++i) {
    const plan::Op& op = now.segment->ops[ops[i]];
    if (const plan::BufferId id = plan::acquired_by(op); id != plan::no_buffer) begin_life(now, id);
    if (const plan::BufferId id = plan::released_by(op); id != plan::no_buffer) end_life(id);
    if (i + 1 == place + graph.count && !failed)
      keep(gpu_lanes->mark(segment_index(now), ops[i]),
           [&] { return place_of(plan, *now.segment, ops[i]); });
    progress[lane].advance();
  }
}

void Executor::State::run_serially(Running& now) {
  live.clear_trace();
  for (std::size_t i = 0; i < now.segment->ops.size() && !failed; ++i) {
    const plan::Op& op = now.segment->ops[i];
    // Under AddressSanitizer an operation can touch what uses() names and nothing else.
    const auto each_used = [&](void (*call)(const void*, std::int64_t)) {
      plan::for_each_use(plan.schedule, op, [&](plan::BufferId id, plan::Access) {
        call(now.context.data(id), plan.schedule.buffer(id).size_bytes);
      });
    };
    const bool watches = poisoning_works() && !gpu_lanes && !is_guarded();
    if (watches) each_used(unpoison);
    // An Acquire counts while it runs, a Release no longer.
    run_one(now, i, index(op.lane));
    if (watches) each_used(poison);
    if (options.record_live_bytes) live.record_trace();
  }
}

void Executor::State::submit(Running& now) {
  if (options.serial) return run_serially(now);
  now.base = submitted;
  now.start = joined;
  now.entry_count = entry_count;
  for (const auto& [entry, position] : now.program->entry_end) {
    const auto lane = index(now.segment->ops[position].lane);
    entry_count[entry] = now.base[lane] + now.program->place[position] + 1;
  }
  for (std::size_t lane = 0; lane < lanes::count; ++lane) {
    submitted[lane] += now.program->ops[lane].size();
    if (now.program->joined[lane] > 0) joined[lane] = now.base[lane] + now.program->joined[lane];
  }
  int lane_count = 0;
  for (const auto& ops : now.program->ops) lane_count += ops.empty() ? 0 : 1;
  now.lanes_left = lane_count;
  for (std::size_t lane = 0; lane < lanes::count; ++lane)
    if (!now.program->ops[lane].empty())
      threads[lane]->submit(
          [](void* context, std::size_t own_lane) {
            auto& segment = *static_cast<Running*>(context);
            static_cast<State*>(segment.executor)->run_lane(segment, own_lane);
            --segment.lanes_left;
          },
          &now, lane);
}

Running& Executor::State::free_slot() {
  for (Running& slot : running)
    if (slot.lanes_left == 0) return slot;
  for (auto& thread : threads) thread->wait_idle();
  return running.front();
}

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}

Executor::~Executor() {
  if (!state_->options.serial)
    for (auto& thread : state_->threads) thread.reset();
  // Nothing may be queued on memory that is given back.
  if (state_->gpu_lanes) (void)state_->gpu_lanes->drain();
}

Result<std::unique_ptr<Executor>> Executor::make(const plan::Plan& plan,
                                                 const kernels::KernelTable& kernels,
                                                 comm::Communicator& collectives,
                                                 const ExecutorOptions& options) {
  UK_CHECK(plan.world_size == collectives.world_size(), "the plan is for another number of ranks");
  UK_CHECK(plan.on_gpu == (options.gpu != nullptr), "the plan is for another kind of device");
  auto state = std::make_unique<State>(plan, kernels, collectives, options);
  UK_TRY_VOID(state->prepare());
  return std::unique_ptr<Executor>(new Executor(std::move(state)));
}

Result<Outputs> Executor::run(plan::SegmentKind kind, const Inputs& inputs) {
  State& s = *state_;
  if (auto failure = s.failure()) return tl::unexpected(*std::move(failure));
  const plan::Segment* segment = s.plan.schedule.find(kind);
  UK_CHECK(segment != nullptr, fmt::format("the plan has no segment {}", plan::name_of(kind)));
  Running& now = s.free_slot();
  now.executor = &s;
  now.segment = segment;
  now.program = &s.programs[static_cast<std::size_t>(segment - s.plan.schedule.segments.data())];
  now.inputs = inputs;
  const auto rows = static_cast<std::int64_t>(inputs.tokens.size());
  now.context = s.context();
  now.context.inputs = &now.inputs;
  now.context.outputs = &s.outputs;
  now.context.source = inputs.source;
  now.context.sink = inputs.sink;
  now.context.rows = rows;
  now.context.class_rows = class_of(s.plan.schedule, *segment, rows);
  s.live.begin(kind);
  s.submit(now);
  if (!s.options.serial)
    for (std::size_t lane = 0; lane < lanes::count; ++lane)
      s.progress[lane].wait_for(s.joined[lane]);
  if (s.gpu_lanes && !s.failed)
    s.keep(s.gpu_lanes->join(s.segment_index(now)), [&] { return place_of(s.plan, *segment); });
  if (auto failure = s.failure()) {
    for (auto& thread : s.threads)
      if (thread) thread->wait_idle();
    return tl::unexpected(*std::move(failure));
  }
  return s.outputs;
}

Result<Executor::ProductsTime> Executor::run_products(plan::SegmentKind kind, const Inputs& inputs,
                                                      const ProductsHow& how) {
  State& s = *state_;
  const plan::Segment* segment = s.plan.schedule.find(kind);
  UK_CHECK(segment != nullptr && s.gpu_lanes, "products alone are run on GPUs");
  UK_TRY_VOID(drain());
  Context context = s.context();
  context.inputs = &inputs;
  context.outputs = &s.outputs;
  context.rows = static_cast<std::int64_t>(inputs.tokens.size());
  context.class_rows = class_of(s.plan.schedule, *segment, context.rows);
  UK_TRY_VOID(s.options.gpu->use());
  // Made once: the GPU would rest, and be quicker afterwards, while the host draws numbers.
  if (s.noise.empty()) s.noise = noise_block();
  return run_products_alone(context, *segment, s.noise, how,
                            s.gpu_lanes->queue(index(lanes::compute)));
}

Result<void> Executor::drain() {
  return state_->wait_for_idle();
}

Result<void> Executor::State::wait_for_idle() {
  for (auto& thread : threads)
    if (thread) thread->wait_idle();
  if (gpu_lanes && !failed) keep(gpu_lanes->drain());
  if (auto reason = failure()) return tl::unexpected(*std::move(reason));
  return {};
}

Result<void> Executor::check_guards() {
  State& s = *state_;
  if (!s.is_guarded()) return {};
  UK_TRY_VOID(drain());
  device::Queue queue = s.queue_between_segments();
  return exec::check_guards(s.context(), queue);
}

std::size_t Executor::graph_count() const {
  return state_->graphs ? state_->graphs->count() : 0;
}

bool Executor::idle() const {
  return std::all_of(state_->running.begin(), state_->running.end(),
                     [](const Running& slot) { return slot.lanes_left == 0; });
}

Result<std::int64_t> Executor::resident_bytes(plan::MemorySpace space) const {
  return state_->arenas[index(space)].resident_bytes();
}

std::int64_t Executor::live_peak_bytes(plan::SegmentKind kind, plan::MemorySpace space) const {
  return state_->live.peak(kind, space);
}

const std::vector<std::int64_t>& Executor::live_trace(plan::MemorySpace space) const {
  return state_->live.trace(space);
}

std::vector<std::byte> Executor::read_buffer(plan::BufferId id) const {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(state_->plan.schedule.buffer(id).size_bytes));
  read_buffer(id, 0, bytes);
  return bytes;
}

void Executor::read_buffer(plan::BufferId id, std::int64_t begin_bytes,
                           std::span<std::byte> into) const {
  const plan::Buffer& buffer = state_->plan.schedule.buffer(id);
  const auto size_bytes = static_cast<std::int64_t>(into.size());
  UK_CHECK(buffer.persistent, "only persistent buffers can be read: " + buffer.name);
  UK_CHECK(begin_bytes >= 0 && begin_bytes + size_bytes <= buffer.size_bytes,
           "read beyond the end of " + buffer.name);
  const std::byte* begin = state_->arenas[index(buffer.space)].data() +
                           state_->plan.layout.offset_bytes[index(id)] + begin_bytes;
  if (state_->arenas[index(buffer.space)].is_on_gpu()) {
    device::Queue& queue = state_->gpu_lanes->queue(index(lanes::compute));
    device::Gpu& gpu = state_->gpu_lanes->gpu();
    const Result<void> done = gpu.copy(into.data(), begin, size_bytes, queue).and_then([&] {
      return gpu.synchronize(queue);
    });
    UK_CHECK(done.has_value(), done.error().what);
    return;
  }
  unpoison(begin, size_bytes);
  std::copy(begin, begin + size_bytes, into.begin());
  if (state_->options.serial && !state_->is_guarded()) poison(begin, size_bytes);
}

}  // namespace underkeel::exec
