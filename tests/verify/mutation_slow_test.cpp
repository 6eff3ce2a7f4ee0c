// Breaks real plans in every place, one at a time, and asks whether the verifier sees it. A second
// opinion by brute force (oracle.h) says which changes are harmless.

#include <algorithm>
#include <iostream>

#include <gtest/gtest.h>

#include "support/planned.h"
#include "verify/oracle.h"
#include "verify/verify.h"

namespace underkeel::verify {
namespace {

using plan::BufferId;
using plan::OpIndex;

struct Case {
  int stage;
  spec::Recompute recompute;
};

class Mutation : public testing::TestWithParam<Case> {
 protected:
  Mutation() {
    planner::Request request = test::two_layer_request(GetParam().stage);
    request.recompute = GetParam().recompute;
    request.accumulation_steps = 2;
    plan_ = planner::make_plan(request);
    EXPECT_TRUE(check(plan_).empty());
  }

  bool is_reported() const { return !check(plan_).empty(); }
  bool is_sound(const plan::Segment& segment) const {
    return test::is_ordered(plan_, segment) && test::keeps_lives(plan_, segment);
  }
  std::string place(const plan::Segment& segment, std::size_t i) const {
    const plan::Op& op = segment.ops[i];
    return std::string(name_of(segment.kind)) + " op " + std::to_string(i) + " `" + op.label + "`";
  }
  /// Calls change(segment, position) for every operation; the segment is restored afterwards.
  template <class Change>
  void for_each_op(Change&& change) {
    for (plan::Segment& segment : plan_.schedule.segments)
      for (std::size_t i = 0; i < segment.ops.size(); ++i) change(segment, i);
  }

  plan::Plan plan_;
};

TEST_P(Mutation, EveryDroppedEdgeIsReportedOrImpliedByOthers) {
  int reported_count = 0;
  int edge_count = 0;
  for_each_op([&](plan::Segment& segment, std::size_t i) {
    const std::vector<OpIndex> edges = segment.ops[i].after;
    for (std::size_t e = 0; e < edges.size(); ++e) {
      segment.ops[i].after.erase(segment.ops[i].after.begin() + static_cast<std::ptrdiff_t>(e));
      const bool reported = is_reported();
      const bool sound = test::is_ordered(plan_, segment) && test::waits_for_entries(plan_);
      EXPECT_EQ(reported, !sound) << place(segment, i) << " edge to " << index(edges[e]);
      segment.ops[i].after = edges;
      ++edge_count;
      reported_count += reported ? 1 : 0;
    }
  });
  std::cout << reported_count << " of " << edge_count << " edges needed\n";
  EXPECT_GT(reported_count, 0);
}

TEST_P(Mutation, EveryDroppedWaitForAnEntryIsReportedOrImpliedByOthers) {
  int reported_count = 0;
  int wait_count = 0;
  for_each_op([&](plan::Segment& segment, std::size_t i) {
    const std::vector<plan::EntryId> waits = segment.ops[i].after_entry;
    for (std::size_t e = 0; e < waits.size(); ++e) {
      auto& left = segment.ops[i].after_entry;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(e));
      const bool reported = is_reported();
      EXPECT_EQ(reported, !test::waits_for_entries(plan_))
          << place(segment, i) << " entry " << plan_.schedule.entries[index(waits[e])].name;
      left = waits;
      ++wait_count;
      reported_count += reported ? 1 : 0;
    }
  });
  std::cout << reported_count << " of " << wait_count << " waits needed\n";
  EXPECT_GT(reported_count, 0);
}

TEST_P(Mutation, ADroppedGatherReductionOrReleaseIsReported) {
  int dropped = 0;
  for (plan::Segment& segment : plan_.schedule.segments) {
    const plan::Segment original = segment;
    for (std::size_t i = 0; i < original.ops.size(); ++i) {
      const plan::OpBody& body = original.ops[i].body;
      if (!std::holds_alternative<plan::Gather>(body) &&
          !std::holds_alternative<plan::ReduceScatter>(body) &&
          !std::holds_alternative<plan::AllReduce>(body) &&
          !std::holds_alternative<plan::GatherValues>(body) &&
          !std::holds_alternative<plan::Release>(body) &&
          !std::holds_alternative<plan::Acquire>(body))
        continue;
      // Whoever waited for it waits for what it waited for: only the operation is missing.
      const plan::Op gone = segment.ops[i];
      const auto before = static_cast<std::size_t>(
          std::find_if(original.ops.rend() - static_cast<std::ptrdiff_t>(i), original.ops.rend(),
                       [&](const plan::Op& op) { return op.lane == gone.lane; }) -
          original.ops.rbegin());
      const std::size_t previous = original.ops.size() - 1 - before;  // wraps when there is none
      segment.ops.erase(segment.ops.begin() + static_cast<std::ptrdiff_t>(i));
      for (plan::Op& op : segment.ops) {
        std::vector<OpIndex> after;
        for (const OpIndex one : op.after) {
          if (index(one) != i) {
            after.push_back(one > OpIndex{static_cast<std::uint32_t>(i)}
                                ? OpIndex{static_cast<std::uint32_t>(index(one) - 1)}
                                : one);
            continue;
          }
          for (const OpIndex inherited : gone.after)
            if (original.ops[index(inherited)].lane != op.lane) after.push_back(inherited);
          if (previous < i) after.push_back(OpIndex{static_cast<std::uint32_t>(previous)});
        }
        op.after = after;
      }
      EXPECT_TRUE(is_reported()) << place(original, i) << " body " << body.index();
      segment = original;
      ++dropped;
    }
  }
  std::cout << dropped << " operations dropped\n";
}

TEST_P(Mutation, AShiftedOffsetIsReportedWhereBytesCollide) {
  int reported_count = 0;
  int shift_count = 0;
  const std::vector<std::int64_t> original = plan_.layout.offset_bytes;
  for (std::size_t b = 0; b < original.size(); ++b) {
    if (original[b] < 0) continue;
    for (const std::int64_t shift : {-64, 64, -4096, 4096, 8}) {
      plan_.layout.offset_bytes[b] += shift;
      const plan::Buffer& buffer = plan_.schedule.buffers[b];
      bool sound = shift % 64 == 0 && plan_.layout.offset_bytes[b] >= 0 &&
                   plan_.layout.offset_bytes[b] + buffer.size_bytes <=
                       plan_.layout.size_bytes[index(buffer.space)];
      for (std::size_t other = 0; other < original.size() && sound; ++other) {
        const plan::Buffer& neighbour = plan_.schedule.buffers[other];
        if (other == b || original[other] < 0 || neighbour.space != buffer.space) continue;
        if (!buffer.persistent && !neighbour.persistent) continue;
        sound = plan_.layout.offset_bytes[b] + buffer.size_bytes <= original[other] ||
                original[other] + neighbour.size_bytes <= plan_.layout.offset_bytes[b];
      }
      for (const plan::Segment& segment : plan_.schedule.segments)
        sound = sound && is_sound(segment);
      const bool reported = is_reported();
      EXPECT_EQ(reported, !sound) << buffer.name << " by " << shift;
      plan_.layout.offset_bytes = original;
      ++shift_count;
      reported_count += reported ? 1 : 0;
    }
  }
  std::cout << reported_count << " of " << shift_count << " shifts collide\n";
}

TEST_P(Mutation, AnOperationOnAnotherLaneIsReportedWhereOrderIsLost) {
  int reported_count = 0;
  int move_count = 0;
  for_each_op([&](plan::Segment& segment, std::size_t i) {
    const plan::LaneId original = segment.ops[i].lane;
    for (std::uint8_t lane = 0; lane < plan_.schedule.lanes.size(); ++lane) {
      if (plan::LaneId{lane} == original) continue;
      segment.ops[i].lane = plan::LaneId{lane};
      const bool reported = is_reported();
      if (!reported) {
        EXPECT_TRUE(is_sound(segment) && test::waits_for_entries(plan_))
            << place(segment, i) << " on lane " << int{lane};
      }
      segment.ops[i].lane = original;
      ++move_count;
      reported_count += reported ? 1 : 0;
    }
  });
  std::cout << reported_count << " of " << move_count << " moves reported\n";
}

TEST_P(Mutation, ASwapOfNeighboursThatTouchTheSameBytesIsReported) {
  int reported_count = 0;
  int colliding_count = 0;
  int swap_count = 0;
  for (plan::Segment& segment : plan_.schedule.segments) {
    const plan::Segment original = segment;
    const auto pairs = test::colliding_pairs(plan_, original);
    for (std::size_t i = 0; i + 1 < original.ops.size(); ++i) {
      const bool collides =
          std::find(pairs.begin(), pairs.end(), std::pair(i, i + 1)) != pairs.end();
      std::swap(segment.ops[i], segment.ops[i + 1]);
      const OpIndex first{static_cast<std::uint32_t>(i)};
      const OpIndex second{static_cast<std::uint32_t>(i + 1)};
      for (std::size_t j = i; j < segment.ops.size(); ++j)
        for (OpIndex& before : segment.ops[j].after)
          before = before == first ? second : before == second ? first : before;
      const bool reported = is_reported();
      if (!reported) {
        EXPECT_TRUE(is_sound(segment) && test::waits_for_entries(plan_)) << place(original, i);
        EXPECT_FALSE(collides && test::touch_same_bytes(original.ops[i], original.ops[i + 1]))
            << place(original, i);
      }
      segment = original;
      ++swap_count;
      colliding_count += collides ? 1 : 0;
      reported_count += reported ? 1 : 0;
    }
  }
  std::cout << reported_count << " of " << swap_count << " swaps reported, " << colliding_count
            << " collide\n";
}

TEST_P(Mutation, ARetargetedBufferIsReportedWhereALifeOrARaceBreaks) {
  int reported_count = 0;
  int retarget_count = 0;
  std::uint32_t random = 1;
  const auto buffer_count = static_cast<std::uint32_t>(plan_.schedule.buffers.size());
  for_each_op([&](plan::Segment& segment, std::size_t i) {
    const plan::Op original = segment.ops[i];
    auto* compute = std::get_if<plan::Compute>(&segment.ops[i].body);
    if (compute == nullptr) return;
    for (std::size_t o = 0; o < compute->operands.size(); ++o) {
      if (compute->operands[o].buffer == plan::no_buffer) continue;
      // Another buffer of the same size and type, so that only its content can give it away.
      for (std::uint32_t attempt = 0; attempt < buffer_count; ++attempt) {
        random = random * 1664525 + 1013904223;
        const BufferId other{(random >> 8) % buffer_count};
        const plan::Buffer& old = plan_.schedule.buffer(compute->operands[o].buffer);
        const plan::Buffer& now = plan_.schedule.buffer(other);
        if (other == compute->operands[o].buffer || old.size_bytes != now.size_bytes ||
            old.type != now.type)
          continue;
        compute->operands[o].buffer = other;
        const bool reported = is_reported();
        if (!reported) {
          EXPECT_TRUE(is_sound(segment) && test::waits_for_entries(plan_))
              << place(segment, i) << " operand " << o << " is " << now.name;
        }
        segment.ops[i] = original;
        compute = std::get_if<plan::Compute>(&segment.ops[i].body);
        ++retarget_count;
        reported_count += reported ? 1 : 0;
        break;
      }
    }
  });
  // The rest reads a living buffer of the same size and type: legal, and for goldens to find.
  EXPECT_GE(reported_count * 100, retarget_count * 90);
  std::cout << reported_count << " of " << retarget_count << " retargets reported\n";
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int stage : {0, 1, 2, 3})
    for (const spec::Recompute recompute :
         {spec::Recompute::none, spec::Recompute::cheap, spec::Recompute::block})
      all.push_back({stage, recompute});
  return all;
}
std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  const char* recompute = info.param.recompute == spec::Recompute::none    ? "none"
                          : info.param.recompute == spec::Recompute::cheap ? "cheap"
                                                                           : "block";
  return "stage" + std::to_string(info.param.stage) + "_" + recompute;
}
INSTANTIATE_TEST_SUITE_P(Stages, Mutation, testing::ValuesIn(cases()), name_of_case);

}  // namespace
}  // namespace underkeel::verify
