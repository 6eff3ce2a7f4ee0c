// Every case on the CPU backend, with each instruction set, against the reference: values within
// the case's bound, nothing written outside, inputs untouched, equal bits for any thread count.

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/agreement.h"
#include "kernels/cpu/instruction_set.h"

namespace underkeel::kernels {
namespace {

using cases::Case;
using cases::difference;
using cases::expect_inputs_untouched;
using cases::groups;
using cases::Instance;
using cases::is_result;

class Kernels : public testing::TestWithParam<int> {};

void expect_no_nan(const TensorView& view) {
  for (std::int64_t row = 0; row < view.rows; ++row) {
    for (std::int64_t column = 0; column < view.columns; ++column) {
      ASSERT_FALSE(std::isnan(reference::load(view, row, column))) << row << ", " << column;
    }
  }
}

// The reference itself: writes all of its outputs, nothing else, and means the same in place.
TEST_P(Kernels, ReferenceWritesItsOutputsAndNothingElse) {
  device::ThreadPool pool(1);
  device::Queue queue = device::Queue::on_cpu(pool);
  for (const Case& item : groups()[static_cast<std::size_t>(GetParam())].second) {
    SCOPED_TRACE(full_name(item));
    Instance apart(item, false);
    Instance before(item);
    Instance shared(item);
    apart.prepare(queue);
    before.prepare(queue);
    shared.prepare(queue);

    apart.run(reference_kernels(), queue);
    shared.run(reference_kernels(), queue);

    EXPECT_THAT(shared.damaged(), testing::IsEmpty());
    expect_inputs_untouched(item, before, shared);
    for (std::size_t i = 0; i < item.operands.size(); ++i) {
      const int operand = static_cast<int>(i);
      if (!is_result(item.operands[i])) continue;
      EXPECT_EQ(cases::bytes_of_view(apart.view(operand)),
                cases::bytes_of_view(shared.view(operand)))
          << item.operands[i].name;
      if (item.operation != "clip_factor") expect_no_nan(shared.view(operand));
    }
  }
}

TEST_P(Kernels, AgreeWithTheReference) {
  device::ThreadPool pool(2);
  device::Queue queue = device::Queue::on_cpu(pool);
  for (const Case& item : groups()[static_cast<std::size_t>(GetParam())].second) {
    Instance want(item, false);
    want.prepare(queue);
    want.run(reference_kernels(), queue);
    for (const cpu::InstructionSet set : cpu::instruction_sets()) {
      SCOPED_TRACE(fmt::format("{}, {}", full_name(item), name_of(set)));
      Instance before(item);
      Instance got(item);
      before.prepare(queue);
      got.prepare(queue);

      got.run(cpu::kernels_for(set), queue);

      EXPECT_THAT(got.damaged(), testing::IsEmpty()) << "written outside";
      expect_inputs_untouched(item, before, got);
      for (std::size_t i = 0; i < item.operands.size(); ++i)
        if (is_result(item.operands[i])) {
          const int operand = static_cast<int>(i);
          EXPECT_EQ(difference(got.view(operand), want.view(operand), item.operands[i].bound), "")
              << item.operands[i].name;
        }
    }
  }
}

TEST_P(Kernels, GiveTheSameBitsForAnyThreadCount) {
  device::ThreadPool one(1);
  device::Queue first_queue = device::Queue::on_cpu(one);
  for (const int thread_count : {2, 3}) {
    device::ThreadPool pool(thread_count);
    device::Queue queue = device::Queue::on_cpu(pool);
    for (const cpu::InstructionSet set : cpu::instruction_sets()) {
      for (const Case& item : groups()[static_cast<std::size_t>(GetParam())].second) {
        SCOPED_TRACE(fmt::format("{}, {}", full_name(item), name_of(set)));
        Instance want(item);
        Instance got(item);
        want.prepare(queue);
        got.prepare(queue);

        want.run(cpu::kernels_for(set), first_queue);
        got.run(cpu::kernels_for(set), queue);

        for (std::size_t i = 0; i < item.operands.size(); ++i)
          if (is_result(item.operands[i])) {
            EXPECT_EQ(cases::bytes_of_view(want.view(static_cast<int>(i))),
                      cases::bytes_of_view(got.view(static_cast<int>(i))))
                << item.operands[i].name << " with " << thread_count << " threads";
          }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::Range(0, static_cast<int>(groups().size())),
                         [](const auto& test) {
                           return groups()[static_cast<std::size_t>(test.param)].first;
                         });

}  // namespace
}  // namespace underkeel::kernels
