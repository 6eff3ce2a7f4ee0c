// Statistics of torch's CPU allocator: what is allocated now, the peak since it was last asked for, and what made up that
// peak. A replacement of the allocator itself, so every tensor's bytes are counted from birth to death, temporaries inside
// an operator too. Built by scripts/measure_deepspeed.py.
// Not here: memory that does not come through the allocator (oneDNN's scratch, shared memory of processes).

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

namespace {

struct Block {
  std::int64_t size_bytes;
  bool is_foreign;  // gloo's: of another thread than Python's, or born inside a collective call
  std::int32_t holder = 0;  // 0 until marked
};

struct Statistics {
  std::mutex mutex;
  std::thread::id main_thread;
  bool is_in_collective = false;                      // of the main thread
  std::vector<Block> blocks;                          // all that ever were
  std::unordered_map<const void*, std::size_t> live;  // address to index in blocks
  std::int64_t live_bytes = 0, peak_bytes = 0;
  std::int64_t foreign_bytes = 0, foreign_peak_bytes = 0;
  std::vector<std::size_t> peak_blocks;

  void born(const void* address, std::int64_t size_bytes) {
    const std::lock_guard lock(mutex);
    const bool is_foreign = is_in_collective || std::this_thread::get_id() != main_thread;
    live[address] = blocks.size();
    blocks.push_back({size_bytes, is_foreign});
    if (is_foreign) {
      foreign_bytes += size_bytes;
      foreign_peak_bytes = std::max(foreign_peak_bytes, foreign_bytes);
      return;
    }
    live_bytes += size_bytes;
    if (live_bytes > peak_bytes) remember_peak();
  }
  void died(const void* address) {
    const std::lock_guard lock(mutex);
    const auto found = live.find(address);
    const Block& block = blocks[found->second];
    (block.is_foreign ? foreign_bytes : live_bytes) -= block.size_bytes;
    live.erase(found);
  }
  void remember_peak() {
    peak_bytes = live_bytes;
    peak_blocks.clear();
    for (const auto& [address, index] : live)
      if (!blocks[index].is_foreign) peak_blocks.push_back(index);
  }
};

// Never destroyed: tensors outlive static objects.
Statistics& statistics() {
  static Statistics* const all = new Statistics;
  return *all;
}

void release(void* address) {
  if (address == nullptr) return;
  statistics().died(address);
  c10::free_cpu(address);
}

struct CountingAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t size_bytes) override {
    void* const address = c10::alloc_cpu(size_bytes);
    if (address != nullptr) statistics().born(address, static_cast<std::int64_t>(size_bytes));
    return {address, address, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }
};

}  // namespace

extern "C" {

void install_statistics() {
  statistics().main_thread = std::this_thread::get_id();
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/100);
}

std::int64_t live_bytes() {
  const std::lock_guard lock(statistics().mutex);
  return statistics().live_bytes;
}

void reset_peak() {
  Statistics& all = statistics();
  const std::lock_guard lock(all.mutex);
  all.foreign_peak_bytes = all.foreign_bytes;
  all.remember_peak();
}

std::int64_t peak_bytes() {
  const std::lock_guard lock(statistics().mutex);
  return statistics().peak_bytes;
}

std::int64_t foreign_peak_bytes() {
  const std::lock_guard lock(statistics().mutex);
  return statistics().foreign_peak_bytes;
}

/// From now on, or no longer: what is allocated is the collective's.
void set_in_collective(bool is_in_collective) {
  const std::lock_guard lock(statistics().mutex);
  statistics().is_in_collective = is_in_collective;
}

/// Names the block at an address, for the whole of its life; unknown addresses are let pass.
void mark(const void* address, std::int32_t holder) {
  Statistics& all = statistics();
  const std::lock_guard lock(all.mutex);
  const auto found = all.live.find(address);
  if (found != all.live.end()) all.blocks[found->second].holder = holder;
}

std::int64_t peak_block_count() {
  const std::lock_guard lock(statistics().mutex);
  return static_cast<std::int64_t>(statistics().peak_blocks.size());
}

/// Holders and sizes of the blocks that were live at the peak; room for peak_block_count() of each.
void read_peak_blocks(std::int32_t* holders, std::int64_t* sizes_bytes) {
  Statistics& all = statistics();
  const std::lock_guard lock(all.mutex);
  for (const std::size_t index : all.peak_blocks) {
    *holders++ = all.blocks[index].holder;
    *sizes_bytes++ = all.blocks[index].size_bytes;
  }
}

}  // extern "C"
