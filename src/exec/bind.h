#pragma once
// Turns the operands of an operation into views of this rank's arenas.

#include <array>
#include <cstdint>

#include "exec/arena.h"
#include "exec/executor.h"
#include "plan/plan.h"
#include "tensor/shard.h"
#include "tensor/view.h"

namespace underkeel::exec {

/// Everything an operation needs to find its bytes, for one rank and one running segment.
struct Context {
  const plan::Plan* plan = nullptr;
  std::array<Arena, plan::memory_space_count>* arenas = nullptr;
  const kernels::KernelTable* kernels = nullptr;
  device::Gpu* gpu = nullptr;  // none: everything lies in host memory
  comm::Communicator* collectives = nullptr;
  comm::DeviceCollectives* device_collectives = nullptr;  // of several ranks on GPUs
  const Inputs* inputs = nullptr;
  Outputs* outputs = nullptr;
  StateSource* source = nullptr;
  StateSink* sink = nullptr;
  std::int64_t rows = 0;        // of the batch
  std::int64_t class_rows = 0;  // rows that kernels run on

  std::byte* data(plan::BufferId id) const;
  const plan::Buffer& buffer(plan::BufferId id) const { return plan->schedule.buffer(id); }
  TensorView view(const plan::Operand& operand) const;
  /// `count` elements of a buffer from element `begin`.
  TensorView elements(plan::BufferId id, std::int64_t begin, std::int64_t count) const;
  ShardRange own_shard(const plan::Unit& unit) const;
};

/// The shape class of a batch of `rows`: the rows its kernels run on. 0 for an empty batch.
std::int64_t class_of(const plan::Schedule& schedule, const plan::Segment& segment,
                      std::int64_t rows);

/// Runs one operation that is neither Acquire nor Release.
Result<void> run_operation(const Context& context, const plan::Op& op, device::Queue& queue);

}  // namespace underkeel::exec
