#pragma once
// A small picture of few colours, with lines and short texts, as a PNG file. For one plot at the end
// of a run: written without compression.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace underkeel::train {

struct Color {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};

class PngCanvas {
 public:
  /// All pixels have palette[0]. Sizes in pixels; at most 16 colours.
  PngCanvas(std::int64_t width, std::int64_t height, std::span<const Color> palette);

  struct Pixel {
    std::int64_t x = 0;
    std::int64_t y = 0;  // from the top
  };
  /// What lies outside the picture is not drawn.
  void line(Pixel from, Pixel to, int color_index, int thickness);
  /// Digits, small letters and . - + _ and space; others are blank. `at` is the upper left corner.
  void text(std::string_view text, Pixel at, int color_index);
  static std::int64_t text_width(std::string_view text);
  static constexpr std::int64_t text_height = 14;

  int color_at(Pixel pixel) const;
  /// The file's bytes.
  std::string encode() const;

 private:
  void set(std::int64_t x, std::int64_t y, int color_index);
  std::int64_t width_;
  std::int64_t height_;
  std::vector<Color> palette_;
  std::vector<std::uint8_t> pixels_;  // (height, width)
};

}  // namespace underkeel::train
