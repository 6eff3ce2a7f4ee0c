// Readers of two files of /proc, without a heap.

#include "train/process_memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/units.h"

namespace underkeel::train {
namespace {

/// The value of a line "NAME:   123 kB".
Result<std::int64_t> field_bytes(std::string_view text, std::string_view name,
                                 std::string_view file) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    const std::size_t digits = line.find_first_of("0123456789");
    if (digits == std::string_view::npos || !line.ends_with(" kB")) break;
    std::int64_t kibibytes = 0;
    std::from_chars(line.data() + digits, line.data() + line.size(), kibibytes);
    return kibibytes * kibibyte;
  }
  return fail(ErrorCode::bad_file, fmt::format("there is no `{}: N kB`", name), std::string(file),
              "this needs the /proc of Linux");
}

// Both files are shorter: status has about 60 lines.
struct SmallText {
  std::array<char, 8192> bytes;
  std::size_t size = 0;
  std::string_view view() const { return {bytes.data(), size}; }
};

Result<void> read_small(const char* path, SmallText& text) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = descriptor < 0 ? -1 : 1;
  while (got > 0 && text.size < text.bytes.size()) {
    got = read(descriptor, text.bytes.data() + text.size, text.bytes.size() - text.size);
    if (got < 0 && errno == EINTR)
      got = 1;
    else if (got > 0)
      text.size += static_cast<std::size_t>(got);
  }
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (got < 0)
    return fail(ErrorCode::io, fmt::format("cannot be read: {}", std::strerror(error)), path,
                "mount /proc");
  return {};
}

}  // namespace

Result<ProcessMemory> parse_process_status(std::string_view text) {
  constexpr std::string_view file = "/proc/self/status";
  UK_TRY(resident, field_bytes(text, "VmRSS", file));
  UK_TRY(most, field_bytes(text, "VmHWM", file));
  UK_TRY(anonymous, field_bytes(text, "RssAnon", file));
  return ProcessMemory{.resident_bytes = resident,
                       .most_resident_bytes = most,
                       .anonymous_resident_bytes = anonymous};
}

Result<ProcessMemory> read_process_memory() {
  SmallText text;
  UK_TRY_VOID(read_small("/proc/self/status", text));
  return parse_process_status(text.view());
}

Result<MemoryRollup> parse_smaps_rollup(std::string_view text) {
  constexpr std::string_view file = "/proc/self/smaps_rollup";
  UK_TRY(resident, field_bytes(text, "Rss", file));
  UK_TRY(proportional, field_bytes(text, "Pss", file));
  UK_TRY(anonymous, field_bytes(text, "Anonymous", file));
  return MemoryRollup{
      .resident_bytes = resident, .proportional_bytes = proportional, .anonymous_bytes = anonymous};
}

Result<MemoryRollup> read_memory_rollup() {
  SmallText text;
  UK_TRY_VOID(read_small("/proc/self/smaps_rollup", text));
  return parse_smaps_rollup(text.view());
}

std::int64_t planned_process_bytes(const ProcessMemory& now, const MemoryToCome& to_come) {
  const std::int64_t later = now.resident_bytes + to_come.arena_bytes +
                             to_come.thread_count * thread_touched_bytes + to_come.packing_bytes +
                             to_come.log_bytes + to_come.order_bytes + to_come.driver_bytes +
                             to_come.transport_bytes + unseen_bytes;
  return std::max(later, now.most_resident_bytes);
}

}  // namespace underkeel::train
