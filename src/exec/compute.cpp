// One case per kernel: operands stand in the order of the argument struct's views.

#include "exec/compute.h"

namespace underkeel::exec {

namespace {

kernels::RopeConstants rope_constants(const plan::Rotary& rotary) {
  kernels::RopeConstants constants;
  switch (rotary.kind) {
    case plan::Rotary::Kind::plain:
      constants.kind = kernels::RopeKind::plain;
      break;
    case plan::Rotary::Kind::linear:
      constants.kind = kernels::RopeKind::linear;
      break;
    case plan::Rotary::Kind::dynamic:
      constants.kind = kernels::RopeKind::dynamic;
      break;
    case plan::Rotary::Kind::llama3:
      constants.kind = kernels::RopeKind::llama3;
      break;
    case plan::Rotary::Kind::yarn:
      constants.kind = kernels::RopeKind::yarn;
      break;
  }
  constants.theta = rotary.theta;
  constants.factor = rotary.factor;
  constants.low_freq_factor = rotary.low_freq_factor;
  constants.high_freq_factor = rotary.high_freq_factor;
  constants.beta_fast = rotary.beta_fast;
  constants.beta_slow = rotary.beta_slow;
  constants.truncate = rotary.truncate;
  constants.attention_scaling = rotary.attention_scaling;
  constants.max_position_embeddings = rotary.max_position_embeddings;
  constants.original_max_position_embeddings = rotary.original_max_position_embeddings;
  return constants;
}

}  // namespace

void run_compute(const Context& context, const plan::Compute& body, device::Queue& queue) {
  const kernels::KernelTable& table = *context.kernels;
  const auto view = [&](std::size_t i) {
    return i < body.operands.size() ? context.view(body.operands[i]) : TensorView{};
  };
  switch (body.kernel) {
    case plan::Kernel::matmul:
      return table.matmul({.a = view(0),
                           .b = view(1),
                           .c = view(2),
                           .transpose_a = body.transpose_a,
                           .transpose_b = body.transpose_b,
                           .accumulate = body.accumulate,
                           .bias = view(3),
                           .scratch = view(4),
                           .addend = view(5)},
                          queue);
    case plan::Kernel::column_sum:
      return table.column_sum({.x = view(0), .sum = view(1), .accumulate = body.accumulate}, queue);
    case plan::Kernel::embedding_forward:
      return table.embedding_forward({.tokens = view(0), .weight = view(1), .out = view(2)}, queue);
    case plan::Kernel::embedding_backward:
      return table.embedding_backward(
          {.tokens = view(0), .dout = view(1), .dweight = view(2), .accumulate = body.accumulate},
          queue);
    case plan::Kernel::rms_norm_forward:
      return table.rms_norm_forward({.x = view(0),
                                     .weight = view(1),
                                     .y = view(2),
                                     .rstd = view(3),
                                     .groups = body.groups,
                                     .epsilon = body.value},
                                    queue);
    case plan::Kernel::rms_norm_backward:
      return table.rms_norm_backward({.x = view(0),
                                      .weight = view(1),
                                      .rstd = view(2),
                                      .dy = view(3),
                                      .dx = view(4),
                                      .dweight = view(5),
                                      .scratch = view(6),
                                      .y = view(7),
                                      .groups = body.groups,
                                      .accumulate_dx = body.accumulate,
                                      .accumulate_dweight = body.accumulate_weight},
                                     queue);
    case plan::Kernel::rope_table:
      return table.rope_table({.positions = view(0),
                               .cosine = view(1),
                               .sine = view(2),
                               .constants = rope_constants(context.plan->schedule.rotary)},
                              queue);
    case plan::Kernel::rope_apply:
      return table.rope_apply({.x = view(0),
                               .cosine = view(1),
                               .sine = view(2),
                               .head_width = body.head_width,
                               .inverse = body.inverse},
                              queue);
    case plan::Kernel::attention_forward:
      return table.attention_forward({.q = view(0),
                                      .k = view(1),
                                      .v = view(2),
                                      .sequence_starts = view(3),
                                      .out = view(4),
                                      .lse = view(5),
                                      .query_heads = body.query_heads,
                                      .key_heads = body.key_heads,
                                      .head_width = body.head_width,
                                      .window = body.window,
                                      .scale = body.value},
                                     queue);
    case plan::Kernel::attention_backward:
      return table.attention_backward({.q = view(0),
                                       .k = view(1),
                                       .v = view(2),
                                       .sequence_starts = view(3),
                                       .out = view(4),
                                       .lse = view(5),
                                       .dout = view(6),
                                       .dq = view(7),
                                       .dk = view(8),
                                       .dv = view(9),
                                       .scratch = view(10),
                                       .cosine = view(11),
                                       .sine = view(12),
                                       .query_heads = body.query_heads,
                                       .key_heads = body.key_heads,
                                       .head_width = body.head_width,
                                       .window = body.window,
                                       .scale = body.value},
                                      queue);
    case plan::Kernel::attention_cached:
      return table.attention_cached({.q = view(0),
                                     .k = view(1),
                                     .v = view(2),
                                     .positions = view(3),
                                     .keys = view(4),
                                     .values = view(5),
                                     .out = view(6),
                                     .query_heads = body.query_heads,
                                     .key_heads = body.key_heads,
                                     .head_width = body.head_width,
                                     .window = body.window,
                                     .scale = body.value},
                                    queue);
    case plan::Kernel::swiglu_forward:
      return table.swiglu_forward({.gate = view(0), .up = view(1), .out = view(2)}, queue);
    case plan::Kernel::swiglu_backward:
      return table.swiglu_backward({.gate = view(0),
                                    .up = view(1),
                                    .dout = view(2),
                                    .dgate = view(3),
                                    .dup = view(4),
                                    .out = view(5)},
                                   queue);
    case plan::Kernel::cross_entropy:
      return table.cross_entropy({.logits = view(0),
                                  .targets = view(1),
                                  .loss = view(2),
                                  .gradient_scale = view(3),
                                  .with_gradient = body.with_gradient,
                                  .scratch = view(4)},
                                 queue);
    case plan::Kernel::copy:
      return table.copy({.from = view(0), .to = view(1)}, queue);
    case plan::Kernel::fill:
      return table.fill({.to = view(0), .value = body.value}, queue);
    case plan::Kernel::clip_factor:
      return table.clip_factor(
          {.sums = view(0), .out = view(1), .loss_scale = view(2), .max_norm = body.value}, queue);
  }
}

}  // namespace underkeel::exec
