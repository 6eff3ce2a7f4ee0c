// A shared object to preload into the training program: counts the heap that all threads hold, and at each
// `step` line of events.jsonl appends "step, heap bytes in use, bytes mapped, bytes resident" to the file named
// by HEAP_WATCH_LOG. What malloc maps or takes by brk itself shows in the mapped bytes, which the kernel counts.

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
ssize_t __pwrite64(int, const void*, size_t, off64_t);
}

namespace {

std::atomic<std::int64_t> in_use_bytes{0};

void* count(void* block) {
  if (block != nullptr) in_use_bytes += static_cast<std::int64_t>(malloc_usable_size(block));
  return block;
}

void note_step(const char* text, std::size_t size) {
  char line[64];
  const char* const found = static_cast<const char*>(memmem(text, size, "\"step\": ", 8));
  if (found == nullptr || memmem(text, size, "\"event\": \"step\"", 15) == nullptr) return;
  const char* const path = std::getenv("HEAP_WATCH_LOG");
  if (path == nullptr) return;
  const std::int64_t heap_bytes = in_use_bytes;
  char statm[128] = {};
  const int from = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (from < 0 || read(from, statm, sizeof statm - 1) <= 0) return;
  close(from);
  long long mapped_pages = 0, resident_pages = 0;
  if (std::sscanf(statm, "%lld %lld", &mapped_pages, &resident_pages) != 2) return;
  const int length =
      std::snprintf(line, sizeof line, "%lld %lld %lld %lld\n", std::atoll(found + 8),
                    static_cast<long long>(heap_bytes), mapped_pages * 4096, resident_pages * 4096);
  const int to = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (to < 0) return;
  if (write(to, line, static_cast<std::size_t>(length)) != length) std::abort();
  close(to);
}

}  // namespace

extern "C" {

void* malloc(size_t size) {
  return count(__libc_malloc(size));
}
void* calloc(size_t number, size_t size) {
  return count(__libc_calloc(number, size));
}
void* memalign(size_t alignment, size_t size) {
  return count(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) {
  return count(__libc_memalign(alignment, size));
}
int posix_memalign(void** into, size_t alignment, size_t size) {
  void* const block = count(__libc_memalign(alignment, size));
  if (block == nullptr) return ENOMEM;
  *into = block;
  return 0;
}
void free(void* block) {
  if (block != nullptr) in_use_bytes -= static_cast<std::int64_t>(malloc_usable_size(block));
  __libc_free(block);
}
void* realloc(void* block, size_t size) {
  const std::int64_t before =
      block == nullptr ? 0 : static_cast<std::int64_t>(malloc_usable_size(block));
  void* const moved = __libc_realloc(block, size);
  if (moved != nullptr || size == 0) {
    in_use_bytes -= before;
    count(moved);
  }
  return moved;
}

ssize_t pwrite64(int file, const void* from, size_t size, off64_t offset) {
  note_step(static_cast<const char*>(from), size);
  return __pwrite64(file, from, size, offset);
}
ssize_t pwrite(int file, const void* from, size_t size, off_t offset) {
  return pwrite64(file, from, size, offset);
}
}
