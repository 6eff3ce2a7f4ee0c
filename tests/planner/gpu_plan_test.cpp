// What a plan has besides when it is made for a GPU, and that it is right still.

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/facts/facts.h"
#include "support/planned.h"
#include "verify/verify.h"

namespace underkeel::planner {
namespace {

using plan::MemorySpace;

Request gpu_request(DType weight_type, DType accumulate_type = DType::f32) {
  Request request = test::two_layer_request(0, 1);
  request.on_gpu = true;
  request.weight_type = weight_type;
  request.accumulate_type = accumulate_type;
  return request;
}

template <class Body>
std::vector<Body> bodies(const plan::Plan& plan, plan::SegmentKind kind) {
  std::vector<Body> found;
  for (const plan::Op& op : plan.schedule.find(kind)->ops)
    if (const auto* body = std::get_if<Body>(&op.body)) found.push_back(*body);
  return found;
}

TEST(GpuPlan, IsProvedAtEveryRecomputeLevelAndType) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const DType accumulate : {DType::f32, DType::bf16})
      for (const auto level :
           {spec::Recompute::none, spec::Recompute::cheap, spec::Recompute::block}) {
        Request request = gpu_request(type, accumulate);
        request.recompute = level;

        const plan::Plan plan = make_plan(request);

        EXPECT_TRUE(plan.on_gpu);
        EXPECT_THAT(verify::check(plan), testing::IsEmpty());
      }
}

TEST(GpuPlan, AddsTheResidualStreamOnTheWayOutOfProducts) {
  for (const auto level : {spec::Recompute::none, spec::Recompute::cheap, spec::Recompute::block}) {
    Request request = gpu_request(DType::bf16);
    request.recompute = level;

    const plan::Plan plan = make_plan(request);

    int added = 0;
    for (const plan::Compute& body : bodies<plan::Compute>(plan, plan::SegmentKind::micro_only)) {
      EXPECT_NE(body.kernel, plan::Kernel::copy);
      if (body.kernel == plan::Kernel::matmul && body.operands.size() == 6) {
        EXPECT_FALSE(body.accumulate);
        EXPECT_EQ(body.operands[2].access, plan::Access::write);
        EXPECT_NE(body.operands[2].buffer, body.operands[5].buffer);
        ++added;
      }
    }
    // Two a layer; a block that is computed again needs its last product no more.
    EXPECT_EQ(added, level == spec::Recompute::block ? 2 * 2 + 2 : 2 * 2);
  }
}

TEST(GpuPlan, MakesSwigluAgainWhileItsGradientIsTaken) {
  for (const auto level : {spec::Recompute::none, spec::Recompute::cheap, spec::Recompute::block}) {
    Request request = gpu_request(DType::bf16);
    request.recompute = level;
    const bool again = level != spec::Recompute::none;

    const plan::Plan plan = make_plan(request);

    int forward = 0;
    int backward = 0;
    const auto all = bodies<plan::Compute>(plan, plan::SegmentKind::micro_only);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].kernel == plan::Kernel::swiglu_forward) ++forward;
      if (all[i].kernel != plan::Kernel::swiglu_backward) continue;
      ++backward;
      ASSERT_EQ(all[i].operands.size(), again ? 6u : 5u);
      if (!again) continue;
      EXPECT_EQ(all[i].operands[5].buffer, all[i].operands[2].buffer);
      EXPECT_TRUE(all[i + 1].transpose_a) << "the weight's gradient comes next";
      EXPECT_EQ(all[i + 1].operands[1].buffer, all[i].operands[5].buffer);
    }
    EXPECT_EQ(forward, 2);
    EXPECT_EQ(backward, 2);
  }
}

TEST(GpuPlan, HasPinnedTwinsForAllThatCrossesTheLinkAndNothingInOtherHostMemory) {
  const plan::Plan plan = make_plan(gpu_request(DType::bf16));

  std::set<plan::BufferId> twins;
  int crossings = 0;
  const auto expect_twin = [&](plan::BufferId twin, plan::BufferId of) {
    ++crossings;
    twins.insert(twin);
    ASSERT_NE(twin, plan::no_buffer);
    const plan::Buffer& buffer = plan.schedule.buffer(twin);
    EXPECT_EQ(buffer.space, MemorySpace::pinned_host) << buffer.name;
    EXPECT_TRUE(buffer.persistent) << buffer.name;
    EXPECT_EQ(buffer.size_bytes, plan.schedule.buffer(of).size_bytes) << buffer.name;
  };
  for (const plan::Segment& segment : plan.schedule.segments) {
    for (const auto& feed : bodies<plan::Feed>(plan, segment.kind))
      expect_twin(feed.pinned, feed.into);
    for (const auto& publish : bodies<plan::Publish>(plan, segment.kind))
      expect_twin(publish.pinned, publish.from);
    for (const auto& load : bodies<plan::Load>(plan, segment.kind))
      EXPECT_EQ(plan.schedule.buffer(load.staging).space, MemorySpace::pinned_host);
  }
  EXPECT_GT(crossings, 20);
  EXPECT_EQ(twins.size(), static_cast<std::size_t>(crossings)) << "no two inputs share a twin";
  EXPECT_EQ(plan.layout.size_bytes[index(MemorySpace::host)], 0);
}

TEST(GpuPlan, GivesEveryProductTheLibrarysWorkspace) {
  const plan::Plan plan = make_plan(gpu_request(DType::bf16));

  int products = 0;
  for (const plan::Segment& segment : plan.schedule.segments)
    for (const auto& body : bodies<plan::Compute>(plan, segment.kind)) {
      if (body.kernel != plan::Kernel::matmul) continue;
      ++products;
      ASSERT_GE(body.operands.size(), 5u);
      EXPECT_EQ(body.operands[4].columns, kernels::cuda_matmul_workspace_bytes);
      EXPECT_EQ(plan.schedule.buffer(body.operands[4].buffer).name, "matmul.workspace");
    }
  EXPECT_GT(products, 50);
}

class GpuPlanOfSums : public testing::TestWithParam<DType> {};

TEST_P(GpuPlanOfSums, AddsGradientsInPlaceFromTheSecondMicroStepOn) {
  const plan::Plan plan = make_plan(gpu_request(DType::bf16, GetParam()));
  std::set<plan::BufferId> homes;
  for (const plan::Unit& unit : plan.schedule.units) homes.insert(unit.gradient);

  for (const auto kind : {plan::SegmentKind::micro_first, plan::SegmentKind::micro_middle}) {
    EXPECT_THAT(bodies<plan::Accumulate>(plan, kind), testing::IsEmpty());
    std::set<std::pair<plan::BufferId, std::int64_t>> written;
    for (const auto& body : bodies<plan::Compute>(plan, kind))
      for (const plan::Operand& operand : body.operands) {
        if (!homes.contains(operand.buffer)) continue;
        EXPECT_EQ(operand.type, plan.schedule.buffer(operand.buffer).type);
        const bool is_first_write = kind == plan::SegmentKind::micro_first &&
                                    written.insert({operand.buffer, operand.offset_bytes}).second;
        EXPECT_EQ(operand.access == plan::Access::write, is_first_write)
            << plan::name_of(body.kernel);
        const bool adds = body.kernel == plan::Kernel::rms_norm_backward ? body.accumulate_weight
                                                                         : body.accumulate;
        EXPECT_EQ(adds, !is_first_write) << plan::name_of(body.kernel);
      }
  }
}

TEST(GpuPlan, AddsToTheHomeWhileRanksAreSummedAtEveryStage) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    for (int stage = 0; stage <= 3; ++stage) {
      SCOPED_TRACE(testing::Message() << name_of(type) << ", stage " << stage);
      Request request = test::two_layer_request(stage, 4);
      request.on_gpu = true;
      request.weight_type = type;

      const plan::Plan plan = make_plan(request);

      EXPECT_THAT(verify::check(plan), testing::IsEmpty());
      for (const auto kind : {plan::SegmentKind::micro_first, plan::SegmentKind::micro_middle}) {
        EXPECT_THAT(bodies<plan::Accumulate>(plan, kind), testing::IsEmpty());
        EXPECT_THAT(bodies<plan::AllReduce>(plan, kind), testing::IsEmpty());
        const auto sums = bodies<plan::ReduceScatter>(plan, kind);
        EXPECT_EQ(sums.size(), plan.schedule.units.size());
        for (const auto& sum : sums) {
          EXPECT_EQ(sum.into, plan.schedule.unit(sum.unit).gradient);
          EXPECT_EQ(sum.first, kind == plan::SegmentKind::micro_first);
        }
      }
      std::size_t gradients = 0;
      for (const auto& gather : bodies<plan::Gather>(plan, plan::SegmentKind::update))
        if (gather.full == plan.schedule.unit(gather.unit).gradient) ++gradients;
      EXPECT_EQ(gradients, stage == 0 ? plan.schedule.units.size() : 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(Types, GpuPlanOfSums, testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

// Their kernels add in f32 alone, and there is no copy beside the home that could be f32.
TEST(GpuPlan, KeepsGradientsOfEmbeddingHeadAndVectorsInF32) {
  const plan::Plan plan = make_plan(gpu_request(DType::bf16, DType::bf16));

  for (const plan::Unit& unit : plan.schedule.units)
    EXPECT_EQ(plan.schedule.buffer(unit.gradient).type,
              unit.name.starts_with("layers.") ? DType::bf16 : DType::f32)
        << unit.name;
}

TEST(GpuPlan, MakesNormsAgainWhileTheirGradientIsTaken) {
  Request request = gpu_request(DType::bf16);
  request.recompute = spec::Recompute::cheap;

  const plan::Plan plan = make_plan(request);

  int forward = 0;
  int again = 0;
  const auto all = bodies<plan::Compute>(plan, plan::SegmentKind::micro_only);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kernel == plan::Kernel::rms_norm_forward) ++forward;
    if (all[i].kernel != plan::Kernel::rms_norm_backward || all[i].operands.size() < 8) continue;
    ++again;
    EXPECT_EQ(all[i].operands[7].buffer, all[i].operands[3].buffer);
    EXPECT_TRUE(all[i + 1].transpose_a) << "the weight's gradient comes next";
    EXPECT_EQ(all[i + 1].operands[1].buffer, all[i].operands[7].buffer);
  }
  EXPECT_EQ(forward, 2 * 2 + 1) << "two a layer and the last one, each once";
  EXPECT_EQ(again, 2 * 2);
}

TEST(GpuPlan, RotatesQueriesAndKeysTogetherAndTurnsBackInAttention) {
  for (const auto level : {spec::Recompute::none, spec::Recompute::cheap, spec::Recompute::block}) {
    Request request = gpu_request(DType::bf16);
    request.recompute = level;

    const plan::Plan plan = make_plan(request);

    int rotations = 0;
    for (const plan::Compute& body : bodies<plan::Compute>(plan, plan::SegmentKind::micro_only)) {
      if (body.kernel == plan::Kernel::attention_backward) {
        EXPECT_EQ(body.operands.size(), 13u);
      }
      if (body.kernel != plan::Kernel::rope_apply) continue;
      ++rotations;
      EXPECT_FALSE(body.inverse);
      EXPECT_EQ(body.operands[0].columns, (4 + 2) * 16);
    }
    EXPECT_EQ(rotations, level == spec::Recompute::block ? 2 * 2 : 2);
  }
}

TEST(Costs, CountAttentionInsideSequencesAlone) {
  Request request = gpu_request(DType::bf16);
  request.max_rows = 64;
  const auto flops = [&](std::int64_t longest) {
    request.max_sequence_rows = longest;
    const plan::Plan plan = make_plan(request);
    double sum = 0;
    for (const plan::Op& op : plan.schedule.find(plan::SegmentKind::micro_only)->ops) {
      const auto* body = std::get_if<plan::Compute>(&op.body);
      if (body != nullptr && body->kernel == plan::Kernel::attention_forward) sum += op.cost.flops;
    }
    return sum;
  };

  EXPECT_EQ(flops(0), flops(64));
  EXPECT_EQ(flops(16), 2 * 4.0 * 4 * (16 * 17 / 2) * 4 * 16);
  EXPECT_EQ(flops(48), 2 * 4.0 * (48 * 49 / 2 + 16 * 17 / 2) * 4 * 16);
}

TEST(GpuPlan, LeavesACpuPlanWithoutPinnedMemory) {
  const plan::Plan plan = make_plan(test::two_layer_request(0, 1));

  EXPECT_FALSE(plan.on_gpu);
  EXPECT_EQ(plan.layout.size_bytes[index(MemorySpace::pinned_host)], 0);
  EXPECT_FALSE(bodies<plan::Accumulate>(plan, plan::SegmentKind::micro_first).empty());
}

}  // namespace
}  // namespace underkeel::planner
