#include "plan/listing.h"

#include <gtest/gtest.h>

#include "support/schedules.h"

namespace underkeel::plan {
namespace {

using test::ScheduleBuilder;

std::string line_of(const Schedule& schedule) {
  const std::string text = listing(schedule, schedule.segments.back());
  const auto end = text.rfind('\n', text.size() - 2);
  return text.substr(end + 1, text.size() - end - 2);
}

TEST(Listing, ASegmentReadsLikeAnExplanation) {
  Schedule schedule = test::two_layer_zero3();
  Segment& micro = test::segment_of(schedule, SegmentKind::micro_only);
  micro.ops.resize(8);

  EXPECT_EQ(listing(schedule, micro),
            "segment micro.only, T up to 8 rows, 8 operations\n"
            "0000 collective  + layers.0.full    gathered 1.0 KiB\n"
            "0001 collective  gather layers.0    layers.0.weights of all ranks -> layers.0.full\n"
            "0002 collective  + layers.1.full    gathered 1.0 KiB\n"
            "0003 collective  gather layers.1    layers.1.weights of all ranks -> layers.1.full\n"
            "0004 compute     feed tokens        input tokens -> tokens\n"
            "0005 compute     zero totals        copy -> totals(2)\n"
            "0006 compute     + layers.0.output  activations 512 B\n"
            "0007 compute     forward layers.0   copy tokens(8), layers.0.full(256) -> "
            "layers.0.output(128)  | after 0001 gather layers.0\n");
}

TEST(Listing, PartsOfMatricesAreRanges) {
  ScheduleBuilder s;
  const BufferId x = s.buffer("x", 8 * 96);
  const BufferId starts = s.buffer("starts", 9);
  const BufferId chunk = s.buffer("chunk", 4 * 16);
  s.segment(SegmentKind::micro_only, 8);
  const Rows all{.of_batch = true, .count = 8};
  Compute body{.kernel = Kernel::attention_forward};
  body.operands = {
      {.buffer = x, .rows = all, .columns = 96, .row_stride = 96},
      {.buffer = x, .offset_bytes = 64 * 4, .rows = all, .columns = 32, .row_stride = 96},
      {.buffer = starts,
       .rows = {.of_batch = true, .count = 8, .extra = 1},
       .columns = 1,
       .row_stride = 1},
      {.buffer = x, .rows = {true, 4, 4}, .columns = 96, .row_stride = 96},
      {.buffer = x,
       .rows = {.of_batch = true, .count = 8, .last_only = true},
       .columns = 96,
       .row_stride = 96},
      {.buffer = chunk,
       .access = Access::read_write,
       .offset_bytes = -4 * 16 * 4,
       .rows = {true, 4, 4},
       .columns = 16,
       .row_stride = 16}};
  s.add(lanes::compute, "all", body);

  EXPECT_EQ(
      line_of(s.schedule),
      "0000 compute  all  attention_forward x(T, 96), x(T, 64:96), starts(T+1, 1), x(4:8, 96), "
      "x(last, 96) -> in place chunk(4:8, 16)");
}

TEST(Listing, TensorsInsideAUnitAreNamed) {
  ScheduleBuilder s;
  Unit unit{.name = "layers.0", .element_count = 192};
  unit.weights = s.buffer("layers.0.weights", 192, true, BufferKind::weights);
  unit.tensors = {{"model.layers.0.self_attn.q_proj.weight", {8, 8}, 0, 64},
                  {"model.layers.0.self_attn.k_proj.weight", {8, 8}, 64, 64},
                  {"model.layers.0.self_attn.o_proj.weight", {8, 8}, 128, 64}};
  s.schedule.units.push_back(unit);
  const BufferId y = s.buffer("y", 64);
  s.segment(SegmentKind::update);
  const auto weight = [&](std::int64_t begin, std::int64_t rows) {
    return Operand{.buffer = unit.weights,
                   .offset_bytes = begin * 4,
                   .rows = {.count = rows},
                   .columns = 8,
                   .row_stride = 8};
  };
  Compute body{.kernel = Kernel::matmul, .transpose_b = true, .accumulate = true};
  body.operands = {weight(128, 8), weight(0, 16), s.whole(y, Access::read_write)};
  s.add(lanes::compute, "multiply", body);

  EXPECT_EQ(line_of(s.schedule),
            "0000 compute  multiply  matmul layers.0.weights:o_proj(8, 8), "
            "layers.0.weights:q_proj..k_proj(16, 8)^T -> += y(64)");
}

TEST(Listing, EdgesEntriesFlagsAndRanksStandAtTheEnd) {
  ScheduleBuilder s;
  const BufferId x = s.buffer("x", 1, true);
  s.schedule.entries = {{"save of a"}, {"save of b"}};
  s.segment(SegmentKind::update);
  const OpIndex acquired = s.acquire(lanes::collective, x);
  s.add(lanes::compute, "publish", Publish{Output::clip, x}, {acquired});
  s.last().after_entry = {EntryId{0}, EntryId{1}};
  s.last().entry = EntryId{1};
  s.last().when = x;
  s.last().on = {0, 2};

  EXPECT_EQ(
      line_of(s.schedule),
      "0001 compute     publish  x -> output clip  | after 0000 acquire x  | after entry `save "
      "of a`, `save of b`  | entry `save of b`  | when x  | on ranks 0, 2");
}

TEST(Listing, AWholePlanStartsWithWhatItHolds) {
  Plan plan;
  plan.schedule = test::two_layer_zero3();
  plan.layout = test::apart(plan.schedule);
  plan.stage = 3;
  plan.world_size = 2;
  plan.parameter_count = 512;
  plan.peaks = {{.segment = SegmentKind::update,
                 .size_bytes = 4096,
                 .op = OpIndex{1},
                 .by_kind = {1024, 3072}}};

  const std::string text = listing(plan);

  EXPECT_TRUE(
      text.starts_with("plan: ZeRO stage 3, 2 ranks, 1 micro-step a window, 512 parameters\n"
                       "lanes: compute, collective, save copy, save disk\n"
                       "shape classes: 8 rows\n"))
      << text;
  EXPECT_NE(
      text.find("  layers.0                       256           128  f32 shard   f32 shard   -"
                "           f32 shard   yes\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("  update        device         4.0 KiB at 0001 update layers.0: weights 1.0 "
                      "KiB, gradients 3.0 KiB\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  update -> micro.only, save\n"), std::string::npos) << text;
  for (const Segment& segment : plan.schedule.segments)
    EXPECT_NE(text.find(listing(plan.schedule, segment)), std::string::npos);
}

}  // namespace
}  // namespace underkeel::plan
