// Writes the backward pass explicitly.
// Needs: the forward operations and the buffer of d(hidden). Gives: their gradients in reverse order,
// each weight's gradient written once per micro-step into its unit's micro_gradient.
// A value's gradient lives in one buffer laid out like the value's own. The residual stream has a
// single gradient buffer that moves down the layers: a copy's source takes over its gradient.

#include <unordered_map>

#include "base/check.h"
#include "kernels/facts/facts.h"
#include "planner/builder.h"

namespace underkeel::planner {

namespace {

using plan::Access;
using plan::BufferKind;
using plan::Compute;
using plan::Kernel;
using plan::no_buffer;
using plan::Operand;

Operand with_access(Operand operand, Access access) {
  operand.access = access;
  return operand;
}

class Backward {
 public:
  Backward(Builder& builder, const Forward& forward) : b_(builder), forward_(forward) {}

  std::vector<Op> run(BufferId hidden_gradient) {
    gradient_[forward_.hidden] = hidden_gradient;
    for (auto op = forward_.ops.rbegin(); op != forward_.ops.rend(); ++op) {
      const auto* body = std::get_if<Compute>(&op->body);
      if (body == nullptr) continue;  // feeds have no gradient
      layer_ = op->layer;
      label_ = op->label;
      differentiate(*body);
    }
    return std::move(ops_);
  }

 private:
  void emit(Compute body, const std::string& what) {
    ops_.push_back(compute(std::move(body), "d " + label_ + what, layer_));
  }

  bool has_gradient(BufferId value) const { return gradient_.contains(value); }

  /// The gradient of the value that `operand` shows, with the same shape.
  Operand gradient(const Operand& operand, Access access) {
    Operand view = with_access(operand, access);
    view.buffer = gradient_buffer(operand.buffer);
    return view;
  }
  BufferId gradient_buffer(BufferId value) {
    if (const auto found = gradient_.find(value); found != gradient_.end()) return found->second;
    plan::Buffer buffer = b_.schedule.buffer(value);
    buffer.name = "d." + buffer.name;
    return gradient_[value] = b_.add_buffer(std::move(buffer));
  }

  /// The gradient of a weight operand, in its unit's micro_gradient.
  Operand weight_gradient(const Operand& weight, Access access) {
    for (std::size_t i = 0; i < b_.unit_buffers.size(); ++i) {
      if (b_.unit_buffers[i].full != weight.buffer) continue;
      Operand view = with_access(weight, access);
      view.buffer = b_.unit_buffers[i].micro_gradient;
      view.type = b_.schedule.units[i].micro_gradient_type;
      view.offset_bytes = weight.offset_bytes * bits_of(view.type) / bits_of(weight.type);
      return view;
    }
    UK_CHECK(false, "operand is not a weight");
    return {};
  }

  BufferId scratch(std::int64_t size_bytes) {
    return b_.add_buffer({.name = "d." + label_ + " scratch",
                          .kind = BufferKind::workspace,
                          .size_bytes = size_bytes});
  }
  static Operand scratch_operand(BufferId buffer, std::int64_t size_bytes) {
    return fixed(buffer, Access::write, DType::f32, 1, size_bytes / 4);
  }

  void differentiate(const Compute& body) {
    switch (body.kernel) {
      case Kernel::matmul:
        return matmul(body);
      case Kernel::copy:
        return copy(body);
      case Kernel::rms_norm_forward:
        return rms_norm(body);
      case Kernel::rope_apply:
        return rope(body);
      case Kernel::attention_forward:
        return attention(body);
      case Kernel::swiglu_forward:
        return swiglu(body);
      case Kernel::embedding_forward:
        return embedding(body);
      case Kernel::rope_table:
        return;  // depends on positions alone
      default:
        UK_CHECK(false, "no derivative for " + std::string(name_of(body.kernel)));
    }
  }

  // y (+)= a W^T + bias: dW = dy^T a, dbias = column sums of dy, da = dy W.
  void matmul(const Compute& body) {
    const Operand& a = body.operands[0];
    const Operand& weight = body.operands[1];
    const Operand dy = gradient(body.operands[2], Access::read);
    emit({.kernel = Kernel::matmul,
          .operands = {dy, with_access(a, Access::read), weight_gradient(weight, Access::write)},
          .transpose_a = true},
         " weight");
    if (body.operands.size() > 3)
      emit({.kernel = Kernel::column_sum,
            .operands = {dy, weight_gradient(body.operands[3], Access::write)}},
           " bias");
    UK_CHECK(!has_gradient(a.buffer), "a product's input is used once");
    emit({.kernel = Kernel::matmul, .operands = {dy, weight, gradient(a, Access::write)}},
         " input");
  }

  // The copy's gradient is its source's: same buffer, nothing to do.
  void copy(const Compute& body) {
    const BufferId from = body.operands[0].buffer;
    UK_CHECK(!has_gradient(from), "the residual stream is copied before its other uses");
    gradient_[from] = gradient_buffer(body.operands[1].buffer);
  }

  void rms_norm(const Compute& body) {
    const Operand& x = body.operands[0];
    // The residual stream has a gradient already; a part of q, k and v has none of its own yet.
    const bool whole_buffer = x.row_stride == x.columns;
    const bool accumulate = whole_buffer && has_gradient(x.buffer);
    const std::int64_t scratch_bytes =
        kernels::rms_norm_backward_scratch_bytes(forward_.max_rows, body.operands[1].columns);
    const BufferId partial_sums = scratch(scratch_bytes);
    emit({.kernel = Kernel::rms_norm_backward,
          .operands = {with_access(x, Access::read), body.operands[1],
                       with_access(body.operands[3], Access::read),
                       gradient(body.operands[2], Access::read),
                       gradient(x, accumulate ? Access::read_write : Access::write),
                       weight_gradient(body.operands[1], Access::write),
                       scratch_operand(partial_sums, scratch_bytes)},
          .accumulate = accumulate,
          .groups = body.groups},
         "");
  }

  void rope(const Compute& body) {
    emit({.kernel = Kernel::rope_apply,
          .operands = {gradient(body.operands[0], Access::read_write), body.operands[1],
                       body.operands[2]},
          .inverse = true,
          .head_width = body.head_width},
         "");
  }

  void attention(const Compute& body) {
    const std::int64_t scratch_bytes = kernels::attention_backward_scratch_bytes(
        forward_.max_rows, body.query_heads, body.key_heads, body.head_width);
    const BufferId row_sums = scratch(scratch_bytes);
    Compute backward = body;
    backward.kernel = Kernel::attention_backward;
    backward.operands = {body.operands[0],
                         body.operands[1],
                         body.operands[2],
                         body.operands[3],
                         with_access(body.operands[4], Access::read),
                         with_access(body.operands[5], Access::read),
                         gradient(body.operands[4], Access::read),
                         gradient(body.operands[0], Access::write),
                         gradient(body.operands[1], Access::write),
                         gradient(body.operands[2], Access::write),
                         scratch_operand(row_sums, scratch_bytes)};
    for (int i = 0; i < 4; ++i)
      backward.operands[static_cast<std::size_t>(i)].access = Access::read;
    emit(std::move(backward), "");
  }

  // In place: d(gate) takes gate's bytes and d(up) takes up's, which nothing needs afterwards.
  void swiglu(const Compute& body) {
    const BufferId gate_up = body.operands[0].buffer;
    gradient_[gate_up] = gate_up;
    emit({.kernel = Kernel::swiglu_backward,
          .operands = {with_access(body.operands[0], Access::read),
                       with_access(body.operands[1], Access::read),
                       gradient(body.operands[2], Access::read),
                       with_access(body.operands[0], Access::write),
                       with_access(body.operands[1], Access::write)}},
         "");
  }

  void embedding(const Compute& body) {
    // A tied head has written its part before.
    const bool tied = b_.request.model.tied_head;
    emit(
        {.kernel = Kernel::embedding_backward,
         .operands = {body.operands[0], gradient(body.operands[2], Access::read),
                      weight_gradient(body.operands[1], tied ? Access::read_write : Access::write)},
         .accumulate = tied},
        "");
  }

  Builder& b_;
  const Forward& forward_;
  std::vector<Op> ops_;
  std::unordered_map<BufferId, BufferId> gradient_;
  std::int32_t layer_ = -1;
  std::string label_;
};

}  // namespace

std::vector<Op> differentiate(Builder& builder, const Forward& forward, BufferId hidden_gradient) {
  return Backward(builder, forward).run(hidden_gradient);
}

}  // namespace underkeel::planner
