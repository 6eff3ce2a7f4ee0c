#include "kernels/cpu/workspace.h"

#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#include "base/check.h"
#include "kernels/facts/facts.h"

namespace underkeel::kernels::cpu {

namespace {
// Large pages where the system gives them: packed panels are walked with many streams.
constexpr std::size_t page_bytes = std::size_t{2} << 20;
}  // namespace

void Workspace::Free::operator()(float* memory) const {
  std::free(memory);
}

Workspace& Workspace::for_threads(int thread_count) {
  thread_local Workspace workspace;
  if (workspace.slot_count_ < thread_count) workspace.grow(thread_count);
  return workspace;
}

void Workspace::grow(int thread_count) {
  const auto size_bytes = static_cast<std::size_t>(cpu_matmul_overhead_bytes(thread_count));
  memory_.reset();
  memory_.reset(static_cast<float*>(std::aligned_alloc(page_bytes, size_bytes)));
  UK_CHECK(memory_ != nullptr, "no memory for the workspace of CPU kernels");
  madvise(memory_.get(), size_bytes, MADV_HUGEPAGE);  // advice only: its failure changes nothing
  std::memset(memory_.get(), 0, size_bytes);          // resident from here on
  taken_ = std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(thread_count));
  slot_count_ = thread_count;
}

Workspace::Slot::Slot(Workspace& workspace) {
  constexpr std::int64_t slot_floats = cpu_slot_bytes / 4;
  for (int i = 0; i < workspace.slot_count_; ++i) {
    bool expected = false;
    if (workspace.taken_[static_cast<std::size_t>(i)].compare_exchange_strong(
            expected, true, std::memory_order_acquire)) {
      taken_ = &workspace.taken_[static_cast<std::size_t>(i)];
      data_ = workspace.shared() + cpu_shared_bytes / 4 + i * slot_floats;
      return;
    }
  }
  UK_CHECK(false, "more tiles run than the pool has threads");
}

Workspace::Slot::~Slot() {
  taken_->store(false, std::memory_order_release);
}

}  // namespace underkeel::kernels::cpu
