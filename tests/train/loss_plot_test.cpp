#include "train/loss_plot.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "train/png_canvas.h"

namespace underkeel::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

LossCurve falling(int count) {
  LossCurve curve{.title = "training loss", .y_name = "loss", .points = {}};
  for (int i = 1; i <= count; ++i)
    curve.points.push_back({static_cast<double>(i), 10.0 / std::sqrt(i) + (i % 2) * 0.3});
  return curve;
}

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

TEST(LossPlot, SmoothsAsTheDocumentedAverageDoes) {
  const std::vector<PlotPoint> points{{1, 4}, {2, 2}, {3, 0}};
  const double past = 1.8 * (1 / (1 + std::exp(-0.15)) - 0.5);

  const auto smooth = smoothed(points);

  ASSERT_EQ(smooth.size(), 3u);
  EXPECT_DOUBLE_EQ(smooth[0].y, 4);
  EXPECT_DOUBLE_EQ(smooth[1].y, 4 * past + 2 * (1 - past));
  EXPECT_DOUBLE_EQ(smooth[2].y, smooth[1].y * past);
}

TEST(LossPlot, ThinningKeepsTheHighestAndLowestPointOfEachPiece) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 10000; ++i) points.push_back({static_cast<double>(i), 1});
  points[777].y = 9;
  points[5000].y = -3;

  const auto kept = thinned(points, 100);

  EXPECT_LE(kept.size(), 100u);
  const auto has = [&](double x) {
    return std::any_of(kept.begin(), kept.end(), [&](const auto& point) { return point.x == x; });
  };
  EXPECT_TRUE(has(777) && has(5000));
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(),
                             [](const auto& a, const auto& b) { return a.x < b.x; }));
}

TEST(LossPlot, TicksAreRoundNumbersInsideTheRange) {
  EXPECT_THAT(axis_ticks(1, 100, 5), ElementsAre(20, 40, 60, 80, 100));
  EXPECT_THAT(axis_ticks(-0.5, 1.2, 4), ElementsAre(-0.5, 0, 0.5, 1));
  EXPECT_TRUE(axis_ticks(3, 3, 5).empty());
}

TEST(LossPlot, SvgNamesItsAxesAndDrawsBothCurves) {
  const std::string svg = loss_plot_svg(falling(50));

  EXPECT_THAT(svg, HasSubstr(">training loss</text>"));
  EXPECT_THAT(svg, HasSubstr(">loss</text>"));
  EXPECT_THAT(svg, HasSubstr(">step</text>"));
  std::size_t curve_count = 0;
  for (auto at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1))
    ++curve_count;
  EXPECT_EQ(curve_count, 2u);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(LossPlot, PointsThatAreNotFiniteAreLeftOut) {
  LossCurve curve = falling(5);
  curve.points[2].y = std::numeric_limits<double>::quiet_NaN();
  curve.points[3].y = std::numeric_limits<double>::infinity();

  const std::string svg = loss_plot_svg(curve);

  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(LossPlot, NoPointsOrOneStillGiveAPicture) {
  for (const int count : {0, 1}) {
    EXPECT_THAT(loss_plot_svg(falling(count)), Not(HasSubstr("nan"))) << count;
    EXPECT_TRUE(loss_plot_png(falling(count)).starts_with("\x89PNG")) << count;
  }
}

TEST(LossPlot, PngIsAPaletteImageOfTheSameSize) {
  const std::string png = loss_plot_png(falling(50));

  ASSERT_TRUE(png.starts_with("\x89PNG\r\n\x1a\n"));
  EXPECT_EQ(png.substr(12, 4), "IHDR");
  EXPECT_EQ(big_endian(png.substr(16)), 900u);
  EXPECT_EQ(big_endian(png.substr(20)), 540u);
  EXPECT_EQ(png.substr(24, 5), std::string("\x04\x03\0\0\0", 5));
}

TEST(PngCanvas, EveryByteOfATinyPictureIsWhatTheFormatSays) {
  PngCanvas canvas(2, 1, std::vector<Color>{{255, 255, 255}, {1, 2, 3}});
  canvas.line({1, 0}, {1, 0}, 1, 1);

  // Checksums and the stored stream: Python's zlib over the same bytes.
  const std::string expected =
      std::string("\x89PNG\r\n\x1a\n", 8) +
      std::string("\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x01\x04\x03\0\0\0", 21) + "\x06\x0c\x62\xb9" +
      std::string("\0\0\0\x06PLTE\xff\xff\xff\x01\x02\x03", 14) + "\xff\x3f\x8a\x71" +
      std::string("\0\0\0\x0dIDAT\x78\x01\x01\x02\0\xfd\xff\0\x01\0\x03\0\x02", 21) +
      "\xdb\xae\x1f\xef" + std::string("\0\0\0\0IEND", 8) + "\xae\x42\x60\x82";
  EXPECT_EQ(canvas.encode(), expected);
}

TEST(PngCanvas, WhatLiesOutsideIsNotDrawn) {
  PngCanvas canvas(4, 4, std::vector<Color>{{255, 255, 255}, {0, 0, 0}});

  canvas.line({-5, 1}, {9, 1}, 1, 1);
  canvas.text("8", {-3, -13}, 1);

  EXPECT_EQ(canvas.color_at({0, 1}), 1);
  EXPECT_EQ(canvas.color_at({3, 1}), 1);
  EXPECT_EQ(canvas.color_at({3, 3}), 0);
}

}  // namespace
}  // namespace underkeel::train
