// Protobuf by hand: an Event is {1: wall time, 2: step, 3: file version or 5: summary}, a summary is a
// list of {1: tag, 2: value}.

#include "train/tensorboard.h"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace underkeel::train {
namespace {

constexpr auto crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0x82F63B78u : 0u);
    table[i] = value;
  }
  return table;
}();

template <class T>
void append_little_endian(T value, std::string& to) {
  for (std::size_t i = 0; i < sizeof(T); ++i) to += static_cast<char>(value >> (8 * i));
}

void append_varint(std::uint64_t value, std::string& to) {
  while (value >= 0x80) {
    to += static_cast<char>((value & 0x7F) | 0x80);
    value >>= 7;
  }
  to += static_cast<char>(value);
}

enum class WireType { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
void append_key(int field, WireType type, std::string& to) {
  append_varint(static_cast<std::uint64_t>(field << 3 | static_cast<int>(type)), to);
}
void append_bytes(int field, std::string_view bytes, std::string& to) {
  append_key(field, WireType::bytes, to);
  append_varint(bytes.size(), to);
  to += bytes;
}

std::string event_at(double now_s, std::int64_t step) {
  std::string event;
  append_key(1, WireType::fixed64, event);
  append_little_endian(std::bit_cast<std::uint64_t>(now_s), event);
  append_key(2, WireType::varint, event);
  append_varint(static_cast<std::uint64_t>(step), event);
  return event;
}

/// A checksum beside the data that it is of: the format turns and shifts it.
std::uint32_t masked(std::string_view bytes) {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

std::string tag_of(LogEntry::Kind kind, std::string_view name) {
  if (kind == LogEntry::Kind::evaluation && name.starts_with("eval_"))
    return fmt::format("eval/{}", name.substr(5));
  return fmt::format("train/{}", name);
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~0u;
  for (const std::byte byte : bytes)
    crc = (crc >> 8) ^ crc_table[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFF];
  return ~crc;
}

Result<TensorboardFile> TensorboardFile::create(io::FileSystem& files, const std::string& folder,
                                                double now_s) {
  UK_TRY_VOID(files.make_folders(folder));
  char host[256] = "host";
  if (gethostname(host, sizeof host - 1) != 0) std::strcpy(host, "host");
  UK_TRY(file, files.create(io::join_path(
                   folder, fmt::format("events.out.tfevents.{}.{}.{}.0",
                                       static_cast<std::int64_t>(now_s), host, getpid()))));
  TensorboardFile made(std::move(file));
  std::string event = event_at(now_s, 0);
  append_bytes(3, "brain.Event:2", event);
  UK_TRY_VOID(made.write(event));
  return made;
}

Result<void> TensorboardFile::append(const LogEntry& entry, double now_s) {
  std::string summary;
  const auto add = [&](std::string_view name, double number) {
    std::string value;
    append_bytes(1, tag_of(entry.kind, name), value);
    append_key(2, WireType::fixed32, value);
    append_little_endian(std::bit_cast<std::uint32_t>(static_cast<float>(number)), value);
    append_bytes(1, value, summary);
  };
  const auto names = LogEntry::names(entry.kind);
  for (std::size_t i = 0; i < names.size(); ++i) add(names[i], entry.values[i]);
  add("epoch", entry.epoch);
  std::string event = event_at(now_s, entry.step);
  append_bytes(5, summary, event);
  return write(event);
}

Result<void> TensorboardFile::write(std::string_view event) {
  std::string record;
  append_little_endian(static_cast<std::uint64_t>(event.size()), record);
  const std::uint32_t of_size = masked(record);
  append_little_endian(of_size, record);
  record += event;
  append_little_endian(masked(event), record);
  UK_TRY_VOID(file_.write(std::as_bytes(std::span(record)), end_bytes_));
  end_bytes_ += static_cast<std::int64_t>(record.size());
  return {};
}

}  // namespace underkeel::train
