// What a plan needs besides when it runs on a GPU.
// Needs: all segments, before lanes and lifetimes. Gives: for every input and output a persistent twin in
// pinned host memory, which the copy over the link starts from or ends in; the state's staging ring in
// pinned memory; one workspace for the matrix library and one scratch for ordered sums, which every
// operation that may use them names (they run on one lane, in turn).

#include <algorithm>

#include "base/check.h"
#include "kernels/facts/facts.h"
#include "plan/uses.h"
#include "planner/builder.h"

namespace underkeel::planner {

namespace {

using plan::BufferKind;
using plan::MemorySpace;

class GpuNeeds {
 public:
  explicit GpuNeeds(Builder& builder) : b_(builder) {}

  void run() {
    for (plan::Buffer& buffer : b_.schedule.buffers)
      if (buffer.space == MemorySpace::host) buffer.space = MemorySpace::pinned_host;
    workspace_ = b_.add_buffer({.name = "matmul.workspace",
                                .kind = BufferKind::workspace,
                                .persistent = true,
                                .type = DType::u8,
                                .size_bytes = kernels::cuda_matmul_workspace_bytes});
    sums_ = b_.add_buffer({.name = "ordered_sums",
                           .kind = BufferKind::workspace,
                           .persistent = true,
                           .type = DType::f64,
                           .size_bytes = largest_sum_bytes()});
    for (plan::Segment& segment : b_.schedule.segments)
      for (Op& op : segment.ops) serve(op);
  }

 private:
  static std::int64_t loss_rows(const plan::Compute& body) { return body.operands[0].rows.count; }

  std::int64_t largest_sum_bytes() const {
    std::int64_t most = bytes_of(DType::f64, 1);
    for (const plan::Segment& segment : b_.schedule.segments)
      for (const Op& op : segment.ops) {
        if (const auto* sum = std::get_if<plan::SumSquares>(&op.body))
          most = std::max(
              most, kernels::sum_squares_scratch_bytes(b_.schedule.unit(sum->unit).shard_elements));
        const auto* body = std::get_if<plan::Compute>(&op.body);
        if (body != nullptr && body->kernel == plan::Kernel::cross_entropy)
          most = std::max(most, kernels::cross_entropy_scratch_bytes(loss_rows(*body)));
      }
    return most;
  }

  void serve(Op& op) {
    UK_CHECK(op.when == plan::no_buffer, "a flag is read by the host, which has none of a GPU's");
    if (auto* feed = std::get_if<plan::Feed>(&op.body)) feed->pinned = pinned_twin(feed->into);
    if (auto* publish = std::get_if<plan::Publish>(&op.body))
      publish->pinned = pinned_twin(publish->from);
    if (auto* sum = std::get_if<plan::SumSquares>(&op.body)) sum->scratch = sums_;
    auto* body = std::get_if<plan::Compute>(&op.body);
    if (body == nullptr) return;
    if (body->kernel == plan::Kernel::matmul) {
      body->operands.resize(4);  // without a bias its place stays empty
      body->operands.push_back(fixed(workspace_, plan::Access::write, DType::u8, 1,
                                     kernels::cuda_matmul_workspace_bytes));
    } else if (body->kernel == plan::Kernel::cross_entropy) {
      body->operands.push_back(fixed(sums_, plan::Access::write, DType::f64, 1, loss_rows(*body)));
    }
  }

  BufferId pinned_twin(BufferId id) {
    plan::Buffer twin = b_.schedule.buffer(id);
    twin.name += ".pinned";
    twin.space = MemorySpace::pinned_host;
    twin.kind = BufferKind::staging;
    twin.persistent = true;
    return b_.add_buffer(std::move(twin));
  }

  Builder& b_;
  BufferId workspace_ = plan::no_buffer;
  BufferId sums_ = plan::no_buffer;
};

}  // namespace

void serve_gpu(Builder& builder) {
  GpuNeeds(builder).run();
}

}  // namespace underkeel::planner
