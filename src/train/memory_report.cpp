// Measuring around phases, and the text of memory.json.

#include "train/memory_report.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace underkeel::train {
namespace {

std::string_view name_of(MemoryPhase phase) {
  switch (phase) {
    case MemoryPhase::save:
      return "save";
    case MemoryPhase::evaluate:
      return "evaluate";
    case MemoryPhase::resume:
      return "resume";
  }
  return "";
}

}  // namespace

MemorySource MemorySource::of(const exec::Executor& executor) {
  return {.arena_resident_bytes =
              [&executor](plan::MemorySpace space) { return executor.resident_bytes(space); },
          .live_peak_bytes =
              [&executor](plan::SegmentKind kind, plan::MemorySpace space) {
                return executor.live_peak_bytes(kind, space);
              },
          .process = read_process_memory};
}

MemoryReport::MemoryReport(const plan::Plan& plan, MemorySource source,
                           const MemoryReportOptions& options)
    : plan_(plan), source_(std::move(source)), options_(options) {
  for (std::size_t i = 0; i < plan::memory_space_count; ++i)
    if (plan.layout.size_bytes[i] > 0) spaces_.push_back(static_cast<plan::MemorySpace>(i));
  events_.reserve(static_cast<std::size_t>(options.expected_phases) * spaces_.size());
}

Result<void> MemoryReport::begin(MemoryPhase phase, std::int64_t step) {
  if (open_count_ > 0) UK_TRY_VOID(end());
  UK_TRY(process, source_.process());
  for (const plan::MemorySpace space : spaces_) {
    UK_TRY(arena_bytes, source_.arena_resident_bytes(space));
    events_.push_back({.phase = phase,
                       .space = space,
                       .step = step,
                       .before_bytes = arena_bytes,
                       .during_peak_bytes = arena_bytes,
                       .after_bytes = arena_bytes,
                       .anonymous_before_bytes = process.anonymous_resident_bytes,
                       .anonymous_during_peak_bytes = process.anonymous_resident_bytes,
                       .anonymous_after_bytes = process.anonymous_resident_bytes});
    ++open_count_;
  }
  return {};
}

Result<void> MemoryReport::sample() {
  if (open_count_ == 0) return {};
  UK_TRY(process, source_.process());
  for (std::size_t i = events_.size() - open_count_; i < events_.size(); ++i) {
    Event& event = events_[i];
    UK_TRY(arena_bytes, source_.arena_resident_bytes(event.space));
    event.during_peak_bytes = std::max(event.during_peak_bytes, arena_bytes);
    event.after_bytes = arena_bytes;
    event.anonymous_during_peak_bytes =
        std::max(event.anonymous_during_peak_bytes, process.anonymous_resident_bytes);
    event.anonymous_after_bytes = process.anonymous_resident_bytes;
  }
  return {};
}

Result<void> MemoryReport::end() {
  const Result<void> sampled = sample();
  open_count_ = 0;
  return sampled;
}

Result<std::string> MemoryReport::to_lines() const {
  UK_TRY(process, source_.process());
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{{\"rank\": {}, \"spaces\": {{", options_.rank);
  for (std::size_t i = 0; i < spaces_.size(); ++i) {
    const plan::MemorySpace space = spaces_[i];
    UK_TRY(arena_bytes, source_.arena_resident_bytes(space));
    fmt::format_to(out, "{}\"{}\": {{\"planned_peak_bytes\": {}, \"measured_peak_bytes\": {}, ",
                   i == 0 ? "" : ", ", plan::name_of(space),
                   plan_.layout.size_bytes[static_cast<std::size_t>(space)], arena_bytes);
    if (space == plan::MemorySpace::device && options_.joining_bytes > 0)
      fmt::format_to(out, "\"joining_bytes\": {}, ", options_.joining_bytes);
    text += "\"by_segment\": {";
    std::string_view separator = "";
    for (const plan::Peak& peak : plan_.peaks) {
      if (peak.space != space) continue;
      fmt::format_to(out, "{}\"{}\": {{\"planned_peak_bytes\": {}, \"measured_peak_bytes\": {}}}",
                     separator, plan::name_of(peak.segment), peak.size_bytes,
                     source_.live_peak_bytes(peak.segment, space));
      separator = ", ";
    }
    fmt::format_to(out, "}}}}");
  }
  fmt::format_to(out,
                 "}}, \"process\": {{\"planned_total_bytes\": {}, \"max_rss_bytes\": {}, "
                 "\"ranks_in_process\": {}}}}}\n",
                 options_.planned_process_bytes, process.most_resident_bytes,
                 options_.ranks_in_process);
  for (const Event& event : events_)
    fmt::format_to(
        out,
        "{{\"rank\": {}, \"step\": {}, \"what\": \"{}\", \"space\": \"{}\", \"before_bytes\": {}, "
        "\"during_peak_bytes\": {}, \"after_bytes\": {}, \"anonymous_rss_before\": {}, "
        "\"anonymous_rss_during_peak\": {}, \"anonymous_rss_after\": {}}}\n",
        options_.rank, event.step, name_of(event.phase), plan::name_of(event.space),
        event.before_bytes, event.during_peak_bytes, event.after_bytes,
        event.anonymous_before_bytes, event.anonymous_during_peak_bytes,
        event.anonymous_after_bytes);
  return text;
}

std::string join_memory_reports(const std::vector<std::string>& parts) {
  std::string ranks;
  std::string events;
  for (const std::string_view part : parts) {
    bool is_rank = true;  // the first line of a part
    for (std::size_t begin = 0; begin < part.size();) {
      const std::size_t end = std::min(part.find('\n', begin), part.size());
      std::string& list = is_rank ? ranks : events;
      list += list.empty() ? "\n    " : ",\n    ";
      list += part.substr(begin, end - begin);
      is_rank = false;
      begin = end + 1;
    }
  }
  return fmt::format(
      "{{\n"
      "  \"about\": \"planned_peak_bytes is an arena's size, measured_peak_bytes its resident "
      "bytes in smaps; in by_segment both are the most bytes of living buffers. process: bytes of "
      "the whole process; ranks_in_process ranks share them. joining_bytes: what joining the GPUs "
      "took "
      "of a card before the plan was made.\",\n"
      "  \"ranks\": [{}\n  ],\n  \"events\": [{}\n  ]\n}}\n",
      ranks, events);
}

Result<void> write_memory_report(comm::Communicator& control, io::FileSystem& files,
                                 const std::string& output, const MemoryReport& report,
                                 bool has_trained) {
  UK_TRY(own, report.to_lines());
  UK_TRY(parts, control.all_gather_text(own));
  if (control.rank() != 0) return {};
  const std::string path = io::join_path(output, "memory.json");
  if (!has_trained && files.exists(path)) return {};
  return files.write_text_durably(path, join_memory_reports(parts));
}

}  // namespace underkeel::train
