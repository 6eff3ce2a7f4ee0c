#pragma once
// What a run has logged so far, as trainer_state.json holds it: written into checkpoints, read back
// on resume. The text is that of transformers' TrainerState, so its tools read it; numbers that it
// has no place for sit under stateful_callbacks, where it keeps what others add.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/text_file.h"

namespace underkeel::train {

/// One line of log_history. Plain numbers, so that a reserved history never allocates.
struct LogEntry {
  enum class Kind { training, evaluation, summary };
  /// Names of `values` for a kind, sorted; the rest of the array is unused.
  static std::span<const std::string_view> names(Kind kind);

  Kind kind = Kind::training;
  std::int64_t step = 0;
  double epoch = 0;
  std::array<double, 5> values{};

  /// The value of one name. The name must be one of the kind's.
  double value(std::string_view name) const;
  bool operator==(const LogEntry&) const = default;
};

/// The best evaluation so far, and how long none has been better.
struct BestEvaluation {
  std::optional<double> value;  // eval_loss
  std::int64_t step = 0;
  std::string checkpoint;              // its folder, once it is known to be saved
  std::int64_t evaluations_since = 0;  // early_stopping_steps counts them

  bool operator==(const BestEvaluation&) const = default;
};

struct TrainerState {
  std::int64_t step = 0;  // completed optimizer steps
  std::int64_t total_steps = 0;
  double epoch = 0;
  double epochs_planned = 0;
  std::int64_t logging_steps = 0;
  std::int64_t save_steps = 0;
  std::int64_t evaluation_steps = 0;
  std::int64_t sequences_per_micro_batch = 0;
  std::int64_t tokens_seen = 0;
  double flops = 0;

  // Since the last log line, and since step 1 over all processes of the run.
  double logging_loss_sum = 0;
  std::int64_t logging_loss_count = 0;
  double loss_sum = 0;
  double elapsed_s = 0;

  BestEvaluation best;
  std::vector<LogEntry> history;

  /// The text of trainer_state.json: sorted keys, two spaces, a newline at the end. Numbers read
  /// back to the same bits; one that is not finite is written as null. In pieces of bounded size,
  /// however long the history is.
  Result<void> write_json(const TextSink& sink) const;
  std::string to_json() const;
  /// Everything but the history.
  TrainerState without_history() const;
  /// Errors: bad_file, naming `where` and the key. Entries that another program logged under
  /// other names are left out. Takes no memory but the state's own, however long the history is.
  static Result<TrainerState> from_json(std::string_view text, const std::string& where);

  bool operator==(const TrainerState&) const = default;
};

/// A number as JSON: the shortest text that reads back to the same bits, with a point or an
/// exponent; null when it is not finite.
std::string json_number(double value);

}  // namespace underkeel::train
