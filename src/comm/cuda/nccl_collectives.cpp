// NCCL moves the bytes, our own kernel adds them in rank order: the bits are those of every other transport.
// A reduction is an exchange of pieces, which costs as many bytes on the link as a ring.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/check.h"
#include "comm/agree.h"
#include "comm/arguments.h"
#include "comm/cuda/exchange.h"
#include "comm/cuda/nccl_library.h"
#include "comm/device_collectives.h"

namespace underkeel::comm {

namespace {

nccl::Stream* stream_of(const device::Queue& queue) {
  return static_cast<nccl::Stream*>(queue.stream());
}

class NcclCollectives final : public DeviceCollectives {
 public:
  NcclCollectives(const nccl::Library& library, nccl::Group* group, int rank, int world_size)
      : library_(library), group_(group), rank_(rank), world_size_(world_size) {}
  ~NcclCollectives() override {
    if (nccl::Group* group = group_.exchange(nullptr)) library_.destroy(group);
  }

  Result<void> all_gather(TensorView shard, TensorView full, const device::Queue& queue) override {
    check_all_gather(shard, full, rank_, world_size_);
    const auto bytes = [&](std::int64_t elements) {
      return static_cast<std::size_t>(bytes_of(full.type, elements));
    };
    const std::int64_t count = full.element_count();
    if (count == 0) return {};
    const std::int64_t largest = shard_elements(count, world_size_);
    UK_TRY(group, group_now());
    if (largest * world_size_ == count)
      return told(library_.all_gather(shard.data, full.data, bytes(largest), nccl::u8, group,
                                      stream_of(queue)),
                  "all_gather");
    return grouped("all_gather", [&]() -> nccl::Status {
      for (int root = 0; root < world_size_; ++root) {
        const ShardRange range = shard_of(count, world_size_, root);
        if (range.empty()) continue;
        std::byte* const into = element_at(full, range.begin);
        const void* const from = root == rank_ ? shard.data : into;
        const nccl::Status status = library_.broadcast(from, into, bytes(range.size()), nccl::u8,
                                                       root, group, stream_of(queue));
        if (status != nccl::success) return status;
      }
      return nccl::success;
    });
  }

  Result<void> reduce_scatter(TensorView full, TensorView staging, const SumHome& home,
                              const device::Queue& queue) override {
    const cuda::Exchange exchange(full, staging, home, rank_, world_size_);
    const auto bytes = [&](ShardRange piece) {
      return static_cast<std::size_t>(bytes_of(full.type, piece.size()));
    };
    for (std::int64_t round = 0; round < exchange.round_count(); ++round) {
      const ShardRange mine = exchange.own_piece(round);
      UK_TRY(group, group_now());
      UK_TRY_VOID(grouped("reduce_scatter", [&]() -> nccl::Status {
        for (int peer = 0; peer < world_size_; ++peer) {
          if (peer == rank_) continue;
          const ShardRange theirs = exchange.piece_of(peer, round);
          nccl::Status status = nccl::success;
          if (!theirs.empty())
            status = library_.send(element_at(full, theirs.begin), bytes(theirs), nccl::u8, peer,
                                   group, stream_of(queue));
          if (status == nccl::success && !mine.empty())
            status = library_.receive(exchange.slot_of(peer), bytes(mine), nccl::u8, peer, group,
                                      stream_of(queue));
          if (status != nccl::success) return status;
        }
        return nccl::success;
      }));
      exchange.queue_sum(round, queue.stream());
    }
    return {};
  }

  Result<void> all_reduce(TensorView full, TensorView staging,
                          const device::Queue& queue) override {
    UK_TRY_VOID(reduce_scatter(full, staging, {}, queue));
    const ShardRange own = shard_of(full.element_count(), world_size_, rank_);
    return all_gather(vector(element_at(full, own.begin), full.type, own.size()), full, queue);
  }

  Result<void> all_gather_values(const double* own, double* all, std::int64_t count,
                                 const device::Queue& queue) override {
    UK_TRY(group, group_now());
    return told(library_.all_gather(own, all, static_cast<std::size_t>(count), nccl::f64, group,
                                    stream_of(queue)),
                "all_gather_values");
  }

  Result<void> check() override {
    nccl::Group* const group = group_;
    if (group == nullptr) return {};
    nccl::Status state = nccl::success;
    const nccl::Status status = library_.async_error(group, &state);
    if (status == nccl::success && (state == nccl::success || state == nccl::in_progress))
      return {};
    return fail(ErrorCode::peer_lost,
                fmt::format("rank {}: NCCL reports: {}", rank_,
                            library_.error_text(status == nccl::success ? state : status)),
                "",
                "look for the first error of the other ranks, then at the link between the GPUs");
  }
  void abort() override {
    if (nccl::Group* group = group_.exchange(nullptr)) library_.abort(group);
  }

 private:
  Result<nccl::Group*> group_now() const {
    nccl::Group* const group = group_;
    if (group == nullptr)
      return fail(ErrorCode::peer_lost, "the ranks' GPUs are no longer joined", "",
                  "look for the first error of the other ranks");
    return group;
  }
  Result<void> told(nccl::Status status, std::string_view call) const {
    if (status == nccl::success) return {};
    return fail(
        ErrorCode::io,
        fmt::format("{} on rank {}: NCCL says: {}", call, rank_, library_.error_text(status)),
        library_.path, "NCCL_DEBUG=WARN makes it say more");
  }
  template <class Calls>
  Result<void> grouped(std::string_view call, Calls&& calls) const {
    UK_TRY_VOID(told(library_.group_start(), call));
    const nccl::Status inside = calls();
    const nccl::Status end = library_.group_end();
    return told(inside != nccl::success ? inside : end, call);
  }

  const nccl::Library& library_;
  std::atomic<nccl::Group*> group_;
  int rank_;
  int world_size_;
};

std::string to_hex(const nccl::UniqueId& id) {
  std::string text;
  for (const char byte : id.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

nccl::UniqueId from_hex(std::string_view text) {
  nccl::UniqueId id{};
  UK_CHECK(text.size() == 2 * sizeof id.bytes, "an id of another length");
  for (std::size_t i = 0; i < sizeof id.bytes; ++i)
    id.bytes[i] = static_cast<char>(std::stoi(std::string(text.substr(2 * i, 2)), nullptr, 16));
  return id;
}

}  // namespace

Result<std::unique_ptr<DeviceCollectives>> make_nccl(Communicator& control) {
  const auto loaded = nccl::load_library();
  // One rank without the library would leave the others waiting in it.
  UK_TRY_VOID(agree(control, loaded));
  const nccl::Library& library = **loaded;
  nccl::UniqueId id{};
  Result<void> made;
  if (control.rank() == 0)
    if (const nccl::Status status = library.get_unique_id(&id); status != nccl::success)
      made = fail(ErrorCode::io, fmt::format("NCCL says: {}", library.error_text(status)),
                  library.path, "NCCL_DEBUG=WARN makes it say more");
  UK_TRY_VOID(agree(control, std::move(made)));
  UK_TRY(texts, control.all_gather_text(to_hex(id)));
  nccl::Group* group = nullptr;
  const nccl::Status status =
      library.init_rank(&group, control.world_size(), from_hex(texts.front()), control.rank());
  Result<void> joined;
  if (status != nccl::success)
    joined = fail(ErrorCode::io,
                  fmt::format("joining {} GPUs: NCCL says: {}", control.world_size(),
                              library.error_text(status)),
                  library.path, "NCCL_DEBUG=WARN makes it say more");
  UK_TRY_VOID(agree(control, std::move(joined)));
  return std::make_unique<NcclCollectives>(library, group, control.rank(), control.world_size());
}

}  // namespace underkeel::comm
