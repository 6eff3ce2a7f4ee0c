#pragma once
// Where the rules put what they find.

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
  std::vector<Violation> take() { return std::move(violations_); }

 private:
  const plan::Schedule& schedule_;
  plan::SegmentKind segment_ = plan::SegmentKind::load;
  std::vector<Violation> violations_;
};

}  // namespace underkeel::verify
