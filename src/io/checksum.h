#pragma once
// XXH3 checksums of bytes as they pass, without an allocation.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/file.h"

namespace underkeel::io {

/// 64-bit XXH3 of a stream of pieces; the cut into pieces does not matter.
class Checksum {
 public:
  Checksum();
  void update(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  alignas(64) std::byte state_[576];  // the library's state, checked in the .cpp
};

/// 16 hexadecimal digits, and back; nothing for any other text.
std::string checksum_text(std::uint64_t value);
std::optional<std::uint64_t> parse_checksum(std::string_view text);

/// A stretch of a file that was written, and is checked, as one.
struct FilePart {
  std::int64_t begin = 0;  // bytes of the file
  std::int64_t end = 0;    // exclusive
  std::uint64_t xxh3_64 = 0;
};

/// Writes one part front to back, in pieces as they come out of a staging buffer.
class PartWriter {
 public:
  PartWriter(File& file, std::int64_t begin) : file_(file), begin_(begin), end_(begin) {}

  Result<void> write(std::span<const std::byte> piece);
  /// What has been written so far.
  FilePart part() const { return {begin_, end_, checksum_.value()}; }

 private:
  File& file_;
  std::int64_t begin_;
  std::int64_t end_;
  Checksum checksum_;
};

/// Checksum of a stretch of a file, read through `buffer`.
Result<std::uint64_t> checksum_of(const File& file, std::int64_t begin, std::int64_t end,
                                  std::span<std::byte> buffer);

}  // namespace underkeel::io
