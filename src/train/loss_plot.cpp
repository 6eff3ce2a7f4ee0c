// One layout of the plot, drawn twice: as SVG text and into a PNG's pixels.

#include "train/loss_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "train/png_canvas.h"

namespace underkeel::train {
namespace {

constexpr double width = 900;
constexpr double height = 540;
constexpr double left = 110;
constexpr double right = 870;
constexpr double top = 50;
constexpr double bottom = 470;
constexpr std::int64_t point_limit = 2000;

struct Range {
  double low = 0;
  double high = 1;
};

/// Everything of the plot in pixels.
struct Layout {
  struct Tick {
    double at = 0;
    std::string label;
  };
  std::vector<Tick> x_ticks;
  std::vector<Tick> y_ticks;
  std::vector<PlotPoint> logged;
  std::vector<PlotPoint> smooth;
};

Range range_of(std::span<const PlotPoint> points, double PlotPoint::*part) {
  if (points.empty()) return {};
  Range range{points[0].*part, points[0].*part};
  for (const PlotPoint& point : points) {
    range.low = std::min(range.low, point.*part);
    range.high = std::max(range.high, point.*part);
  }
  // A flat curve lies in the middle.
  const double margin = range.high > range.low ? 0 : std::max(1e-3, std::abs(range.low) * 0.05);
  return {range.low - margin, range.high + margin};
}

Layout lay_out(const LossCurve& curve) {
  std::vector<PlotPoint> finite;
  std::copy_if(curve.points.begin(), curve.points.end(), std::back_inserter(finite),
               [](const PlotPoint& p) { return std::isfinite(p.x) && std::isfinite(p.y); });
  const Range x = range_of(finite, &PlotPoint::x);
  const Range y = range_of(finite, &PlotPoint::y);
  const auto x_pixel = [&](double v) {
    return left + (v - x.low) / (x.high - x.low) * (right - left);
  };
  const auto y_pixel = [&](double v) {
    return bottom - (v - y.low) / (y.high - y.low) * (bottom - top);
  };
  Layout layout;
  for (const double tick : axis_ticks(x.low, x.high, 8))
    if (tick == std::trunc(tick))  // there is no half step
      layout.x_ticks.push_back({x_pixel(tick), fmt::format("{:.0f}", tick)});
  for (const double tick : axis_ticks(y.low, y.high, 8))
    layout.y_ticks.push_back({y_pixel(tick), fmt::format("{:.6g}", tick)});
  const auto to_pixels = [&](std::vector<PlotPoint> points) {
    for (PlotPoint& point : points) point = {x_pixel(point.x), y_pixel(point.y)};
    return points;
  };
  layout.logged = to_pixels(thinned(finite, point_limit));
  layout.smooth = to_pixels(thinned(smoothed(finite), point_limit));
  return layout;
}

std::string polyline(std::span<const PlotPoint> points, std::string_view style) {
  std::string text = "<polyline fill=\"none\" ";
  text += style;
  text += " points=\"";
  for (const PlotPoint& point : points)
    fmt::format_to(std::back_inserter(text), "{:.1f},{:.1f} ", point.x, point.y);
  return text + "\"/>\n";
}

PngCanvas::Pixel pixel(double x, double y) {
  return {std::llround(x), std::llround(y)};
}

}  // namespace

std::vector<PlotPoint> smoothed(std::span<const PlotPoint> points) {
  if (points.empty()) return {};
  const auto count = static_cast<double>(points.size());
  const double past = 1.8 * (1 / (1 + std::exp(-0.05 * count)) - 0.5);
  std::vector<PlotPoint> smooth;
  smooth.reserve(points.size());
  double last = points[0].y;
  for (const PlotPoint& point : points) {
    last = last * past + point.y * (1 - past);
    smooth.push_back({point.x, last});
  }
  return smooth;
}

std::vector<PlotPoint> thinned(std::span<const PlotPoint> points, std::int64_t limit) {
  const std::int64_t count = std::ssize(points);
  if (count <= limit) return {points.begin(), points.end()};
  const std::int64_t piece_count = std::max<std::int64_t>(1, limit / 2);
  std::vector<PlotPoint> kept;
  for (std::int64_t piece = 0; piece < piece_count; ++piece) {
    const auto begin = points.begin() + piece * count / piece_count;
    const auto end = points.begin() + (piece + 1) * count / piece_count;
    const auto [low, high] = std::minmax_element(
        begin, end, [](const PlotPoint& a, const PlotPoint& b) { return a.y < b.y; });
    kept.push_back(*std::min(low, high));
    if (low != high) kept.push_back(*std::max(low, high));
  }
  return kept;
}

std::vector<double> axis_ticks(double low, double high, std::int64_t limit) {
  const double wanted = (high - low) / static_cast<double>(limit);
  if (!(wanted > 0) || !std::isfinite(wanted)) return {};
  const double power = std::pow(10.0, std::floor(std::log10(wanted)));
  double distance = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= wanted) distance = factor * power;
  std::vector<double> ticks;
  for (double index = std::ceil(low / distance); index * distance <= high; index += 1)
    ticks.push_back(index * distance);
  return ticks;
}

std::string loss_plot_svg(const LossCurve& curve) {
  const Layout layout = lay_out(curve);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"14\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"30\" text-anchor=\"middle\" font-size=\"18\">{3}</text>\n",
      width, height, (left + right) / 2, curve.title);
  auto out = std::back_inserter(text);
  for (const auto& tick : layout.y_ticks)
    fmt::format_to(out,
                   "<path d=\"M{} {:.1f}H{}\" stroke=\"#dddddd\"/>"
                   "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                   left, tick.at, right, left - 8, tick.at + 5, tick.label);
  for (const auto& tick : layout.x_ticks)
    fmt::format_to(out,
                   "<path d=\"M{:.1f} {}v6\" stroke=\"black\"/>"
                   "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                   tick.at, bottom, tick.at, bottom + 22, tick.label);
  fmt::format_to(out,
                 "<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"black\"/>\n"
                 "<text x=\"{4}\" y=\"{5}\" text-anchor=\"middle\">step</text>\n"
                 "<text transform=\"translate(24 {6}) rotate(-90)\" "
                 "text-anchor=\"middle\">{7}</text>\n",
                 left, top, bottom, right, (left + right) / 2, bottom + 48, (top + bottom) / 2,
                 curve.y_name);
  text += polyline(layout.logged, "stroke=\"#9ec5e8\" stroke-width=\"1.5\"");
  text += polyline(layout.smooth, "stroke=\"#1f5fa8\" stroke-width=\"2.5\"");
  fmt::format_to(out,
                 "<text x=\"{0}\" y=\"70\" text-anchor=\"end\" fill=\"#6fa3d0\">original</text>\n"
                 "<text x=\"{0}\" y=\"90\" text-anchor=\"end\" fill=\"#1f5fa8\">smoothed</text>\n"
                 "</svg>\n",
                 right - 8);
  return text;
}

std::string loss_plot_png(const LossCurve& curve) {
  enum { white, black, grey, light, strong };
  constexpr std::array<Color, 5> palette{
      {{255, 255, 255}, {0, 0, 0}, {221, 221, 221}, {158, 197, 232}, {31, 95, 168}}};
  const Layout layout = lay_out(curve);
  PngCanvas canvas(std::int64_t{900}, std::int64_t{540}, palette);
  const auto half = [](std::string_view text) {
    return static_cast<double>(PngCanvas::text_width(text)) / 2;
  };
  const double middle = (left + right) / 2;
  canvas.text(curve.title, pixel(middle - half(curve.title), 18), black);
  canvas.text(curve.y_name, pixel(8, 18), black);
  canvas.text("step", pixel(middle - half("step"), bottom + 40), black);
  for (const auto& tick : layout.y_ticks) {
    canvas.line(pixel(left, tick.at), pixel(right, tick.at), grey, 1);
    canvas.text(tick.label, pixel(left - 8 - 2 * half(tick.label), tick.at - 7), black);
  }
  for (const auto& tick : layout.x_ticks) {
    canvas.line(pixel(tick.at, bottom), pixel(tick.at, bottom + 6), black, 1);
    canvas.text(tick.label, pixel(tick.at - half(tick.label), bottom + 12), black);
  }
  canvas.line(pixel(left, top), pixel(left, bottom), black, 1);
  canvas.line(pixel(left, bottom), pixel(right, bottom), black, 1);
  const auto draw = [&](std::span<const PlotPoint> points, int color, int thickness) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      const PlotPoint& from = points[i == 0 ? 0 : i - 1];
      canvas.line(pixel(from.x, from.y), pixel(points[i].x, points[i].y), color, thickness);
    }
  };
  draw(layout.logged, light, 2);
  draw(layout.smooth, strong, 3);
  canvas.text("original", pixel(right - 8 - 2 * half("original"), 58), light);
  canvas.text("smoothed", pixel(right - 8 - 2 * half("smoothed"), 80), strong);
  return canvas.encode();
}

}  // namespace underkeel::train
