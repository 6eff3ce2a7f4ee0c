// Bytes go through host memory and a Communicator: for ranks that share a GPU, and to check faster links against. The host waits
// for the GPU at every call.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "comm/arguments.h"
#include "comm/device_collectives.h"

namespace underkeel::comm {

namespace {

/// Host memory that a GPU copies from and to.
class Staging {
 public:
  static Result<Staging> make(std::shared_ptr<device::Gpu> gpu, std::int64_t size_bytes) {
    Staging staging;
    staging.data_ = static_cast<std::byte*>(
        std::aligned_alloc(page_bytes, static_cast<std::size_t>(size_bytes)));
    UK_CHECK(staging.data_ != nullptr, "no host memory for staging");
    std::memset(staging.data_, 0, static_cast<std::size_t>(size_bytes));
    UK_TRY_VOID(gpu->pin(staging.data_, size_bytes));
    staging.gpu_ = std::move(gpu);
    return staging;
  }
  Staging(Staging&& other) noexcept { *this = std::move(other); }
  Staging& operator=(Staging&& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Staging() {
    if (gpu_) gpu_->unpin(data_);
    std::free(data_);
  }
  std::byte* data() const { return data_; }

  static constexpr std::int64_t page_bytes = 4096;

 private:
  Staging() = default;
  std::shared_ptr<device::Gpu> gpu_;
  std::byte* data_ = nullptr;
};

float widened(const std::byte* data, DType type, std::int64_t index) {
  if (type == DType::f32) return reinterpret_cast<const float*>(data)[index];
  if (type == DType::bf16) return to_f32(reinterpret_cast<const BFloat16*>(data)[index]);
  return to_f32(reinterpret_cast<const Float16*>(data)[index]);
}
void put_rounded(std::byte* data, DType type, std::int64_t index, float value) {
  if (type == DType::f32) reinterpret_cast<float*>(data)[index] = value;
  if (type == DType::bf16) reinterpret_cast<BFloat16*>(data)[index] = to_bf16(value);
  if (type == DType::f16) reinterpret_cast<Float16*>(data)[index] = to_f16(value);
}

class ThroughHost final : public DeviceCollectives {
 public:
  /// `all` and `staging` hold piece_bytes() for every rank.
  ThroughHost(std::shared_ptr<device::Gpu> gpu, Communicator& group, Staging all, Staging staging)
      : gpu_(std::move(gpu)), group_(group), all_(std::move(all)), staging_(std::move(staging)) {}

  // A piece of every rank, a multiple of what shards are aligned to in any type, so that a row of pieces is cut as pieces.
  static constexpr std::int64_t piece_elements = 16 * shard_alignment_elements;
  static constexpr std::int64_t piece_bytes = piece_elements * 8;

  Result<void> all_gather(TensorView shard, TensorView full, const device::Queue& queue) override {
    check_all_gather(shard, full, rank(), world_size());
    const DType type = full.type;
    const std::int64_t begin = shard_of(full.element_count(), world_size(), rank()).begin;
    return in_rounds(full.element_count(), [&](const auto& piece_of) -> Result<void> {
      const ShardRange own = piece_of(rank());
      UK_TRY_VOID(copy(slot(type, rank()), element_at(shard, own.begin - begin),
                       bytes_of(type, own.size()), queue));
      UK_TRY_VOID(gpu_->synchronize(queue));
      UK_TRY_VOID(group_.all_gather(vector(slot(type, rank()), type, piece_elements), row(type)));
      for (int from = 0; from < world_size(); ++from) {
        const ShardRange piece = piece_of(from);
        UK_TRY_VOID(copy(element_at(full, piece.begin), slot(type, from),
                         bytes_of(type, piece.size()), queue));
      }
      return gpu_->synchronize(queue);
    });
  }

  Result<void> reduce_scatter(TensorView full, TensorView staging, const SumHome& home,
                              const device::Queue& queue) override {
    check_reduce(full, staging, world_size());
    const DType type = full.type;
    const ShardRange range = shard_of(full.element_count(), world_size(), rank());
    const TensorView own_part = vector(element_at(full, range.begin), type, range.size());
    const TensorView into = home.into.data == nullptr ? own_part : home.into;
    UK_CHECK(into.element_count() == range.size(), "a home holds the own range");
    return in_rounds(full.element_count(), [&](const auto& piece_of) -> Result<void> {
      for (int to = 0; to < world_size(); ++to) {
        const ShardRange piece = piece_of(to);
        UK_TRY_VOID(copy(slot(type, to), element_at(full, piece.begin),
                         bytes_of(type, piece.size()), queue));
      }
      UK_TRY_VOID(gpu_->synchronize(queue));
      UK_TRY_VOID(group_.reduce_scatter(
          row(type), vector(staging_.data(), DType::u8, piece_bytes * world_size())));
      const ShardRange own = piece_of(rank());
      return deliver(slot(type, rank()), type, {.into = into, .adds = home.adds},
                     {own.begin - range.begin, own.end - range.begin}, queue);
    });
  }

  Result<void> all_reduce(TensorView full, TensorView staging,
                          const device::Queue& queue) override {
    UK_TRY_VOID(reduce_scatter(full, staging, {}, queue));
    const ShardRange own = shard_of(full.element_count(), world_size(), rank());
    return all_gather(vector(element_at(full, own.begin), full.type, own.size()), full, queue);
  }

  Result<void> all_gather_values(const double* own, double* all, std::int64_t count,
                                 const device::Queue& queue) override {
    UK_CHECK(bytes_of(DType::f64, count) <= piece_bytes, "more values than a piece holds");
    auto* const mine = reinterpret_cast<double*>(staging_.data());
    auto* const everyones = reinterpret_cast<double*>(all_.data());
    const std::int64_t all_count = count * world_size();
    UK_TRY_VOID(copy(mine, own, bytes_of(DType::f64, count), queue));
    UK_TRY_VOID(gpu_->synchronize(queue));
    UK_TRY_VOID(group_.all_gather_values({mine, static_cast<std::size_t>(count)},
                                         {everyones, static_cast<std::size_t>(all_count)}));
    UK_TRY_VOID(copy(all, everyones, bytes_of(DType::f64, all_count), queue));
    return gpu_->synchronize(queue);
  }

  Result<void> check() override { return group_.check(); }
  void abort() override {
    group_.abort({ErrorCode::peer_lost, "the ranks' GPUs are no longer joined", "",
                  "look for the first error of the other ranks"});
  }

 private:
  int rank() const { return group_.rank(); }
  int world_size() const { return group_.world_size(); }
  std::byte* slot(DType type, int of) const {
    return all_.data() + bytes_of(type, of * piece_elements);
  }
  TensorView row(DType type) const {
    return vector(all_.data(), type, world_size() * piece_elements);
  }
  Result<void> copy(void* to, const void* from, std::int64_t size_bytes,
                    const device::Queue& queue) {
    if (size_bytes == 0) return {};
    return gpu_->copy(to, from, size_bytes, queue);
  }

  /// body(piece_of), where piece_of(rank) is what moves of the rank's range; empty where it has ended.
  template <class Body>
  Result<void> in_rounds(std::int64_t element_count, Body&& body) {
    if (element_count == 0) return {};
    for (std::int64_t begin = 0; begin < shard_elements(element_count, world_size());
         begin += piece_elements)
      UK_TRY_VOID(body([&](int of) {
        const ShardRange range = shard_of(element_count, world_size(), of);
        return intersect({range.begin + begin, range.begin + begin + piece_elements}, range);
      }));
    return {};
  }

  /// `place` of the home [+]= the sums.
  Result<void> deliver(const std::byte* sums, DType type, const SumHome& home, ShardRange place,
                       const device::Queue& queue) {
    std::byte* const device_part = element_at(home.into, place.begin);
    const std::int64_t size_bytes = bytes_of(home.into.type, place.size());
    std::byte* const held = staging_.data();
    if (home.adds) {
      UK_TRY_VOID(copy(held, device_part, size_bytes, queue));
      UK_TRY_VOID(gpu_->synchronize(queue));
    }
    for (std::int64_t i = 0; i < place.size(); ++i) {
      const float sum = widened(sums, type, i);
      put_rounded(held, home.into.type, i,
                  home.adds ? widened(held, home.into.type, i) + sum : sum);
    }
    UK_TRY_VOID(copy(device_part, held, size_bytes, queue));
    return gpu_->synchronize(queue);
  }

  std::shared_ptr<device::Gpu> gpu_;
  Communicator& group_;
  Staging all_;
  Staging staging_;
};

}  // namespace

Result<std::unique_ptr<DeviceCollectives>> make_through_host(Communicator& group,
                                                             std::shared_ptr<device::Gpu> gpu) {
  const std::int64_t size_bytes = ThroughHost::piece_bytes * group.world_size();
  UK_TRY(all, Staging::make(gpu, size_bytes));
  UK_TRY(staging, Staging::make(gpu, size_bytes));
  return std::make_unique<ThroughHost>(std::move(gpu), group, std::move(all), std::move(staging));
}

}  // namespace underkeel::comm
