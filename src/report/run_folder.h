#pragma once
// Reads the folder of a run, finished or in progress, ours or of LLaMA-Factory and the Trainer. Opens only
// files of known names that lie in the folder itself; follows no link; trusts no length.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/file.h"
#include "report/line_reader.h"
#include "report/run_record.h"

namespace underkeel::report {

struct LogLine;

class RunFolder {
 public:
  /// Errors: not_found, bad_file when `folder` is no folder or holds none of the files of a run.
  static Result<RunFolder> open(io::FileSystem& files, const std::string& folder);

  /// Reads what has come since the last call. What is broken or missing becomes a remark of the record.
  void refresh();
  const RunRecord& record() const { return record_; }

 private:
  RunFolder(io::FileSystem& files, std::string folder);
  void read_lines();
  void read_trainer_state();
  void read_memory();
  void read_values();
  void take_line(std::string_view text);
  /// Whether it is an event of this program, or one that says nothing here.
  bool take_event(const LogLine& line);
  void take_log_entry(const LogLine& line);
  void add_step(const StepPoint& point);
  void add_evaluation(const EvaluationPoint& point);
  void drop_after(std::int64_t step);
  void begin_at(std::int64_t step, std::optional<std::int64_t> total_steps);
  void forget_curves();
  void thin_out();
  /// The text of a small file; nothing when it is not there or cannot be read, which is remarked.
  std::optional<std::string> small_file(const std::string& name, std::int64_t limit_bytes,
                                        const std::string& when_missing);

  io::FileSystem* files_;
  RunRecord record_;
  LineReader lines_;  // of record_.curve_source
  std::int64_t bad_lines_ = 0;
  std::string first_bad_line_;
};

}  // namespace underkeel::report
