#pragma once
// Memory that CPU kernels pack into: one block for each thread that calls kernels (a lane), made at
// its first call and never grown while the pool stays the same.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace underkeel::kernels::cpu {

class Workspace {
 public:
  /// The calling thread's, with a slot for each of `thread_count` threads of its pool.
  static Workspace& for_threads(int thread_count);

  /// cpu_shared_bytes bytes, written and read by all tiles of one call.
  float* shared() const { return memory_.get(); }

  /// cpu_slot_bytes bytes that one running tile has to itself. At most as many tiles run as there
  /// are threads, so a free one is always found. Which one it is changes no result.
  class Slot {
   public:
    explicit Slot(Workspace& workspace);
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    float* data() const { return data_; }

   private:
    std::atomic<bool>* taken_ = nullptr;
    float* data_ = nullptr;
  };

 private:
  struct Free {
    void operator()(float* memory) const;
  };
  void grow(int thread_count);

  int slot_count_ = 0;
  std::unique_ptr<float, Free> memory_;
  std::unique_ptr<std::atomic<bool>[]> taken_;
};

}  // namespace underkeel::kernels::cpu
