#pragma once
// Where an operation runs: one queue per lane. On the CPU a queue is the lane's own thread, and
// a call returns when its work is done; on CUDA it is a stream, and a call returns once queued.

#include "device/thread_pool.h"

namespace underkeel::device {

enum class DeviceKind { cpu, cuda };

class Queue {
 public:
  static Queue on_cpu(ThreadPool& pool) {
    Queue queue;
    queue.pool_ = &pool;
    return queue;
  }
  static Queue on_cuda(void* stream) {
    Queue queue;
    queue.kind_ = DeviceKind::cuda;
    queue.stream_ = stream;
    return queue;
  }

  DeviceKind kind() const { return kind_; }
  ThreadPool& pool() const { return *pool_; }  // CPU only
  void* stream() const { return stream_; }     // a cudaStream_t; CUDA only

 private:
  Queue() = default;
  DeviceKind kind_ = DeviceKind::cpu;
  ThreadPool* pool_ = nullptr;
  void* stream_ = nullptr;
};

}  // namespace underkeel::device
