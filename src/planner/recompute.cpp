// Re-runs forward operations right before the backward ones that need their results.
// Needs: forward and backward operations. Gives: backward operations that read re-made values under
// new buffers, so that the first ones die in the forward pass. Levels: `cheap` re-makes the results of
// norms (and their rotation) and SwiGLU, which cost no product; `block` everything inside a layer but its input.

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "plan/uses.h"
#include "planner/builder.h"

namespace underkeel::planner {

namespace {

using plan::Compute;

const Compute& compute_of(const Op& op) {
  return std::get<Compute>(op.body);
}

/// Re-runs of one group of forward operations, to be written before position `before`.
struct Rerun {
  std::size_t before = 0;
  std::vector<Op> ops;
};

class Recomputation {
 public:
  Recomputation(Builder& builder, const std::vector<Op>& forward, std::vector<Op>& backward)
      : b_(builder), backward_(backward) {
    const auto layers = static_cast<std::size_t>(builder.request.model.layers);
    backward_of_layer_.resize(layers);
    for (std::size_t i = 0; i < backward.size(); ++i)
      if (backward[i].layer >= 0)
        backward_of_layer_[static_cast<std::size_t>(backward[i].layer)].push_back(i);
    // What one layer makes and another part of the model reads (its output) is kept.
    std::unordered_map<BufferId, std::int32_t> maker;
    for (const Op& op : forward)
      visit(op, [&](BufferId id, bool, bool writes) {
        if (writes) {
          ++writer_count_[id];
          maker[id] = op.layer;
        } else if (const auto found = maker.find(id);
                   found != maker.end() && found->second != op.layer) {
          kept_.insert(id);
        }
      });
  }

  /// Plans to re-run those of `group` (forward operations of one layer, in order) whose results the
  /// layer's backward operations read.
  void rerun(const std::vector<const Op*>& group) {
    std::unordered_set<BufferId> made;
    for (const Op* op : group)
      visit(*op, [&](BufferId id, bool, bool writes) {
        if (writes && !kept_.contains(id)) made.insert(id);
      });
    const auto& positions = backward_of_layer_[static_cast<std::size_t>(group.front()->layer)];
    std::unordered_set<BufferId> needed;
    std::size_t first = backward_.size();
    for (const std::size_t i : positions)
      visit(backward_[i], [&](BufferId id, bool, bool) {
        if (!made.contains(id)) return;
        needed.insert(id);
        first = std::min(first, i);
      });
    std::vector<const Op*> wanted_ops;
    for (auto op = group.rbegin(); op != group.rend(); ++op) {
      bool wanted = false;
      visit(**op, [&](BufferId id, bool, bool writes) { wanted |= writes && needed.contains(id); });
      if (!wanted) continue;
      wanted_ops.push_back(*op);
      visit(**op, [&](BufferId id, bool, bool) {
        if (made.contains(id)) needed.insert(id);
      });
    }
    if (wanted_ops.empty()) return;
    check_complete(wanted_ops, needed);
    Rerun run{.before = first};
    std::reverse(wanted_ops.begin(), wanted_ops.end());
    for (const Op* op : wanted_ops) {
      Op again = *op;
      again.label += " again";
      rename(again, made);
      run.ops.push_back(std::move(again));
    }
    for (const std::size_t i : positions) rename(backward_[i], made);
    reruns_.push_back(std::move(run));
  }

  void keep(BufferId id) { kept_.insert(id); }

  void apply() {
    std::stable_sort(reruns_.begin(), reruns_.end(),
                     [](const Rerun& a, const Rerun& b) { return a.before < b.before; });
    std::vector<Op> merged;
    auto run = reruns_.begin();
    for (std::size_t i = 0; i < backward_.size(); ++i) {
      for (; run != reruns_.end() && run->before == i; ++run)
        std::move(run->ops.begin(), run->ops.end(), std::back_inserter(merged));
      merged.push_back(std::move(backward_[i]));
    }
    backward_ = std::move(merged);
  }

 private:
  template <class Visit>
  void visit(const Op& op, Visit&& call) const {
    plan::for_each_use(b_.schedule, op, [&](BufferId id, plan::Access access) {
      if (!b_.schedule.buffer(id).persistent) call(id, plan::reads(access), plan::writes(access));
    });
  }

  // A value that several operations made (written, then changed in place) must be re-made by all of them.
  void check_complete(const std::vector<const Op*>& ops,
                      const std::unordered_set<BufferId>& needed) const {
    std::unordered_map<BufferId, int> count;
    for (const Op* op : ops)
      visit(*op, [&](BufferId id, bool, bool writes) { count[id] += writes ? 1 : 0; });
    for (const BufferId id : needed)
      UK_CHECK(count[id] == writer_count_.at(id),
               "only a part of what makes a value is re-run: " + b_.schedule.buffer(id).name);
  }

  void rename(Op& op, const std::unordered_set<BufferId>& made) {
    for (plan::Operand& operand : std::get<Compute>(op.body).operands) {
      if (!made.contains(operand.buffer)) continue;
      auto [entry, is_new] = again_.try_emplace(operand.buffer, plan::no_buffer);
      if (is_new) {
        plan::Buffer copy = b_.schedule.buffer(operand.buffer);
        copy.name += ".again";
        entry->second = b_.add_buffer(std::move(copy));
      }
      operand.buffer = entry->second;
    }
  }

  Builder& b_;
  std::vector<Op>& backward_;
  std::vector<std::vector<std::size_t>> backward_of_layer_;
  std::unordered_set<BufferId> kept_;
  std::unordered_map<BufferId, int> writer_count_;
  std::unordered_map<BufferId, BufferId> again_;
  std::vector<Rerun> reruns_;
};

/// Results of a norm that are kept on a GPU although the norm is re-run: a number a row, with which the norm's own
/// backward pass re-makes the rest (fuse.cpp).
BufferId kept_of(const Op& op) {
  constexpr std::size_t rstd = 3;
  const Compute& body = compute_of(op);
  return body.kernel == plan::Kernel::rms_norm_forward && body.groups == 1
             ? body.operands[rstd].buffer
             : plan::no_buffer;
}

bool is_cheap(const Op& op) {
  const plan::Kernel kernel = compute_of(op).kernel;
  return kernel == plan::Kernel::rms_norm_forward || kernel == plan::Kernel::swiglu_forward;
}

BufferId result_of(const Op& op) {
  for (const plan::Operand& operand : compute_of(op).operands)
    if (operand.access != plan::Access::read) return operand.buffer;
  return plan::no_buffer;
}

/// The operation and those that change its result in place later on: the rotation of a normed q or k.
std::vector<const Op*> with_followers(const std::vector<const Op*>& layer, std::size_t first) {
  std::vector<const Op*> group = {layer[first]};
  const BufferId result = result_of(*layer[first]);
  for (std::size_t i = first + 1; i < layer.size(); ++i)
    for (const plan::Operand& operand : compute_of(*layer[i]).operands)
      if (operand.buffer == result && operand.access != plan::Access::read) {
        group.push_back(layer[i]);
        break;
      }
  return group;
}

}  // namespace

void recompute(Builder& builder, const std::vector<Op>& forward, std::vector<Op>& backward) {
  const spec::Recompute level = builder.request.recompute;
  if (level == spec::Recompute::none) return;
  UK_CHECK(level != spec::Recompute::automatic, "the level is chosen before planning");
  Recomputation recomputation(builder, forward, backward);
  std::vector<std::vector<const Op*>> layers(
      static_cast<std::size_t>(builder.request.model.layers));
  for (const Op& op : forward)
    if (op.layer >= 0) layers[static_cast<std::size_t>(op.layer)].push_back(&op);
  for (const auto& layer : layers) {
    if (level == spec::Recompute::block) {
      recomputation.rerun(layer);
      continue;
    }
    for (std::size_t i = 0; i < layer.size(); ++i) {
      if (!is_cheap(*layer[i])) continue;
      if (builder.request.on_gpu) recomputation.keep(kept_of(*layer[i]));
      recomputation.rerun(with_followers(layer, i));
    }
  }
  recomputation.apply();
}

}  // namespace underkeel::planner
