#pragma once
// One block of memory per memory space, taken and touched before the run is sealed.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "device/gpu.h"
#include "plan/schedule.h"

namespace underkeel::exec {

/// In host memory an anonymous mapping between two inaccessible pages, every page of it resident; or one
/// allocation on a GPU.
class Arena {
 public:
  /// Errors: does_not_fit when the system refuses; `name` says which arena in messages.
  static Result<Arena> make(std::int64_t size_bytes, std::string name);
  /// In host memory whose pages `gpu`, which must outlive it, reads and writes itself.
  static Result<Arena> make_pinned(std::int64_t size_bytes, std::string name, device::Gpu& gpu);
  /// On `gpu`, which must outlive it.
  static Result<Arena> make_on_gpu(std::int64_t size_bytes, std::string name, device::Gpu& gpu);
  /// The one that `space` needs: on the GPU, within its reach, or, with none, in host memory.
  static Result<Arena> make_for(plan::MemorySpace space, std::int64_t size_bytes, int rank,
                                device::Gpu* gpu);
  Arena() = default;
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::byte* data() const { return data_; }
  std::int64_t size_bytes() const { return size_bytes_; }
  const std::string& name() const { return name_; }
  bool is_on_gpu() const { return gpu_ != nullptr && !is_pinned_; }

  /// Resident bytes of the mapping as the kernel reports them (/proc/self/smaps), not as we count; on a
  /// GPU what the driver has less than before the arena was taken, whoever took it.
  Result<std::int64_t> resident_bytes() const;

 private:
  std::byte* data_ = nullptr;
  std::int64_t size_bytes_ = 0;
  std::string name_;
  device::Gpu* gpu_ = nullptr;
  bool is_pinned_ = false;
  std::int64_t free_before_bytes_ = 0;  // on the GPU
};

/// Marks bytes as not to be touched, or as usable again. Nothing without AddressSanitizer.
void poison(const void* begin, std::int64_t size_bytes);
void unpoison(const void* begin, std::int64_t size_bytes);
/// Whether poison() has an effect in this build.
bool poisoning_works();

}  // namespace underkeel::exec
