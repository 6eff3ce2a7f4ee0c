// trainer_state.json, there and back. Written by hand: a document tree of a long history would take
// ten times the memory of the history itself.

#include "train/trainer_state.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace underkeel::train {
namespace {

using Kind = LogEntry::Kind;
using nlohmann::json;

constexpr std::array<std::string_view, 3> training_names{"grad_norm", "learning_rate", "loss"};
constexpr std::array<std::string_view, 4> evaluation_names{
    "eval_loss", "eval_runtime", "eval_samples_per_second", "eval_steps_per_second"};
constexpr std::array<std::string_view, 5> summary_names{"total_flos", "train_loss", "train_runtime",
                                                        "train_samples_per_second",
                                                        "train_steps_per_second"};
constexpr const char* own_key = "UnderkeelRunLog";  // under stateful_callbacks

void append_entry(const LogEntry& entry, std::string& text) {
  // All names in one order, "epoch" and "step" among the others.
  const auto names = LogEntry::names(entry.kind);
  auto out = std::back_inserter(text);
  fmt::format_to(out, "    {{\n");
  bool is_epoch_written = false;
  bool is_step_written = false;
  const auto write_fixed = [&](std::string_view next) {
    if (!is_epoch_written && "epoch" < next) {
      fmt::format_to(out, "      \"epoch\": {},\n", json_number(entry.epoch));
      is_epoch_written = true;
    }
    if (!is_step_written && "step" < next) {
      fmt::format_to(out, "      \"step\": {},\n", entry.step);
      is_step_written = true;
    }
  };
  for (std::size_t i = 0; i < names.size(); ++i) {
    write_fixed(names[i]);
    fmt::format_to(out, "      \"{}\": {},\n", names[i], json_number(entry.values[i]));
  }
  write_fixed("~");
  text.erase(text.size() - 2, 1);  // the last comma
  fmt::format_to(out, "    }}");
}

double number_or_nan(const json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::int64_t whole_or_zero(const json& parent, const char* key) {
  const auto found = parent.find(key);
  if (found == parent.end() || !found->is_number()) return 0;
  return found->is_number_float() ? static_cast<std::int64_t>(found->get<double>())
                                  : found->get<std::int64_t>();
}

double number_or_zero(const json& parent, const char* key) {
  const auto found = parent.find(key);
  return found == parent.end() ? 0.0 : number_or_nan(*found);
}

/// The entry, or false when it is none of ours.
bool read_entry(const json& source, LogEntry& entry) {
  if (!source.is_object()) return false;
  const auto step = source.find("step");
  if (step == source.end() || !step->is_number_integer()) return false;
  entry.step = step->get<std::int64_t>();
  entry.epoch = number_or_nan(source.value("epoch", json()));
  for (const Kind kind : {Kind::training, Kind::evaluation, Kind::summary}) {
    const auto names = LogEntry::names(kind);
    // transformers leaves out total_flos without progress bars, and grad_norm without clipping.
    if (!source.contains(kind == Kind::training     ? "loss"
                         : kind == Kind::evaluation ? "eval_loss"
                                                    : "train_loss"))
      continue;
    entry.kind = kind;
    for (std::size_t i = 0; i < names.size(); ++i)
      entry.values[i] = number_or_nan(source.value(std::string(names[i]), json()));
    return true;
  }
  return false;
}

}  // namespace

std::span<const std::string_view> LogEntry::names(Kind kind) {
  switch (kind) {
    case Kind::training:
      return training_names;
    case Kind::evaluation:
      return evaluation_names;
    case Kind::summary:
      return summary_names;
  }
  UK_CHECK(false, "a log entry of no kind");
}

double LogEntry::value(std::string_view name) const {
  const auto all = names(kind);
  const auto found = std::find(all.begin(), all.end(), name);
  UK_CHECK(found != all.end(), fmt::format("a log entry has no `{}`", name));
  return values[static_cast<std::size_t>(found - all.begin())];
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

Result<void> TrainerState::write_json(const TextSink& sink) const {
  constexpr std::size_t piece_bytes = 1 << 16;
  std::string text;
  text.reserve(piece_bytes + 1024);
  auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "{{\n  \"best_global_step\": {},\n  \"best_metric\": {},\n"
                 "  \"best_model_checkpoint\": {},\n  \"epoch\": {},\n  \"eval_steps\": {},\n"
                 "  \"global_step\": {},\n  \"is_hyper_param_search\": false,\n"
                 "  \"is_local_process_zero\": true,\n  \"is_world_process_zero\": true,\n"
                 "  \"log_history\": [",
                 best.value && best.step > 0 ? fmt::format("{}", best.step) : "null",
                 best.value ? json_number(*best.value) : "null",
                 best.checkpoint.empty() ? "null" : json(best.checkpoint).dump(),
                 json_number(epoch), evaluation_steps, step);
  for (std::size_t i = 0; i < history.size(); ++i) {
    text += i == 0 ? "\n" : ",\n";
    append_entry(history[i], text);
    if (text.size() < piece_bytes) continue;
    UK_TRY_VOID(sink(text));
    text.clear();
  }
  fmt::format_to(out,
                 "{}],\n  \"logging_steps\": {},\n  \"max_steps\": {},\n"
                 "  \"num_input_tokens_seen\": {},\n  \"num_train_epochs\": {},\n"
                 "  \"save_steps\": {},\n  \"stateful_callbacks\": {{\n    \"{}\": {{\n"
                 "      \"args\": {{}},\n      \"attributes\": {{\n        \"elapsed_s\": {},\n"
                 "        \"evaluations_since_best\": {},\n"
                 "        \"logging_loss_count\": {},\n        \"logging_loss_sum\": {},\n"
                 "        \"loss_sum\": {}\n      }}\n    }}\n  }},\n  \"total_flos\": {},\n"
                 "  \"train_batch_size\": {},\n  \"trial_name\": null,\n"
                 "  \"trial_params\": null\n}}\n",
                 history.empty() ? "" : "\n  ", logging_steps, total_steps, tokens_seen,
                 std::trunc(epochs_planned) == epochs_planned
                     ? fmt::format("{}", static_cast<std::int64_t>(epochs_planned))
                     : json_number(epochs_planned),
                 save_steps, own_key, json_number(elapsed_s), best.evaluations_since,
                 logging_loss_count, json_number(logging_loss_sum), json_number(loss_sum),
                 json_number(flops), sequences_per_micro_batch);
  return sink(text);
}

std::string TrainerState::to_json() const {
  std::string text;
  const Result<void> written = write_json([&](std::string_view piece) -> Result<void> {
    text += piece;
    return {};
  });
  UK_CHECK(written.has_value(), "a text takes every piece");
  return text;
}

TrainerState TrainerState::without_history() const {
  TrainerState state;
  state.step = step;
  state.total_steps = total_steps;
  state.epoch = epoch;
  state.epochs_planned = epochs_planned;
  state.logging_steps = logging_steps;
  state.save_steps = save_steps;
  state.evaluation_steps = evaluation_steps;
  state.sequences_per_micro_batch = sequences_per_micro_batch;
  state.tokens_seen = tokens_seen;
  state.flops = flops;
  state.logging_loss_sum = logging_loss_sum;
  state.logging_loss_count = logging_loss_count;
  state.loss_sum = loss_sum;
  state.elapsed_s = elapsed_s;
  state.best = best;
  return state;
}

Result<TrainerState> TrainerState::from_json(std::string_view text, const std::string& where) {
  TrainerState state;
  // Each entry of the history goes into the state and out of the document as soon as it is read.
  std::string key;
  const auto take_entries = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth == 1 && event == json::parse_event_t::key) key = parsed.get<std::string>();
    if (depth != 2 || key != "log_history" || event != json::parse_event_t::object_end) return true;
    LogEntry entry;
    if (read_entry(parsed, entry)) state.history.push_back(entry);
    return false;
  };
  const json root = json::parse(text, take_entries, /*allow_exceptions=*/false);
  if (!root.is_object())
    return fail(ErrorCode::bad_file, "the trainer's state is not a JSON object", where,
                "resume from another checkpoint");
  try {
    state.step = root.at("global_step").get<std::int64_t>();
    state.total_steps = whole_or_zero(root, "max_steps");
    state.epoch = number_or_zero(root, "epoch");
    state.epochs_planned = number_or_zero(root, "num_train_epochs");
    state.logging_steps = whole_or_zero(root, "logging_steps");
    state.save_steps = whole_or_zero(root, "save_steps");
    state.evaluation_steps = whole_or_zero(root, "eval_steps");
    state.sequences_per_micro_batch = whole_or_zero(root, "train_batch_size");
    state.tokens_seen = whole_or_zero(root, "num_input_tokens_seen");
    state.flops = number_or_zero(root, "total_flos");
    const json::json_pointer own_place(fmt::format("/stateful_callbacks/{}/attributes", own_key));
    const json own = root.contains(own_place) ? root.at(own_place) : json::object();
    state.logging_loss_sum = number_or_zero(own, "logging_loss_sum");
    state.logging_loss_count = whole_or_zero(own, "logging_loss_count");
    state.loss_sum = number_or_zero(own, "loss_sum");
    state.elapsed_s = number_or_zero(own, "elapsed_s");
    state.best.step = whole_or_zero(root, "best_global_step");
    if (root.contains("best_metric") && root["best_metric"].is_number())
      state.best.value = root["best_metric"].get<double>();
    if (root.contains("best_model_checkpoint") && root["best_model_checkpoint"].is_string())
      state.best.checkpoint = root["best_model_checkpoint"].get<std::string>();
    state.best.evaluations_since = whole_or_zero(own, "evaluations_since_best");
    if (!root.at("log_history").is_array())
      return fail(ErrorCode::bad_file, "the trainer's log_history is not a list", where,
                  "resume from another checkpoint");
  } catch (const json::exception& error) {
    return fail(ErrorCode::bad_file,
                fmt::format("the trainer's state cannot be read: {}", error.what()), where,
                "resume from another checkpoint");
  }
  return state;
}

}  // namespace underkeel::train
