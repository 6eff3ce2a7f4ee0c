// Joins operations that a GPU does in one pass over its memory.
// Needs: all segments, after serve_gpu(), before lanes and lifetimes. Gives: the same values with fewer reads and writes:
//  - a copy of the residual stream and the product that is added to the copy: the product adds the original on its way out;
//  - SwiGLU, or a norm, that is computed again for the gradient of the weight after it: its own backward pass has its inputs
//    at hand, and writes it where it has read the gradient; that product then comes after it;
//  - rotations: of q and k in one pass where they lie side by side, and back again as attention's gradients are written.

#include <algorithm>
#include <numeric>
#include <optional>

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

/// Where the operations that touch a buffer stand, while operations move.
class Places {
 public:
  Places(const plan::Schedule& schedule, const std::vector<Op>& ops)
      : number_at_(ops.size()), place_of_(ops.size()), users_(schedule.buffers.size()) {
    std::iota(number_at_.begin(), number_at_.end(), std::uint32_t{0});
    std::iota(place_of_.begin(), place_of_.end(), std::size_t{0});
    for (std::size_t i = 0; i < ops.size(); ++i)
      plan::for_each_use(schedule, ops[i], [&](BufferId id, Access) { add(id, i); });
  }

  /// The operation at `place` touches `buffer`.
  void add(BufferId buffer, std::size_t place) {
    auto& users = users_[index(buffer)];
    if (users.empty() || users.back() != number_at_[place]) users.push_back(number_at_[place]);
  }
  /// Operation `from` was moved behind `to`, and all between one forward.
  void move_behind(std::size_t from, std::size_t to) {
    std::rotate(number_at_.begin() + static_cast<std::ptrdiff_t>(from),
                number_at_.begin() + static_cast<std::ptrdiff_t>(from) + 1,
                number_at_.begin() + static_cast<std::ptrdiff_t>(to) + 1);
    for (std::size_t i = from; i <= to; ++i) place_of_[number_at_[i]] = i;
  }
  /// Places of operations that touch `buffer` or did, in no order.
  template <class Visit>
  void for_each(BufferId buffer, Visit&& visit) const {
    for (const std::uint32_t number : users_[index(buffer)]) visit(place_of_[number]);
  }

 private:
  std::vector<std::uint32_t> number_at_;  // by place: where the operation stood at first
  std::vector<std::size_t> place_of_;     // by that number
  std::vector<std::vector<std::uint32_t>> users_;
};

class Fusion {
 public:
  Fusion(const plan::Schedule& schedule, std::vector<Op>& ops) : schedule_(schedule), ops_(ops) {}

  void run() {
    for (std::size_t i = 0; i + 1 < ops_.size(); ++i) add_on_the_way_out(i);
    leave_out_removed();
    make_all_again();
    leave_out_removed();
    for (std::size_t i = 0; i + 1 < ops_.size(); ++i) rotate_side_by_side(i);
    leave_out_removed();
    for (std::size_t i = 0; i + 2 < ops_.size(); ++i) turn_back_on_the_way_out(i);
    leave_out_removed();
  }

 private:
  // An Acquire touches nothing, and there is none before lifetimes are placed.
  static void remove(Op& op) { op = Op{.body = plan::Acquire{}}; }
  void leave_out_removed() {
    std::erase_if(ops_,
                  [](const Op& op) { return std::holds_alternative<plan::Acquire>(op.body); });
  }

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
    remove(ops_[at]);
  }

  /// Where a kernel and its backward pass have what make_again() needs; operand 0 of both is the kernel's input.
  struct Remade {
    Kernel forward;
    std::size_t result;    // of the forward kernel
    std::size_t gradient;  // of that result, which the backward kernel reads
    std::size_t again;     // the backward kernel's output that is the result once more
  };

  void make_all_again() {
    const bool has_any = std::any_of(ops_.begin(), ops_.end(), [](Op& op) {
      return compute_of(op, Kernel::swiglu_backward) != nullptr ||
             compute_of(op, Kernel::rms_norm_backward) != nullptr;
    });
    if (!has_any) return;
    Places at(schedule_, ops_);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (compute_of(ops_[i], Kernel::swiglu_backward) != nullptr)
        make_again(at, i,
                   {.forward = Kernel::swiglu_forward, .result = 2, .gradient = 2, .again = 5});
      if (compute_of(ops_[i], Kernel::rms_norm_backward) != nullptr)
        make_again(at, i,
                   {.forward = Kernel::rms_norm_forward, .result = 2, .gradient = 3, .again = 7});
    }
  }

  /// f -> a; dw = dy^T a; da = dy w; f backward from da
  /// becomes da = dy w; f backward from da, a -> da; dw = dy^T da.
  void make_again(Places& at, std::size_t backward_at, const Remade& places) {
    Compute& backward = std::get<Compute>(ops_[backward_at].body);
    const Operand input = backward.operands[0];
    const Operand gradient = backward.operands[places.gradient];
    std::optional<std::size_t> last;  // of those before
    at.for_each(input.buffer, [&](std::size_t i) {
      const Compute* body = compute_of(ops_[i], places.forward);
      if (i < backward_at && body != nullptr && is_same(body->operands[0], input))
        last = std::max(i, last.value_or(i));
    });
    if (!last) return;
    const std::size_t forward_at = *last;
    const Compute* forward = compute_of(ops_[forward_at], places.forward);
    const BufferId result = forward->operands[places.result].buffer;
    // Nothing else that it makes may be needed, and its result by the one product alone; without recomputation the
    // layer's own product is another.
    std::size_t product_at = 0;
    std::size_t use_count = 0;
    at.for_each(result, [&](std::size_t i) {
      if (i == forward_at || !uses(ops_[i], result)) return;
      product_at = i;
      ++use_count;
    });
    if (use_count != 1 || product_at < forward_at || product_at > backward_at) return;
    Compute* product = compute_of(ops_[product_at], Kernel::matmul);
    if (product == nullptr || product->operands[1].buffer != result) return;
    for (std::size_t i = product_at + 1; i <= backward_at; ++i)
      if (meets(ops_[i], ops_[product_at], result)) return;
    for (const Operand& operand : forward->operands)
      if (plan::writes(operand.access) && operand.buffer != result &&
          !is_written_before(at, forward_at, operand.buffer))
        return;

    Operand out = gradient;
    out.access = Access::write;
    backward.operands.resize(std::max(backward.operands.size(), places.again));
    backward.operands.push_back(out);
    Operand& right = product->operands[1];
    right = gradient;
    right.access = Access::read;
    at.add(gradient.buffer, product_at);
    remove(ops_[forward_at]);
    const auto begin = ops_.begin();
    std::rotate(begin + static_cast<std::ptrdiff_t>(product_at),
                begin + static_cast<std::ptrdiff_t>(product_at) + 1,
                begin + static_cast<std::ptrdiff_t>(backward_at) + 1);
    at.move_behind(product_at, backward_at);
  }

  /// Two rotations by the same angles, of columns that lie side by side, become one.
  void rotate_side_by_side(std::size_t at) {
    Compute* one = compute_of(ops_[at], Kernel::rope_apply);
    const Compute* other = compute_of(ops_[at + 1], Kernel::rope_apply);
    if (one == nullptr || other == nullptr || one->inverse != other->inverse) return;
    Operand& left = one->operands[0];
    const Operand& right = other->operands[0];
    const bool joins = left.buffer == right.buffer && left.row_stride == right.row_stride &&
                       right.offset_bytes == left.offset_bytes + bytes_of(left.type, left.columns);
    if (!joins || one->head_width != other->head_width ||
        !is_same(one->operands[1], other->operands[1]) ||
        !is_same(one->operands[2], other->operands[2]))
      return;
    left.columns += right.columns;
    remove(ops_[at + 1]);
  }

  /// attention backward -> dq, dk; dk and dq are turned back becomes one operation.
  void turn_back_on_the_way_out(std::size_t at) {
    Compute* attention = compute_of(ops_[at], Kernel::attention_backward);
    const Compute* of_keys = compute_of(ops_[at + 1], Kernel::rope_apply);
    const Compute* of_queries = compute_of(ops_[at + 2], Kernel::rope_apply);
    if (attention == nullptr || of_keys == nullptr || of_queries == nullptr) return;
    constexpr std::size_t dq = 7;
    constexpr std::size_t dk = 8;
    constexpr std::size_t tables = 11;  // after the scratch
    if (!is_same(of_keys->operands[0], attention->operands[dk]) ||
        !is_same(of_queries->operands[0], attention->operands[dq]) || !of_keys->inverse ||
        !of_queries->inverse)
      return;
    UK_CHECK(attention->operands.size() == tables, "attention's gradient without its scratch");
    attention->operands.push_back(of_keys->operands[1]);
    attention->operands.push_back(of_keys->operands[2]);
    remove(ops_[at + 1]);
    remove(ops_[at + 2]);
  }

  /// Whether two operands are the same elements.
  static bool is_same(const Operand& one, const Operand& other) {
    return one.buffer == other.buffer && one.offset_bytes == other.offset_bytes &&
           one.columns == other.columns && one.row_stride == other.row_stride;
  }

  bool is_written_before(const Places& at, std::size_t place, BufferId buffer) const {
    bool found = false;
    at.for_each(buffer, [&](std::size_t i) {
      if (i >= place) return;
      plan::for_each_use(schedule_, ops_[i], [&](BufferId id, Access access) {
        found = found || (id == buffer && plan::writes(access));
      });
    });
    return found;
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
