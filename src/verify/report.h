#pragma once
// Where the rules put what they find.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "verify/verify.h"

namespace underkeel::verify {

class Report {
 public:
  explicit Report(const plan::Schedule& schedule) : schedule_(schedule) {}

  void start(plan::SegmentKind segment) { segment_ = segment; }
  /// About an operation (or no_op: about the segment).
  void add(plan::OpIndex op, std::string what) {
    violations_.push_back({.segment = segment_, .op = op, .what = std::move(what)});
  }
  /// About a buffer: its name stands before the sentence.
  void add(plan::OpIndex op, plan::BufferId buffer, const std::string& sentence,
           plan::OpIndex other = no_op) {
    violations_.push_back({.segment = segment_,
                           .op = op,
                           .buffer = buffer,
                           .other = other,
                           .what = schedule_.buffer(buffer).name + ": " + sentence});
  }
  bool empty() const { return violations_.empty(); }
  /// By segment and operation; what is about the whole schedule stands first.
  std::vector<Violation> take() {
    const auto place = [&](const Violation& violation) {
      const plan::Segment* segment = schedule_.find(violation.segment);
      // no_op + 1 wraps to 0.
      return std::pair(violation.op == no_op ? nullptr : segment,
                       static_cast<std::uint32_t>(violation.op) + 1);
    };
    std::stable_sort(violations_.begin(), violations_.end(),
                     [&](const Violation& a, const Violation& b) { return place(a) < place(b); });
    return std::move(violations_);
  }

 private:
  const plan::Schedule& schedule_;
  plan::SegmentKind segment_ = plan::SegmentKind::load;
  std::vector<Violation> violations_;
};

}  // namespace underkeel::verify
