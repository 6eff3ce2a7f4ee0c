#pragma once
// One block of memory per memory space, taken and touched before the run is sealed.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace underkeel::exec {

/// An anonymous mapping between two inaccessible pages, every page of it resident.
class Arena {
 public:
  /// Errors: does_not_fit when the system refuses; `name` says which arena in messages.
  static Result<Arena> make(std::int64_t size_bytes, std::string name);
  Arena() = default;
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::byte* data() const { return data_; }
  std::int64_t size_bytes() const { return size_bytes_; }
  const std::string& name() const { return name_; }

  /// Resident bytes of the mapping as the kernel reports them (/proc/self/smaps), not as we count.
  Result<std::int64_t> resident_bytes() const;

 private:
  std::byte* data_ = nullptr;
  std::int64_t size_bytes_ = 0;
  std::string name_;
};

/// Marks bytes as not to be touched, or as usable again. Nothing without AddressSanitizer.
void poison(const void* begin, std::int64_t size_bytes);
void unpoison(const void* begin, std::int64_t size_bytes);
/// Whether poison() has an effect in this build.
bool poisoning_works();

}  // namespace underkeel::exec
