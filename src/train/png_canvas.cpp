// Drawing into palette indices, and the PNG container around them.

#include "train/png_canvas.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/check.h"

namespace underkeel::train {
namespace {

constexpr std::int64_t glyph_columns = 5;
constexpr std::int64_t glyph_rows = 7;
constexpr std::int64_t dots = 2;  // pixels a side of one glyph dot

struct Glyph {
  char character;
  std::array<std::uint8_t, glyph_rows> rows;  // five bits each, the highest on the left
};
// Drawn for this file; letters that hang below the line (g, p) end on it.
constexpr Glyph glyphs[] = {
    {'0', {14, 17, 19, 21, 25, 17, 14}}, {'1', {4, 12, 4, 4, 4, 4, 14}},
    {'2', {14, 17, 1, 6, 8, 16, 31}},    {'3', {14, 17, 1, 6, 1, 17, 14}},
    {'4', {2, 6, 10, 18, 31, 2, 2}},     {'5', {31, 16, 30, 1, 1, 17, 14}},
    {'6', {6, 8, 16, 30, 17, 17, 14}},   {'7', {31, 1, 2, 4, 8, 8, 8}},
    {'8', {14, 17, 17, 14, 17, 17, 14}}, {'9', {14, 17, 17, 15, 1, 2, 12}},
    {'.', {0, 0, 0, 0, 0, 12, 12}},      {'-', {0, 0, 0, 31, 0, 0, 0}},
    {'+', {0, 4, 4, 31, 4, 4, 0}},       {'_', {0, 0, 0, 0, 0, 0, 31}},
    {'a', {0, 0, 14, 1, 15, 17, 15}},    {'d', {1, 1, 15, 17, 17, 17, 15}},
    {'e', {0, 0, 14, 17, 31, 16, 14}},   {'g', {0, 15, 17, 17, 15, 1, 14}},
    {'h', {16, 16, 30, 17, 17, 17, 17}}, {'i', {4, 0, 12, 4, 4, 4, 14}},
    {'l', {12, 4, 4, 4, 4, 4, 14}},      {'m', {0, 0, 26, 21, 21, 21, 21}},
    {'n', {0, 0, 30, 17, 17, 17, 17}},   {'o', {0, 0, 14, 17, 17, 17, 14}},
    {'p', {0, 30, 17, 17, 30, 16, 16}},  {'r', {0, 0, 22, 25, 16, 16, 16}},
    {'s', {0, 0, 15, 16, 14, 1, 30}},    {'t', {8, 8, 28, 8, 8, 9, 6}},
    {'u', {0, 0, 17, 17, 17, 19, 13}},   {'v', {0, 0, 17, 17, 17, 10, 4}},
};

void append_big_endian(std::uint32_t value, std::string& out) {
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>(value >> shift & 0xff));
}

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<std::uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1u) != 0 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
  }
  return ~crc;
}

std::uint32_t adler32(std::string_view bytes) {
  constexpr std::uint32_t modulus = 65521;
  std::uint32_t sum = 1;
  std::uint32_t sum_of_sums = 0;
  for (const char byte : bytes) {
    sum = (sum + static_cast<std::uint8_t>(byte)) % modulus;
    sum_of_sums = (sum_of_sums + sum) % modulus;
  }
  return sum_of_sums << 16 | sum;
}

void append_chunk(std::string_view type, std::string_view content, std::string& out) {
  append_big_endian(static_cast<std::uint32_t>(content.size()), out);
  const std::string checked = std::string(type) + std::string(content);
  out += checked;
  append_big_endian(crc32(checked), out);
}

/// A zlib stream of stored blocks (RFC 1950, RFC 1951 section 3.2.4).
std::string stored(std::string_view bytes) {
  constexpr std::size_t block_limit_bytes = 65535;
  std::string out("\x78\x01");
  for (std::size_t begin = 0; begin < bytes.size(); begin += block_limit_bytes) {
    const auto block = bytes.substr(begin, block_limit_bytes);
    const auto size = static_cast<std::uint32_t>(block.size());
    out.push_back(begin + block.size() == bytes.size() ? '\1' : '\0');
    for (const std::uint32_t field : {size, ~size}) {
      out.push_back(static_cast<char>(field & 0xff));
      out.push_back(static_cast<char>(field >> 8 & 0xff));
    }
    out += block;
  }
  append_big_endian(adler32(bytes), out);
  return out;
}

}  // namespace

PngCanvas::PngCanvas(std::int64_t width, std::int64_t height, std::span<const Color> palette)
    : width_(width),
      height_(height),
      palette_(palette.begin(), palette.end()),
      pixels_(static_cast<std::size_t>(width * height), 0) {
  UK_CHECK(width > 0 && height > 0 && palette.size() <= 16, "a picture of no size or many colours");
}

void PngCanvas::set(std::int64_t x, std::int64_t y, int color_index) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  pixels_[static_cast<std::size_t>(y * width_ + x)] = static_cast<std::uint8_t>(color_index);
}

int PngCanvas::color_at(Pixel pixel) const {
  return pixels_.at(static_cast<std::size_t>(pixel.y * width_ + pixel.x));
}

void PngCanvas::line(Pixel from, Pixel to, int color_index, int thickness) {
  const std::int64_t x_distance = to.x - from.x;
  const std::int64_t y_distance = to.y - from.y;
  const std::int64_t steps =
      std::max<std::int64_t>({1, std::abs(x_distance), std::abs(y_distance)});
  for (std::int64_t i = 0; i <= steps; ++i) {
    const std::int64_t x = from.x + x_distance * i / steps;
    const std::int64_t y = from.y + y_distance * i / steps;
    for (int dx = 0; dx < thickness; ++dx)
      for (int dy = 0; dy < thickness; ++dy)
        set(x + dx - thickness / 2, y + dy - thickness / 2, color_index);
  }
}

std::int64_t PngCanvas::text_width(std::string_view text) {
  return std::ssize(text) * (glyph_columns + 1) * dots;
}

void PngCanvas::text(std::string_view text, Pixel at, int color_index) {
  for (const char character : text) {
    const auto* const glyph =
        std::find_if(std::begin(glyphs), std::end(glyphs),
                     [&](const Glyph& candidate) { return candidate.character == character; });
    if (glyph != std::end(glyphs))
      for (std::int64_t row = 0; row < glyph_rows * dots; ++row)
        for (std::int64_t column = 0; column < glyph_columns * dots; ++column)
          if ((glyph->rows[static_cast<std::size_t>(row / dots)] >>
                   (glyph_columns - 1 - column / dots) &
               1) != 0)
            set(at.x + column, at.y + row, color_index);
    at.x += (glyph_columns + 1) * dots;
  }
}

std::string PngCanvas::encode() const {
  std::string rows;  // each: filter type 0, then four bits a pixel
  for (std::int64_t y = 0; y < height_; ++y) {
    rows.push_back('\0');
    for (std::int64_t x = 0; x < width_; x += 2) {
      const int left = color_at({x, y});
      const int right = x + 1 < width_ ? color_at({x + 1, y}) : 0;
      rows.push_back(static_cast<char>(left << 4 | right));
    }
  }
  std::string header;
  append_big_endian(static_cast<std::uint32_t>(width_), header);
  append_big_endian(static_cast<std::uint32_t>(height_), header);
  header.append("\x04\x03\0\0\0", 5);  // four bits, palette, deflate, no filter, not interlaced
  std::string palette;
  for (const Color& color : palette_)
    for (const std::uint8_t part : {color.red, color.green, color.blue})
      palette.push_back(static_cast<char>(part));
  std::string out("\x89PNG\r\n\x1a\n");
  append_chunk("IHDR", header, out);
  append_chunk("PLTE", palette, out);
  append_chunk("IDAT", stored(rows), out);
  append_chunk("IEND", "", out);
  return out;
}

}  // namespace underkeel::train
