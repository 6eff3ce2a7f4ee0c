// How long the verifier takes: layers that gather, compute, reduce and release, as a deep model's do.

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "plan/schedule.h"
#include "verify/verify.h"

namespace underkeel {
namespace {

using plan::BufferId;
using plan::OpIndex;

/// A micro-step of `layer_count` layers, 40 operations each, and a layout that two layers share.
plan::Plan deep_plan(std::int64_t layer_count) {
  plan::Plan plan;
  plan::Schedule& schedule = plan.schedule;
  schedule.lanes = {{"compute"}, {"collective"}, {"save copy"}, {"save disk"}};
  constexpr std::int64_t elements = 1024;
  constexpr std::int64_t size_bytes = elements * 4;
  const auto buffer = [&](bool persistent, std::int64_t offset) {
    schedule.buffers.push_back({.name = "b", .persistent = persistent, .size_bytes = size_bytes});
    plan.layout.offset_bytes.push_back(offset);
    return BufferId{static_cast<std::uint32_t>(schedule.buffers.size() - 1)};
  };
  plan.layout.size_bytes[0] = (layer_count + 64) * size_bytes;
  schedule.segments.push_back({.kind = plan::SegmentKind::micro_only});
  auto& ops = schedule.segments[0].ops;
  const auto add = [&](plan::LaneId lane, plan::OpBody body, std::vector<OpIndex> after = {}) {
    plan::Op op;
    op.lane = lane;
    op.after = std::move(after);
    op.body = std::move(body);
    ops.push_back(std::move(op));
    return OpIndex{static_cast<std::uint32_t>(ops.size() - 1)};
  };
  const auto operand = [](BufferId id, plan::Access access) {
    return plan::Operand{.buffer = id, .access = access, .rows = {.count = 1}, .columns = elements};
  };
  std::vector<OpIndex> released;
  for (std::int64_t layer = 0; layer < layer_count; ++layer) {
    const std::int64_t bank = (layer % 2) * 17;
    const BufferId home = buffer(true, (64 + layer) * size_bytes);
    const BufferId full = buffer(false, bank * size_bytes);
    schedule.units.push_back(
        {.element_count = elements, .shard_elements = elements, .gradient = home});
    const plan::UnitId unit{static_cast<std::uint32_t>(layer)};
    add(plan::lanes::collective, plan::Acquire{full},
        layer < 2 ? std::vector<OpIndex>{} : std::vector<OpIndex>{released.end()[-2]});
    const OpIndex gathered = add(plan::lanes::collective, plan::Gather{unit, home, full});
    BufferId previous = full;
    for (std::int64_t i = 0; i < 12; ++i) {
      const BufferId next = buffer(false, (bank + 1 + i) * size_bytes);
      add(plan::lanes::compute, plan::Acquire{next});
      add(plan::lanes::compute,
          plan::Compute{.operands = {operand(full, plan::Access::read),
                                     operand(previous, plan::Access::read),
                                     operand(next, plan::Access::write)}},
          i == 0 ? std::vector<OpIndex>{gathered} : std::vector<OpIndex>{});
      if (previous != full) add(plan::lanes::compute, plan::Release{previous});
      previous = next;
    }
    add(plan::lanes::compute, plan::Release{previous});
    released.push_back(add(plan::lanes::compute, plan::Release{full}));
  }
  return plan;
}

void check_plan(benchmark::State& state) {
  const plan::Plan plan = deep_plan(state.range(0));
  UK_CHECK(verify::check(plan).empty(), verify::to_text(plan.schedule, verify::check(plan)[0]));
  for (auto _ : state) benchmark::DoNotOptimize(verify::check(plan));
  state.counters["operations"] = static_cast<double>(plan.schedule.segments[0].ops.size());
}
BENCHMARK(check_plan)->Arg(1280)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace underkeel

BENCHMARK_MAIN();
