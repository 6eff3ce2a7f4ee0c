// Appending by offset, and finding the end of the last whole line.

#include "train/json_lines.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "train/trainer_state.h"

namespace underkeel::train {

JsonLine& JsonLine::begin(std::string_view name) {
  if (text_.size() > 1) text_ += ", ";
  text_ += fmt::format("\"{}\": ", name);
  return *this;
}

JsonLine& JsonLine::add(std::string_view name, double value) {
  begin(name).text_ += json_number(value);
  return *this;
}

JsonLine& JsonLine::add(std::string_view name, std::int64_t value) {
  begin(name).text_ += fmt::format("{}", value);
  return *this;
}

JsonLine& JsonLine::add(std::string_view name, bool value) {
  begin(name).text_ += value ? "true" : "false";
  return *this;
}

JsonLine& JsonLine::add(std::string_view name, std::string_view text) {
  // A path may hold bytes that are not UTF-8; they must not keep the line from being JSON.
  begin(name).text_ +=
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return *this;
}

JsonLines::JsonLines(io::File file, std::int64_t end_bytes, std::int64_t torn_bytes)
    : file_(std::move(file)), end_bytes_(end_bytes), torn_bytes_(torn_bytes) {}

Result<JsonLines> JsonLines::open(io::FileSystem& files, const std::string& path) {
  if (!files.exists(path)) {
    UK_TRY(created, files.create(path));
    return JsonLines(std::move(created), 0, 0);
  }
  UK_TRY(file, files.open_for_update(path));
  UK_TRY(size_bytes, file.size_bytes());
  std::array<std::byte, 4096> piece;
  std::int64_t end_bytes = size_bytes;
  while (end_bytes > 0) {
    const std::int64_t piece_bytes = std::min(std::ssize(piece), end_bytes);
    const auto read = std::span(piece).first(static_cast<std::size_t>(piece_bytes));
    UK_TRY_VOID(file.read(read, end_bytes - piece_bytes));
    const auto newline = std::find(read.rbegin(), read.rend(), std::byte{'\n'});
    end_bytes -= newline - read.rbegin();
    if (newline != read.rend()) break;
  }
  return JsonLines(std::move(file), end_bytes, size_bytes - end_bytes);
}

Result<void> JsonLines::append(const JsonLine& line) {
  std::string text = line.text();
  // Spaces before the newline cover what is left of a torn line.
  if (std::ssize(text) + 1 < torn_bytes_)
    text.resize(static_cast<std::size_t>(torn_bytes_ - 1), ' ');
  text += '\n';
  const auto written = file_.write(std::as_bytes(std::span(text)), end_bytes_);
  if (!written) {
    // Some of it may have been written.
    torn_bytes_ = std::max(torn_bytes_, std::ssize(text));
    return written;
  }
  end_bytes_ += std::ssize(text);
  torn_bytes_ = 0;
  return {};
}

}  // namespace underkeel::train
