// Lets products add straight into the gradient's home where nothing stands between them.
// Needs: a micro-step that writes whole units' micro_gradients, one rank, a GPU. Gives: the same
// operations on the homes, adding in every micro-step but the first of a window; no micro_gradient and no
// pass over it. A product's f32 result is added once, unrounded, and the sum is rounded where the home is
// narrower (docs/decisions/0010).

#include <unordered_map>

#include "base/check.h"
#include "planner/builder.h"

namespace underkeel::planner {

namespace {

/// Where a kernel writes a weight's gradient, and how it is told to add to it.
struct GradientOutput {
  std::size_t operand = 0;
  bool plan::Compute::*adds = nullptr;
};

GradientOutput gradient_output(plan::Kernel kernel) {
  switch (kernel) {
    case plan::Kernel::matmul:
    case plan::Kernel::embedding_backward:
      return {2, &plan::Compute::accumulate};
    case plan::Kernel::column_sum:
      return {1, &plan::Compute::accumulate};
    case plan::Kernel::rms_norm_backward:
      return {5, &plan::Compute::accumulate_weight};
    default:
      return {};
  }
}

}  // namespace

bool accumulates_in_place(const Request& request) {
  return request.on_gpu && request.world_size == 1;
}

void accumulate_in_place(Builder& builder, std::vector<Op>& ops, bool first) {
  std::unordered_map<BufferId, BufferId> home_of;
  for (std::size_t i = 0; i < builder.unit_buffers.size(); ++i)
    home_of[builder.unit_buffers[i].micro_gradient] = builder.schedule.units[i].gradient;
  for (Op& op : ops) {
    auto* body = std::get_if<plan::Compute>(&op.body);
    if (body == nullptr) continue;
    const GradientOutput output = gradient_output(body->kernel);
    for (std::size_t i = 0; i < body->operands.size(); ++i) {
      plan::Operand& operand = body->operands[i];
      const auto found = home_of.find(operand.buffer);
      if (operand.buffer == plan::no_buffer || found == home_of.end()) continue;
      UK_CHECK(output.adds != nullptr && i == output.operand,
               "a micro-step's gradient has another use than the sum over the window");
      operand.buffer = found->second;
      const DType type = builder.schedule.buffer(found->second).type;
      operand.offset_bytes = operand.offset_bytes * bits_of(type) / bits_of(operand.type);
      operand.type = type;
      if (!first) body->*output.adds = true;
      if (body->*output.adds) operand.access = plan::Access::read_write;
    }
  }
}

}  // namespace underkeel::planner
