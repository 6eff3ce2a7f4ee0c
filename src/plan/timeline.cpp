#include "plan/timeline.h"

#include <algorithm>

#include "plan/uses.h"

namespace underkeel::plan {

std::vector<Moment> bytes_over_time(const Schedule& schedule, const Timeline& timeline,
                                    MemorySpace space) {
  struct Event {
    double time_s = 0;
    std::int64_t change_bytes = 0;
    BufferKind kind{};
  };
  std::vector<Event> events;
  const Segment* segment = nullptr;
  for (const Span& span : timeline.spans) {
    if (segment == nullptr || segment->kind != span.segment) segment = schedule.find(span.segment);
    const Op& op = segment->ops[index(span.op)];
    const BufferId born = acquired_by(op);
    const BufferId gone = released_by(op);
    if (born == no_buffer && gone == no_buffer) continue;
    const Buffer& buffer = schedule.buffer(born != no_buffer ? born : gone);
    if (buffer.space != space) continue;
    events.push_back(
        {span.end_s, born != no_buffer ? buffer.size_bytes : -buffer.size_bytes, buffer.kind});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.time_s < b.time_s; });
  std::vector<Moment> moments(1);
  for (const Buffer& buffer : schedule.buffers) {
    if (!buffer.persistent || buffer.space != space) continue;
    moments[0].size_bytes += buffer.size_bytes;
    moments[0].by_kind[index(buffer.kind)] += buffer.size_bytes;
  }
  for (const Event& event : events) {
    if (moments.back().time_s != event.time_s) {
      moments.push_back(moments.back());
      moments.back().time_s = event.time_s;
    }
    moments.back().size_bytes += event.change_bytes;
    moments.back().by_kind[index(event.kind)] += event.change_bytes;
  }
  return moments;
}

}  // namespace underkeel::plan
