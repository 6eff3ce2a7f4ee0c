// Every case on the GPU against the reference, and twice: equal bits. Skipped where there is no GPU.

#include <cstring>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/gpu.h"
#include "kernels/agreement.h"

namespace underkeel::kernels {
namespace {

using cases::Case;
using cases::Instance;

/// The GPU of this machine, opened once; null without one.
device::Gpu* gpu(std::string* why_not = nullptr) {
  static const auto opened = device::open_gpu(0);
  if (opened) return opened->get();
  if (why_not != nullptr) *why_not = opened.error().what;
  return nullptr;
}

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(to_text(result.error()));
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Memory on the GPU that cases take pieces of, one case at a time.
class DeviceMemory {
 public:
  explicit DeviceMemory(device::Gpu& on) : gpu_(on), data_(value_of(on.allocate(size_bytes))) {}
  ~DeviceMemory() { gpu_.release(data_); }
  void* data() const { return data_; }
  static constexpr std::int64_t size_bytes = std::int64_t{1} << 28;

 private:
  device::Gpu& gpu_;
  void* data_;
};

/// Runs an instance on the GPU: its memory is copied there, and back afterwards.
void run_on_gpu(const Case& item, Instance& instance, void* memory, device::Queue& queue) {
  const std::vector<Instance::Region> regions = instance.regions();
  std::vector<TensorView> views(instance.views().begin(), instance.views().end());
  std::vector<std::byte*> places;
  auto* next = static_cast<std::byte*>(memory);
  for (const Instance::Region& region : regions) {
    places.push_back(next);
    for (TensorView& view : views)
      if (view.data == region.begin + region.data_offset) view.data = next + region.data_offset;
    value_of(gpu()->copy(next, region.begin, region.size_bytes, queue));
    next += (region.size_bytes + 255) / 256 * 256;
  }
  ASSERT_LE(next - static_cast<std::byte*>(memory), DeviceMemory::size_bytes);

  item.run(cuda_kernels(), views, queue);

  value_of(gpu()->check_launches());
  for (std::size_t i = 0; i < regions.size(); ++i)
    value_of(gpu()->copy(regions[i].begin, places[i], regions[i].size_bytes, queue));
  value_of(gpu()->synchronize(queue));
}

class GpuKernels : public testing::TestWithParam<int> {};

TEST_P(GpuKernels, AgreeWithTheReferenceAndRepeatTheirBits) {
  std::string why_not;
  if (gpu(&why_not) == nullptr) GTEST_SKIP() << why_not;
  const DeviceMemory memory(*gpu());
  device::Queue on_gpu = value_of(gpu()->make_queue());
  device::ThreadPool pool(1);
  device::Queue on_cpu = device::Queue::on_cpu(pool);
  for (const Case& item : cases::groups()[static_cast<std::size_t>(GetParam())].second) {
    SCOPED_TRACE(full_name(item));
    Instance want(item, false);
    want.prepare(on_cpu);
    want.run(reference_kernels(), on_cpu);
    Instance before(item);
    Instance got(item);
    Instance again(item);
    for (Instance* instance : {&before, &got, &again}) instance->prepare(on_cpu);

    run_on_gpu(item, got, memory.data(), on_gpu);
    run_on_gpu(item, again, memory.data(), on_gpu);

    EXPECT_THAT(got.damaged(), testing::IsEmpty()) << "written outside";
    cases::expect_inputs_untouched(item, before, got);
    for (std::size_t i = 0; i < item.operands.size(); ++i) {
      if (!cases::is_result(item.operands[i])) continue;
      const int operand = static_cast<int>(i);
      cases::Bound bound = item.operands[i].bound;
      bound.absolute += bound.from_tensor_cores;
      EXPECT_EQ(cases::difference(got.view(operand), want.view(operand), bound), "")
          << item.operands[i].name;
      EXPECT_EQ(cases::bytes_of_view(got.view(operand)), cases::bytes_of_view(again.view(operand)))
          << item.operands[i].name << " on the second run";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuKernels,
                         testing::Range(0, static_cast<int>(cases::groups().size())),
                         [](const auto& test) {
                           return cases::groups()[static_cast<std::size_t>(test.param)].first;
                         });

}  // namespace
}  // namespace underkeel::kernels
