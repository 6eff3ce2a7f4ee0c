// Lines of progress and where they go.

#include "train/progress.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "train/run_log.h"

namespace underkeel::train {
namespace {

constexpr int default_width = 80;
constexpr int bar_columns_least = 8;
constexpr int bar_columns_most = 30;
constexpr double redraw_s = 0.1;

std::string loss_text(const ProgressFigures& f) {
  return fmt::format("loss {:.4g}", f.loss);
}
std::string norm_text(const ProgressFigures& f) {
  return fmt::format("norm {:.3g}", f.gradient_norm);
}
std::string rate_text(const ProgressFigures& f) {
  return fmt::format("lr {:.3g}", f.learning_rate);
}
std::string speed_text(const ProgressFigures& f) {
  return fmt::format("{} tokens/s", format_count(static_cast<std::int64_t>(f.tokens_per_s + 0.5)));
}
std::string left_text(const ProgressFigures& f) {
  return fmt::format("left {}", format_duration(f.remaining_s));
}
std::string memory_text(const ProgressFigures& f) {
  if (f.memory_bytes <= 0) return "";
  return fmt::format("memory {} of {} planned", format_bytes(f.memory_bytes),
                     format_bytes(f.planned_memory_bytes));
}

std::string bar_text(const ProgressFigures& figures, int columns, bool has_blocks) {
  const double share = figures.total_steps > 0 ? static_cast<double>(figures.step) /
                                                     static_cast<double>(figures.total_steps)
                                               : 0.0;
  const int full = std::clamp(static_cast<int>(share * columns), 0, columns);
  std::string bar;
  for (int i = 0; i < columns; ++i)
    bar += i < full ? (has_blocks ? "\u2588" : "#") : (has_blocks ? "\u2591" : ".");
  return bar;
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

std::string plain_line(const ProgressFigures& figures) {
  std::string line = fmt::format("step {}/{}", figures.step, figures.total_steps);
  for (const std::string& part : {loss_text(figures), norm_text(figures), rate_text(figures),
                                  speed_text(figures), left_text(figures), memory_text(figures)})
    if (!part.empty()) line += "  " + part;
  return line;
}

std::string bar_line(const ProgressFigures& figures, int width, bool has_blocks) {
  const std::string count = fmt::format("{}/{}", figures.step, figures.total_steps);
  struct Part {
    std::string text;
    int importance;  // higher stays longer
    bool is_kept = true;
  };
  std::array<Part, 6> parts{{{loss_text(figures), 6},
                             {norm_text(figures), 3},
                             {rate_text(figures), 2},
                             {speed_text(figures), 4},
                             {left_text(figures), 5},
                             {memory_text(figures), 1}}};
  const auto needed = [&](int bar_columns) {
    std::size_t columns = count.size();
    if (bar_columns > 0) columns += 2 + static_cast<std::size_t>(bar_columns);
    for (const Part& part : parts)
      if (part.is_kept && !part.text.empty()) columns += 2 + part.text.size();
    return static_cast<int>(columns);
  };
  const auto drop_below = [&](int importance, int bar_columns) {
    for (int i = 1; i < importance && needed(bar_columns) > width; ++i)
      for (Part& part : parts)
        if (part.importance == i) part.is_kept = false;
  };
  drop_below(5, bar_columns_least);
  int bar_columns = bar_columns_least;
  if (needed(bar_columns) > width) bar_columns = 0;
  drop_below(7, bar_columns);
  if (bar_columns > 0)
    bar_columns = std::min(bar_columns_most, bar_columns_least + width - needed(bar_columns_least));

  std::string line = count;
  if (bar_columns > 0) line += "  " + bar_text(figures, bar_columns, has_blocks);
  for (const Part& part : parts)
    if (part.is_kept && !part.text.empty()) line += "  " + part.text;
  if (bar_columns == 0 && std::ssize(line) > width)
    line.resize(static_cast<std::size_t>(std::max(0, width)));
  return line;
}

bool has_block_characters(std::string_view lc_all, std::string_view lc_ctype,
                          std::string_view lang) {
  std::string locale(!lc_all.empty() ? lc_all : !lc_ctype.empty() ? lc_ctype : lang);
  for (char& letter : locale)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

void StepRate::add(std::int64_t tokens, double step_s) {
  constexpr double past = 0.9;
  tokens_ = past * tokens_ + static_cast<double>(tokens);
  elapsed_s_ = past * elapsed_s_ + step_s;
  weight_ = past * weight_ + 1;
}

double StepRate::tokens_per_s() const {
  return elapsed_s_ > 0 ? tokens_ / elapsed_s_ : 0;
}

double StepRate::remaining_s(std::int64_t steps) const {
  return weight_ > 0 ? elapsed_s_ / weight_ * static_cast<double>(steps) : 0;
}

ProgressOptions progress_on(int descriptor) {
  ProgressOptions options;
  const auto terminal_type = environment("TERM");
  options.is_terminal =
      isatty(descriptor) == 1 && !terminal_type.empty() && terminal_type != "dumb";
  options.has_blocks =
      has_block_characters(environment("LC_ALL"), environment("LC_CTYPE"), environment("LANG"));
  options.width = [descriptor] {
    winsize size{};
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? int{size.ws_col}
                                                                        : default_width;
  };
  options.write = [descriptor](std::string_view text) {
    while (!text.empty()) {
      const auto written = ::write(descriptor, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;  // a closed stderr must not end the run
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  };
  options.now_s = steady_now_s;
  return options;
}

ProgressBar::ProgressBar(ProgressOptions options) : options_(std::move(options)) {}

ProgressBar::~ProgressBar() {
  end();
}

bool ProgressBar::may_draw(bool is_last) {
  const double now_s = options_.now_s();
  if (!is_last && now_s - drawn_at_s_ < redraw_s) return false;
  drawn_at_s_ = now_s;
  return true;
}

void ProgressBar::draw(const std::string& line) {
  options_.write("\r" + line + "\x1b[K");
  drawn_ = line;
}

void ProgressBar::step(const ProgressFigures& figures, bool is_logged) {
  if (!options_.is_shown) return;
  figures_ = figures;
  if (!options_.is_terminal) {
    if (is_logged) options_.write(plain_line(figures) + "\n");
    return;
  }
  // One column stays free: a character in the last one makes some terminals wrap.
  if (may_draw(figures.step == figures.total_steps))
    draw(bar_line(figures, options_.width() - 1, options_.has_blocks));
}

void ProgressBar::phase(std::string_view what, std::int64_t done, std::int64_t total) {
  if (!options_.is_shown || !options_.is_terminal || !may_draw(done == total)) return;
  std::string line = fmt::format("{}/{}  {}", figures_.step, figures_.total_steps, what);
  if (total > 0) line += fmt::format(" {}/{}", done, total);
  line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(0, options_.width() - 1))));
  draw(line);
}

void ProgressBar::note(std::string_view text) {
  if (!options_.is_shown) return;
  if (drawn_.empty()) {
    options_.write(fmt::format("{}\n", text));
    return;
  }
  options_.write(fmt::format("\r\x1b[K{}\n{}", text, drawn_));
}

void ProgressBar::end() {
  if (!drawn_.empty()) options_.write("\n");
  drawn_.clear();
}

}  // namespace underkeel::train
