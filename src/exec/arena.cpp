#include "exec/arena.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/units.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace underkeel::exec {

namespace {
std::int64_t page_bytes() {
  return sysconf(_SC_PAGESIZE);
}
}  // namespace

Result<Arena> Arena::make(std::int64_t size_bytes, std::string name) {
  Arena arena;
  arena.name_ = std::move(name);
  if (size_bytes == 0) return arena;
  const std::int64_t page = page_bytes();
  const std::int64_t inner = round_up(size_bytes, page);
  // The inaccessible pages keep the kernel from merging this mapping with a neighbour, so that smaps
  // tells its bytes apart, and turn an overrun into a fault.
  void* outer = mmap(nullptr, static_cast<std::size_t>(inner + 2 * page), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (outer == MAP_FAILED)
    return fail(ErrorCode::does_not_fit,
                fmt::format("the system refused {} of address space: {}", format_bytes(inner),
                            std::strerror(errno)),
                arena.name_, "raise the limit on virtual memory (ulimit -v) or use more ranks");
  auto* begin = static_cast<std::byte*>(outer) + page;
  if (mprotect(begin, static_cast<std::size_t>(inner), PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    munmap(outer, static_cast<std::size_t>(inner + 2 * page));
    return fail(ErrorCode::does_not_fit,
                fmt::format("the system refused {} of memory: {}", format_bytes(inner),
                            std::strerror(error)),
                arena.name_, "free memory on this machine, or use more ranks or a higher stage");
  }
  arena.data_ = begin;
  arena.size_bytes_ = inner;
  // Touched page by page: from here on nothing can fail for want of memory.
  for (std::int64_t at = 0; at < inner; at += page)
    *reinterpret_cast<volatile unsigned char*>(begin + at) = 0;
  return arena;
}

Result<Arena> Arena::make_pinned(std::int64_t size_bytes, std::string name, device::Gpu& gpu) {
  UK_TRY(arena, make(size_bytes, std::move(name)));
  if (arena.data_ == nullptr) return arena;
  UK_TRY_VOID(gpu.pin(arena.data_, arena.size_bytes_));
  arena.gpu_ = &gpu;
  arena.is_pinned_ = true;
  return arena;
}

Result<Arena> Arena::make_on_gpu(std::int64_t size_bytes, std::string name, device::Gpu& gpu) {
  Arena arena;
  arena.name_ = std::move(name);
  if (size_bytes == 0) return arena;
  UK_TRY(free_before, gpu.free_bytes());
  UK_TRY(data, gpu.allocate(size_bytes));
  arena.data_ = static_cast<std::byte*>(data);
  arena.size_bytes_ = size_bytes;
  arena.gpu_ = &gpu;
  arena.free_before_bytes_ = free_before;
  return arena;
}

Result<Arena> Arena::make_for(plan::MemorySpace space, std::int64_t size_bytes, int rank,
                              device::Gpu* gpu) {
  const auto name = fmt::format("{} arena of rank {}", plan::name_of(space), rank);
  if (gpu != nullptr && space == plan::MemorySpace::device)
    return make_on_gpu(size_bytes, name, *gpu);
  if (gpu != nullptr && space == plan::MemorySpace::pinned_host)
    return make_pinned(size_bytes, name, *gpu);
  return make(size_bytes, name);
}

Arena::Arena(Arena&& other) noexcept {
  *this = std::move(other);
}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(name_, other.name_);
  std::swap(gpu_, other.gpu_);
  std::swap(is_pinned_, other.is_pinned_);
  std::swap(free_before_bytes_, other.free_before_bytes_);
  return *this;
}

Arena::~Arena() {
  if (data_ == nullptr) return;
  if (is_on_gpu()) {
    gpu_->release(data_);
    return;
  }
  if (is_pinned_) gpu_->unpin(data_);
  unpoison(data_, size_bytes_);
  const std::int64_t page = page_bytes();
  munmap(data_ - page, static_cast<std::size_t>(size_bytes_ + 2 * page));
}

Result<std::int64_t> Arena::resident_bytes() const {
  if (data_ == nullptr) return 0;
  if (is_on_gpu()) {
    UK_TRY(free_now, gpu_->free_bytes());
    return free_before_bytes_ - free_now;
  }
  std::FILE* smaps = std::fopen("/proc/self/smaps", "re");
  if (smaps == nullptr)
    return fail(ErrorCode::io,
                fmt::format("cannot read /proc/self/smaps: {}", std::strerror(errno)), name_,
                "mount /proc");
  const auto begin = reinterpret_cast<std::uintptr_t>(data_);
  const std::uintptr_t end = begin + static_cast<std::uintptr_t>(size_bytes_);
  bool inside = false;
  std::int64_t resident = 0;
  char line[512];
  while (std::fgets(line, sizeof line, smaps) != nullptr) {
    unsigned long first = 0;
    unsigned long last = 0;
    long kibibytes = 0;
    if (std::sscanf(line, "%lx-%lx ", &first, &last) == 2) {
      inside = first >= begin && last <= end;
    } else if (inside && std::sscanf(line, "Rss: %ld kB", &kibibytes) == 1) {
      resident += kibibytes * kibibyte;
    }
  }
  std::fclose(smaps);
  return resident;
}

#if defined(__SANITIZE_ADDRESS__)
void poison(const void* begin, std::int64_t size_bytes) {
  ASAN_POISON_MEMORY_REGION(begin, static_cast<std::size_t>(size_bytes));
}
void unpoison(const void* begin, std::int64_t size_bytes) {
  ASAN_UNPOISON_MEMORY_REGION(begin, static_cast<std::size_t>(size_bytes));
}
bool poisoning_works() {
  return true;
}
#else
void poison(const void*, std::int64_t) {}
void unpoison(const void*, std::int64_t) {}
bool poisoning_works() {
  return false;
}
#endif

}  // namespace underkeel::exec
