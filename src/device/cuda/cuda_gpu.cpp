// A GPU through the CUDA runtime.

#include <mutex>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "base/check.h"
#include "base/units.h"
#include "device/gpu.h"

namespace underkeel::device {

namespace {

std::string text_of(cudaError_t error) {
  return fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
}

Result<void> result_of(cudaError_t error, std::string_view doing) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // the error is told here; a sticky one comes back by itself
  return fail(
      ErrorCode::io, fmt::format("{}: the driver says: {}", doing, text_of(error)), "",
      "run it again with CUDA_LAUNCH_BLOCKING=1 in the environment, which has the operation "
      "named that fails; nvidia-smi and the kernel log tell whether the GPU is sound");
}

cudaStream_t stream_of(const Queue& queue) {
  return static_cast<cudaStream_t>(queue.stream());
}

class CudaGpu final : public Gpu {
 public:
  CudaGpu(int ordinal, GpuFacts facts) : ordinal_(ordinal), facts_(std::move(facts)) {}

  ~CudaGpu() override {
    cudaSetDevice(ordinal_);
    cudaDeviceSynchronize();
    for (const cudaGraphExec_t graph : graphs_) cudaGraphExecDestroy(graph);
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    for (const cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }

  const GpuFacts& facts() const override { return facts_; }

  Result<void> use() override { return result_of(cudaSetDevice(ordinal_), "choosing the GPU"); }

  Result<std::int64_t> free_bytes() override {
    std::size_t free = 0;
    std::size_t total = 0;
    UK_TRY_VOID(result_of(cudaMemGetInfo(&free, &total), "asking for free memory"));
    return static_cast<std::int64_t>(free);
  }

  Result<void*> allocate(std::int64_t size_bytes) override {
    void* data = nullptr;
    const cudaError_t error = cudaMalloc(&data, static_cast<std::size_t>(size_bytes));
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      UK_TRY(free, free_bytes());
      return fail(ErrorCode::does_not_fit,
                  fmt::format("the GPU has {} free, {} are needed", format_bytes(free),
                              format_bytes(size_bytes)),
                  facts_.name,
                  fmt::format("end what else uses the GPU, or plan for less: underkeel.memory."
                              "device={}MiB",
                              free / mebibyte));
    }
    UK_TRY_VOID(result_of(error, "taking device memory"));
    return data;
  }
  void release(void* data) override { cudaFree(data); }

  Result<void> pin(void* begin, std::int64_t size_bytes) override {
    const cudaError_t error =
        cudaHostRegister(begin, static_cast<std::size_t>(size_bytes), cudaHostRegisterPortable);
    if (error == cudaErrorMemoryAllocation || error == cudaErrorOperatingSystem)
      return fail(ErrorCode::does_not_fit,
                  fmt::format("{} of host memory cannot be page-locked: {}",
                              format_bytes(size_bytes), text_of(error)),
                  "", "raise the limit on locked memory (ulimit -l)");
    return result_of(error, "page-locking host memory");
  }
  void unpin(void* begin) override { cudaHostUnregister(begin); }

  Result<Queue> make_queue() override {
    cudaStream_t stream = nullptr;
    UK_TRY_VOID(
        result_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream"));
    streams_.push_back(stream);
    return Queue::on_cuda(stream);
  }

  Result<EventId> make_event() override {
    cudaEvent_t event = nullptr;
    UK_TRY_VOID(
        result_of(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event"));
    events_.push_back(event);
    return EventId{static_cast<std::uint32_t>(events_.size() - 1)};
  }
  Result<void> record(EventId event, const Queue& queue) override {
    return result_of(cudaEventRecord(at(event), stream_of(queue)), "recording an event");
  }
  Result<void> wait(EventId event, const Queue& queue) override {
    return result_of(cudaStreamWaitEvent(stream_of(queue), at(event), 0), "waiting for an event");
  }
  Result<void> wait(const Gpu& other, EventId event, const Queue& queue) override {
    return result_of(cudaStreamWaitEvent(stream_of(queue), on_cuda(other).at(event), 0),
                     "waiting for another GPU's event");
  }
  Result<void> wait_on_host(EventId event) override {
    return result_of(cudaEventSynchronize(at(event)), "waiting for the GPU");
  }
  Result<void> synchronize(const Queue& queue) override {
    return result_of(cudaStreamSynchronize(stream_of(queue)), "waiting for the GPU");
  }

  Result<void> reach(const Gpu& other) override {
    const cudaError_t error = cudaDeviceEnablePeerAccess(on_cuda(other).ordinal_, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();
      return {};
    }
    return result_of(error, "opening another GPU's memory");
  }

  Result<void> copy(void* to, const void* from, std::int64_t size_bytes,
                    const Queue& queue) override {
    if (size_bytes == 0) return {};
    return result_of(cudaMemcpyAsync(to, from, static_cast<std::size_t>(size_bytes),
                                     cudaMemcpyDefault, stream_of(queue)),
                     "copying");
  }
  Result<void> fill(void* begin, std::int64_t size_bytes, std::uint8_t value,
                    const Queue& queue) override {
    if (size_bytes == 0) return {};
    return result_of(
        cudaMemsetAsync(begin, value, static_cast<std::size_t>(size_bytes), stream_of(queue)),
        "filling memory");
  }
  Result<void> begin_capture(const Queue& queue) override {
    return result_of(cudaStreamBeginCapture(stream_of(queue), cudaStreamCaptureModeThreadLocal),
                     "beginning to capture a graph");
  }
  Result<GraphId> end_capture(const Queue& queue) override {
    cudaGraph_t kept = nullptr;
    UK_TRY_VOID(result_of(cudaStreamEndCapture(stream_of(queue), &kept), "capturing a graph"));
    cudaGraphExec_t graph = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&graph, kept, 0);
    cudaGraphDestroy(kept);
    UK_TRY_VOID(result_of(error, "making a graph"));
    graphs_.push_back(graph);
    UK_TRY_VOID(result_of(cudaGraphUpload(graph, stream_of(queue)), "sending a graph to the GPU"));
    return GraphId{static_cast<std::uint32_t>(graphs_.size() - 1)};
  }
  Result<void> launch(GraphId graph, const Queue& queue) override {
    return result_of(cudaGraphLaunch(graphs_[static_cast<std::size_t>(graph)], stream_of(queue)),
                     "launching a graph");
  }
  Result<void> check_launches() override {
    return result_of(cudaPeekAtLastError(), "launching a kernel");
  }

 private:
  // The only GPUs of a build with CUDA are of this class.
  static const CudaGpu& on_cuda(const Gpu& gpu) { return static_cast<const CudaGpu&>(gpu); }
  cudaEvent_t at(EventId event) const { return events_[static_cast<std::size_t>(event)]; }

  int ordinal_;
  GpuFacts facts_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::vector<cudaGraphExec_t> graphs_;
};

Result<GpuFacts> facts_of(int ordinal) {
  cudaDeviceProp properties{};
  UK_TRY_VOID(result_of(cudaGetDeviceProperties(&properties, ordinal), "describing the GPU"));
  return GpuFacts{.name = properties.name,
                  .compute_major = properties.major,
                  .compute_minor = properties.minor,
                  .multiprocessor_count = properties.multiProcessorCount,
                  .total_bytes = static_cast<std::int64_t>(properties.totalGlobalMem)};
}

// The first architecture that this build has code for.
constexpr int oldest_compute_major = 7;
constexpr int oldest_compute_minor = 5;

}  // namespace

Result<std::vector<GpuFacts>> find_gpus() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    cudaGetLastError();
    const bool is_absent = error == cudaSuccess || error == cudaErrorNoDevice;
    return fail(ErrorCode::unsupported,
                is_absent ? std::string("this machine has no NVIDIA GPU that this process may use")
                          : fmt::format("no GPU can be reached: {}", text_of(error)),
                "underkeel.device",
                is_absent ? "set it to cpu, or look at CUDA_VISIBLE_DEVICES"
                          : "set it to cpu, or install an NVIDIA driver for CUDA 13 (nvidia-smi "
                            "shows what is there)");
  }
  std::vector<GpuFacts> gpus;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    UK_TRY(facts, facts_of(ordinal));
    gpus.push_back(std::move(facts));
  }
  return gpus;
}

Result<bool> gpus_reach_one_another(int count) {
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      int can = 0;
      UK_TRY_VOID(result_of(cudaDeviceCanAccessPeer(&can, from, to),
                            "asking whether GPUs reach one another's memory"));
      if (can == 0) return false;
    }
  return true;
}

Result<std::unique_ptr<Gpu>> open_gpu(int ordinal) {
  UK_TRY(gpus, find_gpus());
  UK_CHECK(ordinal >= 0 && ordinal < static_cast<int>(gpus.size()), "no such GPU");
  GpuFacts facts = std::move(gpus[static_cast<std::size_t>(ordinal)]);
  if (facts.compute_major * 10 + facts.compute_minor <
      oldest_compute_major * 10 + oldest_compute_minor)
    return fail(
        ErrorCode::unsupported,
        fmt::format("{} has compute capability {}.{}; {}.{} is the oldest that is supported",
                    facts.name, facts.compute_major, facts.compute_minor, oldest_compute_major,
                    oldest_compute_minor),
        "underkeel.device", "set it to cpu, or use a newer GPU");
  auto gpu = std::make_unique<CudaGpu>(ordinal, std::move(facts));
  UK_TRY_VOID(gpu->use());
  // Creates the context: everything that it takes is taken before anyone asks what is free.
  UK_TRY_VOID(result_of(cudaFree(nullptr), "starting the GPU"));
  return gpu;
}

}  // namespace underkeel::device
