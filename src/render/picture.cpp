// Draws a timeline: lanes above, memory by kind below, one axis of time.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/op_text.h"
#include "render/render.h"

namespace underkeel::render {

namespace {

constexpr double width = 1100;
constexpr double left = 100;  // names of lanes, sizes
constexpr double lane_height = 26;
constexpr double lane_gap = 6;
constexpr double memory_height = 220;
constexpr double axis_height = 28;
constexpr double legend_height = 24;

// Okabe and Ito's eight colours, told apart by all eyes.
constexpr std::string_view kind_colors[plan::buffer_kind_count] = {
    "#0072b2", "#d55e00", "#999999", "#56b4e9", "#009e73", "#f0e442", "#cc79a7", "#000000"};

std::string_view color_of(const plan::Op& op) {
  return std::visit(
      [](const auto& body) -> std::string_view {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, plan::Gather>) return "#009e73";
        if constexpr (std::is_same_v<Body, plan::ReduceScatter> ||
                      std::is_same_v<Body, plan::AllReduce> ||
                      std::is_same_v<Body, plan::GatherValues>)
          return "#d55e00";
        if constexpr (std::is_same_v<Body, plan::Update> ||
                      std::is_same_v<Body, plan::Accumulate> ||
                      std::is_same_v<Body, plan::SumSquares>)
          return "#999999";
        if constexpr (std::is_same_v<Body, plan::Save> || std::is_same_v<Body, plan::Load> ||
                      std::is_same_v<Body, plan::CopyIn> || std::is_same_v<Body, plan::CopyOut>)
          return "#cc79a7";
        return "#0072b2";
      },
      op.body);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string seconds_text(double seconds) {
  if (seconds >= 1 || seconds == 0) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

/// 1, 2 or 5 times a power of ten, about `count` of which make up `length`.
double tick_of(double length, double count) {
  const double raw = length / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double step : {1.0, 2.0, 5.0})
    if (step * power >= raw) return step * power;
  return 10 * power;
}

class Picture {
 public:
  Picture(const plan::Plan& plan, const plan::Timeline& timeline, plan::MemorySpace space)
      : plan_(plan), timeline_(timeline), space_(space), text_(plan.schedule) {
    for (const plan::Span& span : timeline.spans) end_s_ = std::max(end_s_, span.end_s);
    lanes_height_ =
        static_cast<double>(plan.schedule.lanes.size()) * (lane_height + lane_gap) + lane_gap;
  }

  std::string draw() {
    const double height = lanes_height_ + memory_height + axis_height + legend_height;
    write(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, height);
    draw_lanes();
    draw_memory();
    draw_axis();
    draw_legend(height - 8);
    write("</svg>\n");
    return std::move(svg_);
  }

 private:
  template <class... Args>
  void write(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
  }
  double x_of(double time_s) const {
    return left + (end_s_ == 0 ? 0 : time_s / end_s_ * (width - left - 10));
  }

  struct Bar {
    double begin_s = 0;
    double end_s = 0;
    std::string_view color;
    const plan::Span* first = nullptr;
    std::size_t count = 0;
  };

  void draw_bar(const Bar& bar, double y) {
    const plan::Op& op = plan_.schedule.find(bar.first->segment)->ops[index(bar.first->op)];
    const std::string more = bar.count > 1 ? fmt::format(" and {} more", bar.count - 1) : "";
    write(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>{}: {}{}, "
        "{}</title></rect>\n",
        x_of(bar.begin_s), y, std::max(x_of(bar.end_s) - x_of(bar.begin_s), 0.1), lane_height,
        bar.color, name_of(bar.first->segment), escaped(text_.name_of(op)), more,
        seconds_text(bar.end_s - bar.begin_s));
  }

  void draw_lanes() {
    constexpr double narrow = 0.5;  // pixels
    for (std::size_t lane = 0; lane < plan_.schedule.lanes.size(); ++lane) {
      const double y = lane_gap + static_cast<double>(lane) * (lane_height + lane_gap);
      write("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", left - 8,
            y + lane_height / 2 + 4, escaped(plan_.schedule.lanes[lane].name));
      Bar bar;
      for (const plan::Span& span : timeline_.spans) {
        if (index(span.lane) != lane || span.end_s <= span.begin_s) continue;
        const std::string_view color =
            color_of(plan_.schedule.find(span.segment)->ops[index(span.op)]);
        const bool joins = bar.count > 0 && bar.color == color &&
                           x_of(span.begin_s) - x_of(bar.end_s) < narrow &&
                           (x_of(span.end_s) - x_of(span.begin_s) < narrow ||
                            x_of(bar.end_s) - x_of(bar.begin_s) < narrow);
        if (joins) {
          bar.end_s = span.end_s;
          ++bar.count;
          continue;
        }
        if (bar.count > 0) draw_bar(bar, y);
        bar = {span.begin_s, span.end_s, color, &span, 1};
      }
      if (bar.count > 0) draw_bar(bar, y);
    }
  }

  /// Of the moments that fall on one pixel the highest is drawn.
  std::vector<plan::Moment> visible_moments() const {
    std::vector<plan::Moment> visible;
    for (const plan::Moment& moment : plan::bytes_over_time(plan_.schedule, timeline_, space_)) {
      const bool same_pixel = !visible.empty() && std::floor(x_of(moment.time_s)) ==
                                                      std::floor(x_of(visible.back().time_s));
      if (!same_pixel) {
        visible.push_back(moment);
      } else if (moment.size_bytes > visible.back().size_bytes) {
        const double time_s = visible.back().time_s;
        visible.back() = moment;
        visible.back().time_s = time_s;
      }
    }
    return visible;
  }

  void draw_memory() {
    const std::vector<plan::Moment> moments = visible_moments();
    const std::int64_t arena_bytes = plan_.layout.size_bytes[index(space_)];
    std::int64_t top_bytes = std::max<std::int64_t>(arena_bytes, 1);
    for (const plan::Moment& moment : moments) top_bytes = std::max(top_bytes, moment.size_bytes);
    const double bottom = lanes_height_ + memory_height;
    const auto y_of = [&](std::int64_t size_bytes) {
      return bottom - static_cast<double>(size_bytes) / static_cast<double>(top_bytes) *
                          (memory_height - 20);
    };
    // Each kind's area lies on those before it.
    std::vector<std::int64_t> below(moments.size());
    for (std::size_t kind = 0; kind < plan::buffer_kind_count; ++kind) {
      std::string upper;
      std::string lower;
      bool any = false;
      for (std::size_t i = 0; i < moments.size(); ++i) {
        const std::int64_t size = moments[i].by_kind[kind];
        any = any || size > 0;
        const double begin = x_of(moments[i].time_s);
        const double end = x_of(i + 1 < moments.size() ? moments[i + 1].time_s : end_s_);
        upper += fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", begin, y_of(below[i] + size), end,
                             y_of(below[i] + size));
        lower = fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", end, y_of(below[i]), begin,
                            y_of(below[i])) +
                lower;
        below[i] += size;
      }
      if (any)
        write("<polygon points=\"{}{}\" fill=\"{}\"><title>{}</title></polygon>\n", upper, lower,
              kind_colors[kind], name_of(static_cast<plan::BufferKind>(kind)));
    }
    write(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"black\" "
        "stroke-dasharray=\"4 3\"/>\n<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
        left, width - 10, y_of(arena_bytes), y_of(arena_bytes), left - 8, y_of(arena_bytes) + 4,
        format_bytes(arena_bytes), left - 8, bottom, name_of(space_));
  }

  void draw_axis() {
    const double y = lanes_height_ + memory_height;
    write("<line x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\" stroke=\"black\"/>\n", left, width - 10, y,
          y);
    if (end_s_ == 0) return;
    const double tick = tick_of(end_s_, 10);
    for (int i = 0; i * tick <= end_s_; ++i)
      write("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x_of(i * tick),
            y + 16, seconds_text(i * tick));
  }

  void draw_legend(double y) {
    double x = left;
    for (std::size_t kind = 0; kind < plan::buffer_kind_count; ++kind) {
      const std::string_view name = name_of(static_cast<plan::BufferKind>(kind));
      write(
          "<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{}\"/>"
          "<text x=\"{}\" y=\"{}\">{}</text>\n",
          x, y - 9, kind_colors[kind], x + 14, y, name);
      x += 40 + 7 * static_cast<double>(name.size());
    }
  }

  const plan::Plan& plan_;
  const plan::Timeline& timeline_;
  const plan::MemorySpace space_;
  const plan::OpText text_;
  double end_s_ = 0;
  double lanes_height_ = 0;
  std::string svg_;
};

}  // namespace

std::string picture_svg(const plan::Plan& plan, const plan::Timeline& timeline,
                        plan::MemorySpace space) {
  return Picture(plan, timeline, space).draw();
}

}  // namespace underkeel::render
