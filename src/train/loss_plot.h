#pragma once
// The picture of a loss over steps, as SVG and as PNG: the curve as logged in a light colour, a
// smoothed one over it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace underkeel::train {

struct PlotPoint {
  double x = 0;  // step
  double y = 0;
};

struct LossCurve {
  std::string title;
  std::string y_name;
  std::vector<PlotPoint> points;  // by ascending x; those that are not finite are left out
};

/// The exponential moving average that LLaMA-Factory draws: the weight of the past is
/// 1.8 (1 / (1 + exp(-0.05 n)) - 0.5) for n points.
std::vector<PlotPoint> smoothed(std::span<const PlotPoint> points);

/// At most about `limit` points: of each piece of the curve its lowest and its highest.
std::vector<PlotPoint> thinned(std::span<const PlotPoint> points, std::int64_t limit);

/// Round numbers (1, 2 or 5 times a power of ten apart) inside [low, high], at most `limit`.
std::vector<double> axis_ticks(double low, double high, std::int64_t limit);

std::string loss_plot_svg(const LossCurve& curve);
std::string loss_plot_png(const LossCurve& curve);

}  // namespace underkeel::train
