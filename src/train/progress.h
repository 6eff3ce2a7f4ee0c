#pragma once
// How far a run is, on stderr: on a terminal one line that is drawn anew, elsewhere a plain line for
// every log entry.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace underkeel::train {

struct ProgressFigures {
  std::int64_t step = 0;  // completed
  std::int64_t total_steps = 0;
  double loss = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
  double tokens_per_s = 0;
  double remaining_s = 0;
  std::int64_t memory_bytes = 0;  // of the process; 0: not shown
  std::int64_t planned_memory_bytes = 0;
};

/// "step 20/1000  loss 2.345  norm 0.812  lr 4.95e-05  1,234 tokens/s  left 0:12:34
///  memory 1.21 GiB of 1.30 GiB planned", in one line.
std::string plain_line(const ProgressFigures& figures);

/// The same with a bar, in at most `width` columns: what matters least is left out first (memory,
/// learning rate, norm, tokens/s, then the bar, time left and loss). `has_blocks`: the bar may use
/// U+2588 and U+2591, else # and dots.
std::string bar_line(const ProgressFigures& figures, int width, bool has_blocks);

/// Whether a locale can show block characters: the first of the three that is not empty decides.
bool has_block_characters(std::string_view lc_all, std::string_view lc_ctype,
                          std::string_view lang);

/// Steps that took different times, as one rate: the last ten steps or so count.
class StepRate {
 public:
  void add(std::int64_t tokens, double step_s);
  /// 0 before the first step.
  double tokens_per_s() const;
  double remaining_s(std::int64_t steps) const;

 private:
  double tokens_ = 0;
  double elapsed_s_ = 0;
  double weight_ = 0;
};

struct ProgressOptions {
  bool is_shown = true;     // rank 0
  bool is_terminal = true;  // else plain lines
  bool has_blocks = false;
  std::function<int()> width;                   // columns, asked at each drawing
  std::function<void(std::string_view)> write;  // all of it, at once
  std::function<double()> now_s;
};

/// For a file descriptor: a terminal unless TERM is dumb or empty; blocks by LC_ALL, LC_CTYPE, LANG.
ProgressOptions progress_on(int descriptor);

/// Not for several threads at once.
class ProgressBar {
 public:
  explicit ProgressBar(ProgressOptions options);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Draws the line, ten times a second at most; prints a plain line when `is_logged`.
  void step(const ProgressFigures& figures, bool is_logged);
  /// What is being done between steps ("evaluate", 3 of 20 batches; "save"): shown in the line on a
  /// terminal, nowhere else.
  void phase(std::string_view what, std::int64_t done, std::int64_t total);
  /// A line of its own, above the one that is drawn.
  void note(std::string_view text);
  /// Leaves the last line standing. Also called when it goes.
  void end();

 private:
  void draw(const std::string& line);
  bool may_draw(bool is_last);

  ProgressOptions options_;
  std::string drawn_;  // the line on the terminal; empty: none
  ProgressFigures figures_;
  double drawn_at_s_ = -1e9;
};

}  // namespace underkeel::train
