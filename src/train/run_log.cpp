// The run's log files.

#include "train/run_log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/units.h"
#include "train/loss_plot.h"
#include "train/signals.h"

namespace underkeel::train {
namespace {

using Kind = LogEntry::Kind;

constexpr std::int64_t log_limit_bytes = 4 * gibibyte;

double system_now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// As Python's round(value, digits) for the figures of these files.
double rounded(double value, int digits) {
  const double scale = std::pow(10.0, digits);
  return std::isfinite(value) ? std::round(value * scale) / scale : value;
}

double per_second(double count, double elapsed_s) {
  return elapsed_s > 0 ? rounded(count / elapsed_s, 3) : 0;
}

/// What a line of trainer_log.jsonl is about.
struct LoggedLine {
  std::int64_t step = 0;
  Kind kind = Kind::training;
};

/// Nothing when it is not such a line.
std::optional<LoggedLine> read_log_line(std::string_view line) {
  const auto parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return std::nullopt;
  const auto step = parsed.find("current_steps");
  if (step == parsed.end() || !step->is_number_integer()) return std::nullopt;
  return LoggedLine{.step = step->get<std::int64_t>(),
                    .kind = parsed.contains("loss")        ? Kind::training
                            : parsed.contains("eval_loss") ? Kind::evaluation
                                                           : Kind::summary};
}

}  // namespace

std::string format_duration(double elapsed_s) {
  const auto seconds = static_cast<std::int64_t>(std::max(0.0, elapsed_s));
  const std::int64_t days = seconds / 86400;
  const std::string days_text =
      days == 0 ? "" : fmt::format("{} day{}, ", days, days == 1 ? "" : "s");
  return fmt::format("{}{}:{:02}:{:02}", days_text, seconds / 3600 % 24, seconds / 60 % 60,
                     seconds % 60);
}

RunLog::RunLog(io::FileSystem& files, std::string output, RunLogOptions options)
    : files_(&files), output_(std::move(output)), options_(std::move(options)) {
  if (!options_.now_s) options_.now_s = system_now_s;
  state_ = options_.fresh;
  begun_s_ = options_.now_s();
}

Result<RunLog> RunLog::open(io::FileSystem& files, std::string output, RunLogOptions options) {
  RunLog log(files, std::move(output), std::move(options));
  if (!log.options_.is_writer) return log;
  UK_TRY_VOID(files.make_folders(log.output_));
  const std::string events_path = log.path("events.jsonl");
  if (log.options_.overwrite_output && files.exists(events_path))
    UK_TRY_VOID(files.remove_file(events_path));
  UK_TRY(events, JsonLines::open(files, events_path));
  log.events_ = std::move(events);
  UK_TRY_VOID(log.events_->append(log.event("open", 0)));
  return log;
}

JsonLine RunLog::event(std::string_view what, std::int64_t step) const {
  JsonLine line;
  line.add("event", what).add("time", rounded(options_.now_s(), 3)).add("step", step);
  return line;
}

double RunLog::elapsed_s() const {
  return former_elapsed_s_ + options_.now_s() - begun_s_;
}

Result<void> RunLog::drop_lines_after(std::int64_t step) {
  const std::string log_path = path("trainer_log.jsonl");
  if (!files_->exists(log_path)) return {};
  UK_TRY(text, files_->read_text(log_path, log_limit_bytes));
  std::string kept;
  // The end of the run that is gone on with: its summary, and the evaluation behind that, are written again.
  std::optional<std::int64_t> ended_at;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t newline = text.find('\n', begin);
    if (newline == std::string::npos) break;  // torn
    const std::string_view line(text.data() + begin, newline - begin);
    begin = newline + 1;
    const auto logged = read_log_line(line);
    if (!logged || logged->step > step) continue;
    if (logged->kind == Kind::summary) ended_at = logged->step;
    if (ended_at != logged->step) kept.append(line).push_back('\n');
  }
  if (kept.size() == text.size()) return {};
  return files_->write_text_durably(log_path, kept);
}

Result<void> RunLog::begin(const std::optional<ResumePoint>& resume) {
  if (!options_.is_writer) return {};
  begun_s_ = options_.now_s();
  if (resume) {
    const TrainerState& former = resume->state;
    state_.step = former.step;
    state_.epoch = former.epoch;
    state_.tokens_seen = former.tokens_seen;
    state_.flops = former.flops;
    state_.logging_loss_sum = former.logging_loss_sum;
    state_.logging_loss_count = former.logging_loss_count;
    state_.loss_sum = former.loss_sum;
    state_.elapsed_s = former.elapsed_s;
    state_.history = former.history;
    state_.best = former.best;
    // The summary of a run that is now made longer.
    std::erase_if(state_.history, [&](const LogEntry& entry) {
      return entry.step > state_.step || entry.kind == Kind::summary;
    });
    for (const LogEntry& entry : state_.history)
      if (entry.kind == Kind::evaluation) last_evaluation_ = entry;
  }
  first_step_ = state_.step;
  former_elapsed_s_ = state_.elapsed_s;
  state_.history.reserve(
      std::max(state_.history.size(), static_cast<std::size_t>(options_.expected_entries)));
  UK_TRY_VOID(drop_lines_after(state_.step));
  UK_TRY(lines, JsonLines::open(*files_, path("trainer_log.jsonl")));
  log_lines_ = std::move(lines);
  if (!options_.tensorboard_folder.empty()) {
    UK_TRY(file, TensorboardFile::create(*files_, options_.tensorboard_folder, options_.now_s()));
    tensorboard_ = std::move(file);
  }
  JsonLine line = event(resume ? "resume" : "begin", state_.step);
  if (resume) line.add("folder", std::string_view(resume->folder));
  line.add("total_steps", state_.total_steps);
  return events_->append(line);
}

Result<void> RunLog::log_line(const LogEntry& entry) {
  UK_CHECK(log_lines_.has_value(), "a log entry before begin()");
  const double elapsed = elapsed_s();
  const double here_s = elapsed - former_elapsed_s_;
  const auto steps_here = static_cast<double>(entry.step - first_step_);
  const auto steps_left = static_cast<double>(state_.total_steps - entry.step);
  const auto total = static_cast<double>(std::max<std::int64_t>(1, state_.total_steps));
  JsonLine line;
  line.add("current_steps", entry.step).add("total_steps", state_.total_steps);
  if (entry.kind == Kind::training) line.add("loss", entry.value("loss"));
  if (entry.kind == Kind::evaluation) line.add("eval_loss", entry.value("eval_loss"));
  if (entry.kind == Kind::training) line.add("lr", entry.value("learning_rate"));
  line.add("epoch", entry.epoch)
      .add("percentage", rounded(static_cast<double>(entry.step) / total * 100, 2))
      .add("elapsed_time", std::string_view(format_duration(elapsed)))
      .add("remaining_time",
           std::string_view(format_duration(steps_here > 0 ? here_s / steps_here * steps_left : 0)))
      .add("throughput",
           rounded(elapsed > 0 ? static_cast<double>(state_.tokens_seen) / elapsed : 0, 2))
      .add("total_tokens", state_.tokens_seen);
  UK_TRY_VOID(log_lines_->append(line));
  return tensorboard_ ? tensorboard_->append(entry, options_.now_s()) : Result<void>();
}

Result<std::optional<LogEntry>> RunLog::step(const StepRecord& record) {
  if (!options_.is_writer) return std::optional<LogEntry>();
  state_.step = record.step;
  state_.epoch = record.epoch;
  state_.tokens_seen += record.tokens;
  state_.flops += record.flops;
  state_.elapsed_s = elapsed_s();
  // A loss that is not finite, or of no target, counts as the mean so far, so that one such step, which changes
  // no weights, does not spoil every later figure. events.jsonl shows it.
  const bool has_loss = record.has_targets && std::isfinite(record.loss);
  if (has_loss || state_.logging_loss_count > 0) {
    const double counted =
        has_loss ? record.loss
                 : state_.logging_loss_sum / static_cast<double>(state_.logging_loss_count);
    state_.logging_loss_sum += counted;
    state_.logging_loss_count += 1;
    state_.loss_sum += counted;
  }

  std::optional<LogEntry> logged;
  const bool is_due = options_.logging == spec::Cadence::epoch
                          ? record.ends_epoch
                          : options_.logging == spec::Cadence::steps && state_.logging_steps > 0 &&
                                record.step % state_.logging_steps == 0;
  if (is_due || (options_.log_first_step && record.step == 1)) {
    const double mean = state_.logging_loss_sum /
                        static_cast<double>(std::max<std::int64_t>(1, state_.logging_loss_count));
    logged = LogEntry{.kind = Kind::training,
                      .step = record.step,
                      .epoch = record.epoch,
                      .values = {record.gradient_norm, record.learning_rate, mean}};
    state_.history.push_back(*logged);
    state_.logging_loss_sum = 0;
    state_.logging_loss_count = 0;
  }

  JsonLine line = event("step", record.step);
  line.add("epoch", record.epoch)
      .add("loss", record.loss)
      .add("grad_norm", record.gradient_norm)
      .add("lr", record.learning_rate)
      .add("tokens", record.tokens)
      .add("step_s", record.step_s)
      .add("tokens_per_s",
           record.step_s > 0 ? static_cast<double>(record.tokens) / record.step_s : 0.0);
  if (record.loss_scale > 0)
    line.add("loss_scale", record.loss_scale).add("skipped", record.is_skipped);
  if (record.process_bytes > 0)
    line.add("process_bytes", record.process_bytes)
        .add("planned_process_bytes", record.planned_process_bytes);
  UK_TRY_VOID(events_->append(line));
  if (logged) UK_TRY_VOID(log_line(*logged));
  return logged;
}

Result<void> RunLog::evaluation(const EvaluationRecord& record) {
  if (!options_.is_writer) return {};
  const LogEntry entry{
      .kind = Kind::evaluation,
      .step = record.step,
      .epoch = record.epoch,
      .values = {record.loss, rounded(record.elapsed_s, 4),
                 per_second(static_cast<double>(record.samples), record.elapsed_s),
                 per_second(static_cast<double>(record.batches), record.elapsed_s)}};
  if (!summary_) state_.history.push_back(entry);
  last_evaluation_ = entry;
  JsonLine line = event("evaluate", record.step);
  line.add("epoch", record.epoch)
      .add("eval_loss", record.loss)
      .add("token_loss", record.token_loss)
      .add("perplexity", std::exp(record.loss))
      .add("target_tokens", record.target_tokens)
      .add("samples", record.samples)
      .add("elapsed_s", record.elapsed_s);
  UK_TRY_VOID(events_->append(line));
  UK_TRY_VOID(log_line(entry));
  return summary_ ? write_results() : Result<void>();
}

Result<void> RunLog::save_begin(std::int64_t step, const std::string& folder) {
  if (!options_.is_writer) return {};
  JsonLine line = event("save_begin", step);
  return events_->append(line.add("folder", std::string_view(folder)));
}

Result<void> RunLog::save_end(const SaveRecord& record) {
  if (!options_.is_writer) return {};
  JsonLine line = event("save_end", record.step);
  return events_->append(line.add("folder", std::string_view(record.folder))
                             .add("bytes", record.size_bytes)
                             .add("elapsed_s", record.elapsed_s)
                             .add("waited_s", record.waited_s));
}

Result<void> RunLog::signal(int signal_number, std::int64_t step) {
  if (!options_.is_writer) return {};
  JsonLine line = event("signal", step);
  return events_->append(line.add("signal", signal_name(signal_number)));
}

Result<void> RunLog::notice(const std::string& text) {
  if (!options_.is_writer) return {};
  JsonLine line = event("notice", state_.step);
  return events_->append(line.add("text", std::string_view(text)));
}

Result<void> RunLog::loaded(std::int64_t bytes, double elapsed_s) {
  if (!options_.is_writer) return {};
  JsonLine line = event("load", state_.step);
  return events_->append(line.add("bytes", bytes).add("elapsed_s", elapsed_s));
}

std::optional<LogEntry> RunLog::summary_that_stands() const {
  const std::string file = path("trainer_state.json");
  if (!files_->exists(file)) return std::nullopt;
  const auto text = files_->read_text(file, log_limit_bytes);
  if (!text) return std::nullopt;
  const auto former = TrainerState::from_json(*text, file);
  if (!former || former->step != state_.step) return std::nullopt;
  for (const LogEntry& entry : former->history)
    if (entry.kind == Kind::summary && entry.step == state_.step) return entry;
  return std::nullopt;
}

Result<void> RunLog::finish(std::int64_t samples) {
  if (!options_.is_writer) return {};
  state_.elapsed_s = elapsed_s();
  const auto steps = static_cast<double>(state_.step);
  const LogEntry own{.kind = Kind::summary,
                     .step = state_.step,
                     .epoch = state_.epoch,
                     .values = {state_.flops, state_.step > 0 ? state_.loss_sum / steps : 0,
                                rounded(state_.elapsed_s, 4),
                                per_second(static_cast<double>(samples), state_.elapsed_s),
                                per_second(steps, state_.elapsed_s)}};
  const LogEntry summary = state_.step > first_step_ ? own : summary_that_stands().value_or(own);
  state_.history.push_back(summary);
  summary_ = summary;
  UK_TRY_VOID(log_line(summary));
  JsonLine line = event("finish", state_.step);
  UK_TRY_VOID(events_->append(line.add("train_loss", summary.value("train_loss"))
                                  .add("elapsed_s", state_.elapsed_s)
                                  .add("tokens", state_.tokens_seen)));
  return write_results();
}

Result<void> RunLog::stopped(const std::string& reason) {
  if (!options_.is_writer) return {};
  JsonLine line = event("stop", state_.step);
  UK_TRY_VOID(events_->append(line.add("reason", std::string_view(reason))));
  return options_.plot_loss ? write_plots() : Result<void>();
}

Result<void> RunLog::write_named_numbers(std::string_view name,
                                         std::vector<std::pair<std::string, double>> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::string text = "{";
  for (const auto& [key, value] : numbers)
    text += fmt::format("{}\n    \"{}\": {}", text.size() == 1 ? "" : ",", key, json_number(value));
  text += "\n}\n";
  return files_->write_text_durably(path(name), text);
}

Result<void> RunLog::write_results() {
  std::vector<std::pair<std::string, double>> all;
  const auto write = [&](const LogEntry& entry, const char* name,
                         std::vector<std::pair<std::string, double>> numbers) {
    numbers.emplace_back("epoch", entry.epoch);
    const auto names = LogEntry::names(entry.kind);
    for (std::size_t i = 0; i < names.size(); ++i) numbers.emplace_back(names[i], entry.values[i]);
    for (const auto& number : numbers)
      if (std::none_of(all.begin(), all.end(),
                       [&](const auto& known) { return known.first == number.first; }))
        all.push_back(number);
    return write_named_numbers(name, std::move(numbers));
  };
  UK_TRY_VOID(write(*summary_, "train_results.json", {}));
  if (last_evaluation_ && last_evaluation_->step == state_.step)
    UK_TRY_VOID(write(*last_evaluation_, "eval_results.json",
                      {{"eval_perplexity", std::exp(last_evaluation_->value("eval_loss"))}}));
  UK_TRY_VOID(write_named_numbers("all_results.json", std::move(all)));
  UK_TRY_VOID(write_in_pieces(*files_, path("trainer_state.json"),
                              [this](const TextSink& sink) { return state_.write_json(sink); }));
  return options_.plot_loss ? write_plots() : Result<void>();
}

Result<void> RunLog::write_plots() {
  LossCurve training{.title = "training loss", .y_name = "loss", .points = {}};
  LossCurve evaluation{.title = "evaluation loss", .y_name = "eval_loss", .points = {}};
  for (const LogEntry& entry : state_.history) {
    if (entry.kind == Kind::training)
      training.points.push_back({static_cast<double>(entry.step), entry.value("loss")});
    if (entry.kind == Kind::evaluation)
      evaluation.points.push_back({static_cast<double>(entry.step), entry.value("eval_loss")});
  }
  const std::pair<const LossCurve&, std::string> plots[] = {{training, "training_loss"},
                                                            {evaluation, "training_eval_loss"}};
  for (const auto& [curve, name] : plots) {
    if (curve.points.empty()) continue;
    UK_TRY_VOID(files_->write_text_durably(path(name + ".svg"), loss_plot_svg(curve)));
    UK_TRY_VOID(files_->write_text_durably(path(name + ".png"), loss_plot_png(curve)));
  }
  return {};
}

}  // namespace underkeel::train
