#include "verify/layout.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"

namespace underkeel::verify {

using plan::BufferId;

namespace {

struct Range {
  std::int64_t begin_bytes = 0;
  std::int64_t end_bytes = 0;
  BufferId buffer = plan::no_buffer;
};

/// Persistent ranges in `space`, by begin; reports those that overlap.
std::vector<Range> persistent_ranges(const plan::Schedule& schedule,
                                     const plan::ArenaLayout& layout, plan::MemorySpace space,
                                     Report& report) {
  std::vector<Range> ranges;
  for (std::size_t b = 0; b < schedule.buffers.size(); ++b) {
    const plan::Buffer& buffer = schedule.buffers[b];
    if (!buffer.persistent || buffer.space != space || buffer.size_bytes == 0) continue;
    const std::int64_t begin = layout.offset_bytes[b];
    ranges.push_back({begin, begin + buffer.size_bytes, BufferId{static_cast<std::uint32_t>(b)}});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin_bytes < b.begin_bytes; });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin_bytes < ranges[i - 1].end_bytes)
      report.add(no_op, ranges[i].buffer,
                 "shares bytes with " + schedule.buffer(ranges[i - 1].buffer).name);
    // What reaches furthest is what the next one must be held against.
    if (ranges[i].end_bytes < ranges[i - 1].end_bytes)
      ranges[i].end_bytes = ranges[i - 1].end_bytes;
  }
  return ranges;
}

/// Whether [begin, end) meets a range of the list.
const Range* first_overlap(const std::vector<Range>& ranges, std::int64_t begin_bytes,
                           std::int64_t end_bytes) {
  const auto found = std::partition_point(ranges.begin(), ranges.end(), [&](const Range& range) {
    return range.end_bytes <= begin_bytes;
  });
  return found != ranges.end() && found->begin_bytes < end_bytes ? &*found : nullptr;
}

void check_offset(const plan::ArenaLayout& layout, const plan::Buffer& buffer, BufferId id,
                  Report& report) {
  const std::int64_t offset = layout.offset_bytes[index(id)];
  const std::int64_t block_bytes = layout.size_bytes[index(buffer.space)];
  if (offset % layout.alignment_bytes != 0)
    report.add(no_op, id,
               fmt::format("offset {} is no multiple of {}", format_count(offset),
                           layout.alignment_bytes));
  if (offset < 0 || offset > block_bytes - buffer.size_bytes)
    report.add(no_op, id,
               fmt::format("bytes {} to {} are outside the {} block of {}", format_count(offset),
                           format_count(offset + buffer.size_bytes), name_of(buffer.space),
                           format_count(block_bytes)));
}

}  // namespace

bool check_offset_count(const plan::Schedule& schedule, const plan::ArenaLayout& layout,
                        Report& report) {
  if (layout.offset_bytes.size() == schedule.buffers.size() && layout.alignment_bytes > 0)
    return true;
  report.add(no_op, fmt::format("the layout has {} offsets for {} buffers, aligned to {}",
                                layout.offset_bytes.size(), schedule.buffers.size(),
                                layout.alignment_bytes));
  return false;
}

void check_offsets(const plan::Schedule& schedule, const plan::ArenaLayout& layout,
                   const std::vector<bool>& acquired, Report& report) {
  std::array<std::vector<Range>, plan::memory_space_count> persistent;
  for (int space = 0; space < plan::memory_space_count; ++space)
    persistent[static_cast<std::size_t>(space)] =
        persistent_ranges(schedule, layout, static_cast<plan::MemorySpace>(space), report);
  for (std::size_t b = 0; b < schedule.buffers.size(); ++b) {
    const plan::Buffer& buffer = schedule.buffers[b];
    if (!buffer.persistent && !acquired[b]) continue;
    const BufferId id{static_cast<std::uint32_t>(b)};
    check_offset(layout, buffer, id, report);
    if (buffer.persistent || buffer.size_bytes == 0) continue;
    const std::int64_t begin = layout.offset_bytes[b];
    if (const Range* other =
            first_overlap(persistent[index(buffer.space)], begin, begin + buffer.size_bytes))
      report.add(no_op, id,
                 "shares bytes with the persistent " + schedule.buffer(other->buffer).name);
  }
}

void check_peaks(const plan::Plan& plan,
                 const std::vector<std::array<std::int64_t, plan::memory_space_count>>& peaks,
                 Report& report) {
  for (const plan::Peak& peak : plan.peaks) {
    const plan::Segment* segment = plan.schedule.find(peak.segment);
    if (segment == nullptr) continue;
    report.start(peak.segment);
    const std::int64_t most =
        peaks[static_cast<std::size_t>(segment - plan.schedule.segments.data())][index(peak.space)];
    std::int64_t of_kinds = 0;
    for (const std::int64_t size : peak.by_kind) of_kinds += size;
    if (peak.size_bytes != most)
      report.add(no_op, fmt::format("{} peaks at {} bytes, the plan says {}", name_of(peak.space),
                                    format_count(most), format_count(peak.size_bytes)));
    if (of_kinds != peak.size_bytes)
      report.add(no_op, fmt::format("the kinds of the {} peak add up to {} bytes, not {}",
                                    name_of(peak.space), format_count(of_kinds),
                                    format_count(peak.size_bytes)));
  }
}

const std::vector<BufferId>& Tenants::move_in(BufferId id) {
  evicted_.clear();
  const plan::Buffer& buffer = schedule_.buffer(id);
  if (buffer.size_bytes <= 0) return evicted_;
  auto& all = tenancies_[plan::index(buffer.space)];
  const std::int64_t begin = layout_.offset_bytes[plan::index(id)];
  const std::int64_t end = begin + buffer.size_bytes;
  const auto first = std::partition_point(
      all.begin(), all.end(), [&](const Tenancy& tenancy) { return tenancy.end_bytes <= begin; });
  auto last = first;
  std::array<Tenancy, 3> replacement;
  std::size_t count = 0;
  if (first != all.end() && first->begin_bytes < begin)
    replacement[count++] = {first->begin_bytes, begin, first->buffer};
  replacement[count++] = {begin, end, id};
  for (; last != all.end() && last->begin_bytes < end; ++last) {
    if (std::find(evicted_.begin(), evicted_.end(), last->buffer) == evicted_.end())
      evicted_.push_back(last->buffer);
    if (last->end_bytes > end) replacement[count++] = {end, last->end_bytes, last->buffer};
  }
  const auto removed = static_cast<std::size_t>(last - first);
  const auto overwritten = std::min(removed, count);
  std::copy_n(replacement.begin(), overwritten, first);
  if (removed > count) {
    all.erase(first + static_cast<std::ptrdiff_t>(count), last);
  } else {
    all.insert(last, replacement.begin() + static_cast<std::ptrdiff_t>(overwritten),
               replacement.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return evicted_;
}

}  // namespace underkeel::verify
