#include "io/value_look.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/units.h"

namespace underkeel::io {

namespace {

// A disk reads so much at once in hardly more time than one page.
constexpr std::int64_t block_bytes = 64 * kibibyte;
constexpr std::int64_t page_bytes = 4 * kibibyte;

/// A number is finite unless all bits of its exponent are set. Two passes: the first has no way out, so that it runs over
/// many numbers at once.
template <class Bits>
std::int64_t find_full_exponent(std::span<const std::byte> bytes, Bits exponent) {
  const std::size_t count = bytes.size() / sizeof(Bits);
  const auto is_full = [&](std::size_t i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    return (bits & exponent) == exponent;
  };
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) any |= is_full(i);
  for (std::size_t i = 0; any && i < count; ++i)
    if (is_full(i)) return static_cast<std::int64_t>(i);
  return -1;
}

/// Calls `look(begin, size)` for the blocks of `size_bytes` bytes that are looked at: all of them, or as many as
/// `most_bytes` allows, the first and the last among them; of less than a block its pages at the front. Stops when it
/// gives false.
template <class Look>
Result<void> for_blocks(std::int64_t size_bytes, std::int64_t most_bytes, Look&& look) {
  if (most_bytes < std::min(block_bytes, size_bytes)) {
    const std::int64_t pages = most_bytes / page_bytes * page_bytes;
    if (pages > 0) UK_TRY_VOID(look(std::int64_t{0}, pages));
    return {};
  }
  const std::int64_t all = ceil_div(size_bytes, block_bytes);
  const std::int64_t count =
      std::clamp<std::int64_t>(most_bytes / block_bytes, std::min<std::int64_t>(1, all), all);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t block = count == 1 ? 0 : i * (all - 1) / (count - 1);
    const std::int64_t begin = block * block_bytes;
    UK_TRY(goes_on, look(begin, std::min(block_bytes, size_bytes - begin)));
    if (!goes_on) break;
  }
  return {};
}

/// The part of what may be read that falls to a tensor.
std::int64_t share_of(std::int64_t most_bytes, std::int64_t size_bytes, std::int64_t total_bytes) {
  if (most_bytes >= total_bytes) return all_bytes;
  return static_cast<std::int64_t>(static_cast<double>(most_bytes) *
                                   static_cast<double>(size_bytes) /
                                   static_cast<double>(total_bytes));
}

}  // namespace

std::int64_t first_not_finite(DType type, std::span<const std::byte> bytes) {
  switch (type) {
    case DType::f32:
      return find_full_exponent<std::uint32_t>(bytes, 0x7F800000u);
    case DType::f64:
      return find_full_exponent<std::uint64_t>(bytes, 0x7FF0000000000000u);
    case DType::bf16:
      return find_full_exponent<std::uint16_t>(bytes, std::uint16_t{0x7F80});
    case DType::f16:
      return find_full_exponent<std::uint16_t>(bytes, std::uint16_t{0x7C00});
    case DType::i64:
    case DType::i32:
    case DType::u8:
    case DType::nf4:
      break;  // every pattern is a number
  }
  return -1;
}

Result<ValueLook> look_at_values(FileSystem& files, std::span<const SafetensorsHeader> headers,
                                 std::int64_t most_bytes) {
  ValueLook seen;
  std::int64_t tensor_count = 0;
  for (const SafetensorsHeader& header : headers)
    for (const TensorEntry& entry : header.tensors)
      if (entry.type) {
        seen.total_bytes += entry.size_bytes();
        ++tensor_count;
      }
  if (tensor_count == 0) return seen;
  // Small tensors among large ones get a block all the same, or less where they are many.
  const std::int64_t least = std::min(block_bytes, most_bytes / tensor_count);
  std::vector<std::byte> buffer(static_cast<std::size_t>(block_bytes));
  for (const SafetensorsHeader& header : headers) {
    UK_TRY(file, files.open(header.path));
    for (const TensorEntry& entry : header.tensors) {
      if (!entry.type) continue;
      UK_TRY_VOID(for_blocks(
          entry.size_bytes(),
          std::max(least, share_of(most_bytes, entry.size_bytes(), seen.total_bytes)),
          [&](std::int64_t begin, std::int64_t size) -> Result<bool> {
            const auto bytes = std::span(buffer).first(static_cast<std::size_t>(size));
            UK_TRY_VOID(file.read(bytes, entry.begin + begin));
            seen.read_bytes += size;
            const std::int64_t bad = first_not_finite(*entry.type, bytes);
            if (bad < 0) return true;
            if (seen.tensors_not_finite++ == 0)
              seen.first_not_finite =
                  ValueLook::Place{header.path, entry.name, begin * 8 / bits_of(*entry.type) + bad};
            return false;
          }));
    }
  }
  return seen;
}

Result<Likeness> compare_tensors(FileSystem& files, const FoundTensor& a, const FoundTensor& b,
                                 std::int64_t most_bytes) {
  Likeness seen{.total_bytes = a.entry.size_bytes()};
  if (a.entry.dtype_text != b.entry.dtype_text || a.entry.shape != b.entry.shape) return seen;
  UK_TRY(file_a, files.open(a.path));
  UK_TRY(file_b, files.open(b.path));
  std::vector<std::byte> of_a(static_cast<std::size_t>(block_bytes)), of_b(of_a.size());
  seen.is_equal = true;
  UK_TRY_VOID(for_blocks(
      seen.total_bytes, most_bytes, [&](std::int64_t begin, std::int64_t size) -> Result<bool> {
        const auto count = static_cast<std::size_t>(size);
        UK_TRY_VOID(file_a.read(std::span(of_a).first(count), a.entry.begin + begin));
        UK_TRY_VOID(file_b.read(std::span(of_b).first(count), b.entry.begin + begin));
        seen.read_bytes += size;
        seen.is_equal = std::memcmp(of_a.data(), of_b.data(), count) == 0;
        return seen.is_equal;
      }));
  return seen;
}

}  // namespace underkeel::io
