#include "io/checksum.h"

// The size of the state, so that it can live inside our class instead of on the heap.
#define XXH_STATIC_LINKING_ONLY
#include <algorithm>
#include <new>

#include <fmt/format.h>
#include <xxhash.h>

#include "base/check.h"

namespace underkeel::io {

namespace {
XXH3_state_t* state_of(std::byte* storage) {
  return std::launder(reinterpret_cast<XXH3_state_t*>(storage));
}
const XXH3_state_t* state_of(const std::byte* storage) {
  return std::launder(reinterpret_cast<const XXH3_state_t*>(storage));
}
}  // namespace

Checksum::Checksum() {
  static_assert(sizeof(XXH3_state_t) <= sizeof state_ && alignof(XXH3_state_t) <= 64);
  XXH3_64bits_reset(new (state_) XXH3_state_t);
}

void Checksum::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_of(state_), bytes.data(), bytes.size());
}

std::uint64_t Checksum::value() const {
  return XXH3_64bits_digest(state_of(state_));
}

std::string checksum_text(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

std::optional<std::uint64_t> parse_checksum(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) return std::nullopt;
    value = value << 4 | static_cast<std::uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  return value;
}

Result<void> PartWriter::write(std::span<const std::byte> piece) {
  checksum_.update(piece);
  UK_TRY_VOID(file_.write(piece, end_));
  end_ += std::ssize(piece);
  return {};
}

Result<std::uint64_t> checksum_of(const File& file, std::int64_t begin, std::int64_t end,
                                  std::span<std::byte> buffer) {
  UK_CHECK(!buffer.empty(), "a checksum needs a buffer to read through");
  Checksum checksum;
  for (std::int64_t at = begin; at < end; at += std::ssize(buffer)) {
    const auto piece =
        buffer.first(static_cast<std::size_t>(std::min(std::ssize(buffer), end - at)));
    UK_TRY_VOID(file.read(piece, at));
    checksum.update(piece);
  }
  return checksum.value();
}

}  // namespace underkeel::io
