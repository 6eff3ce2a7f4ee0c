// Joins operations that a GPU does in one pass over its memory.
// Needs: all segments, after serve_gpu(), before lanes and lifetimes. Gives: the same values with fewer reads and writes:
//  - a copy of the residual stream and the product that is added to the copy: the product adds the original on its way out;
//  - SwiGLU that is computed again for the gradient of the weight after it: its own backward pass has gate and up at hand,
//    and writes it where it has read the gradient; that product then comes after it.

#include <algorithm>

#include "base/check.h"
#include "plan/uses.h"
#include "planner/builder.h"

namespace underkeel::planner {

namespace {

using plan::Access;
using plan::Compute;
using plan::Kernel;
using plan::Operand;

Compute* compute_of(Op& op, Kernel kernel) {
  auto* body = std::get_if<Compute>(&op.body);
  return body != nullptr && body->kernel == kernel ? body : nullptr;
}

class Fusion {
 public:
  Fusion(const plan::Schedule& schedule, std::vector<Op>& ops) : schedule_(schedule), ops_(ops) {}

  void run() {
    for (std::size_t i = 0; i + 1 < ops_.size(); ++i) add_on_the_way_out(i);
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (compute_of(ops_[i], Kernel::swiglu_backward) != nullptr) make_swiglu_again(i);
  }

 private:
  /// Copy x -> y, y += a b becomes y = a b + x.
  void add_on_the_way_out(std::size_t at) {
    const Compute* copy = compute_of(ops_[at], Kernel::copy);
    Compute* product = compute_of(ops_[at + 1], Kernel::matmul);
    if (copy == nullptr || product == nullptr || !product->accumulate) return;
    Operand from = copy->operands[0];
    Operand& sum = product->operands[2];
    const Operand& to = copy->operands[1];
    const bool is_all_of_it = to.buffer == sum.buffer && to.offset_bytes == sum.offset_bytes &&
                              to.columns == sum.columns && to.row_stride == sum.row_stride &&
                              from.type == sum.type;
    if (!is_all_of_it) return;
    product->accumulate = false;
    sum.access = Access::write;
    constexpr std::size_t addend = 5;  // after the bias and the library's workspace
    UK_CHECK(product->operands.size() == addend, "a product without its workspace");
    product->operands.push_back(from);
    ops_.erase(ops_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  /// swiglu -> a; dw = dy^T a; da = dy w; swiglu backward from da
  /// becomes da = dy w; swiglu backward from da, a -> da; dw = dy^T da.
  void make_swiglu_again(std::size_t backward_at) {
    Compute& backward = *compute_of(ops_[backward_at], Kernel::swiglu_backward);
    const BufferId gate_up = backward.operands[0].buffer;
    const Operand gradient = backward.operands[2];
    std::size_t forward_at = backward_at;
    while (forward_at > 0) {
      const Compute* body = compute_of(ops_[--forward_at], Kernel::swiglu_forward);
      if (body != nullptr && body->operands[0].buffer == gate_up) break;
    }
    const Compute* forward = compute_of(ops_[forward_at], Kernel::swiglu_forward);
    if (forward == nullptr || forward->operands[0].buffer != gate_up) return;
    const BufferId result = forward->operands[2].buffer;
    // What else uses it must be the one product; without recomputation the layer's own product is another.
    std::size_t product_at = 0;
    std::size_t use_count = 0;
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (i != forward_at && uses(ops_[i], result)) {
        product_at = i;
        ++use_count;
      }
    if (use_count != 1 || product_at < forward_at || product_at > backward_at) return;
    Compute* product = compute_of(ops_[product_at], Kernel::matmul);
    if (product == nullptr || product->operands[1].buffer != result) return;
    for (std::size_t i = product_at + 1; i <= backward_at; ++i)
      if (meets(ops_[i], ops_[product_at], result)) return;

    Operand out = gradient;
    out.access = Access::write;
    backward.operands.push_back(out);
    Operand& right = product->operands[1];
    right = gradient;
    right.access = Access::read;
    const auto begin = ops_.begin();
    std::rotate(begin + static_cast<std::ptrdiff_t>(product_at),
                begin + static_cast<std::ptrdiff_t>(product_at) + 1,
                begin + static_cast<std::ptrdiff_t>(backward_at) + 1);
    ops_.erase(begin + static_cast<std::ptrdiff_t>(forward_at));
  }

  bool uses(const Op& op, BufferId buffer) const {
    bool found = false;
    plan::for_each_use(schedule_, op, [&](BufferId id, Access) { found = found || id == buffer; });
    return found;
  }

  /// Whether the order of two operations counts, but for `aside` and for the library's workspace.
  bool meets(const Op& one, const Op& other, BufferId aside) const {
    bool found = false;
    plan::for_each_use(schedule_, one, [&](BufferId id, Access access) {
      plan::for_each_use(schedule_, other, [&](BufferId other_id, Access other_access) {
        const bool is_room = schedule_.buffer(id).kind == plan::BufferKind::workspace;
        if (id == other_id && id != aside && !is_room)
          found = found || plan::writes(access) || plan::writes(other_access);
      });
    });
    return found;
  }

  const plan::Schedule& schedule_;
  std::vector<Op>& ops_;
};

}  // namespace

void fuse(Builder& builder) {
  for (plan::Segment& segment : builder.schedule.segments)
    Fusion(builder.schedule, segment.ops).run();
}

}  // namespace underkeel::planner
