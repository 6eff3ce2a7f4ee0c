// Ranks that are threads of this process: each GPU copies what it needs out of the others' memory, where it lies.
//
// A call has two meetings on the host, of the threads that queue it. Before the first, a rank marks the place in its queue
// where its memory is ready to be read; after it, it waits for the others' marks and copies. Before the second it marks
// where it has read all, and after it, what it queues next waits for the others' marks. Whatever is queued waits only for
// what is queued already, so the GPUs always come to its end, and one event of each kind serves every call: all have queued
// their waits for it before it is marked again.

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "comm/agree.h"
#include "comm/arguments.h"
#include "comm/cuda/exchange.h"
#include "comm/device_collectives.h"
#include "comm/threads/meeting.h"

namespace underkeel::comm {

namespace {

/// What the ranks of a group know of one another. A GPU lives until all have left: the others wait for its events.
struct PeerGroup {
  struct Member {
    std::shared_ptr<device::Gpu> gpu;
    device::EventId ready{};
    device::EventId done{};
  };

  explicit PeerGroup(int world_size)
      : meeting(world_size), members(static_cast<std::size_t>(world_size)) {}

  Meeting meeting;
  std::vector<Member> members;
};

class PeerCollectives final : public DeviceCollectives {
 public:
  PeerCollectives(std::shared_ptr<PeerGroup> group, int rank)
      : group_(std::move(group)), rank_(rank) {}
  ~PeerCollectives() override { group_->meeting.leave(rank_); }

  Result<void> all_gather(TensorView shard, TensorView full, const device::Queue& queue) override {
    check_all_gather(shard, full, rank_, world_size());
    if (full.element_count() == 0) return {};
    UK_TRY_VOID(begin("all_gather", shard.data, full.element_count(), full.type, queue));
    UK_TRY_VOID(for_each_peer([&](int peer) -> Result<void> {
      const ShardRange range = shard_of(full.element_count(), world_size(), peer);
      return copy(element_at(full, range.begin), post_of(peer), bytes_of(full.type, range.size()),
                  queue);
    }));
    return end(queue);
  }

  Result<void> reduce_scatter(TensorView full, TensorView staging, const SumHome& home,
                              const device::Queue& queue) override {
    const cuda::Exchange exchange(full, staging, home, rank_, world_size());
    if (exchange.is_empty()) return {};
    UK_TRY_VOID(begin("reduce_scatter", full.data, full.element_count(), full.type, queue));
    for (std::int64_t round = 0; round < exchange.round_count(); ++round) {
      const ShardRange mine = exchange.own_piece(round);
      UK_TRY_VOID(for_each_peer([&](int peer) -> Result<void> {
        if (peer == rank_) return {};
        return copy(exchange.slot_of(peer), post_of(peer) + bytes_of(full.type, mine.begin),
                    bytes_of(full.type, mine.size()), queue);
      }));
      exchange.queue_sum(round, queue.stream());
    }
    return end(queue);
  }

  Result<void> all_reduce(TensorView full, TensorView staging,
                          const device::Queue& queue) override {
    UK_TRY_VOID(reduce_scatter(full, staging, {}, queue));
    const ShardRange own = shard_of(full.element_count(), world_size(), rank_);
    return all_gather(vector(element_at(full, own.begin), full.type, own.size()), full, queue);
  }

  Result<void> all_gather_values(const double* own, double* all, std::int64_t count,
                                 const device::Queue& queue) override {
    UK_TRY_VOID(begin("all_gather_values", own, count, DType::f64, queue));
    UK_TRY_VOID(for_each_peer([&](int peer) {
      return copy(all + peer * count, post_of(peer), bytes_of(DType::f64, count), queue);
    }));
    return end(queue);
  }

  Result<void> check() override { return group_->meeting.check(rank_); }
  void abort() override {
    group_->meeting.abort(rank_, {ErrorCode::peer_lost, "the ranks' GPUs are no longer joined", "",
                                  "look for the first error of the other ranks"});
  }

 private:
  int world_size() const { return group_->meeting.world_size(); }
  PeerGroup::Member& own() { return group_->members[static_cast<std::size_t>(rank_)]; }
  const std::byte* post_of(int peer) const {
    return static_cast<const std::byte*>(group_->meeting.post_of(peer).data);
  }

  /// This rank first and then those after it, so that not all read from one at a time.
  template <class Body>
  Result<void> for_each_peer(Body&& body) const {
    for (int i = 0; i < world_size(); ++i) UK_TRY_VOID(body((rank_ + i) % world_size()));
    return {};
  }
  Result<void> copy(void* to, const void* from, std::int64_t byte_count,
                    const device::Queue& queue) {
    if (to == from) return {};
    return own().gpu->copy(to, from, byte_count, queue);
  }

  Result<void> begin(std::string_view call, const void* data, std::int64_t size, DType type,
                     const device::Queue& queue) {
    UK_TRY_VOID(own().gpu->record(own().ready, queue));
    UK_TRY_VOID(
        group_->meeting.begin(rank_, {.call = call, .data = data, .size = size, .type = type}));
    return wait_for_others(&PeerGroup::Member::ready, queue);
  }
  Result<void> end(const device::Queue& queue) {
    UK_TRY_VOID(own().gpu->record(own().done, queue));
    UK_TRY_VOID(group_->meeting.finish(rank_));
    return wait_for_others(&PeerGroup::Member::done, queue);
  }
  Result<void> wait_for_others(device::EventId PeerGroup::Member::*event,
                               const device::Queue& queue) {
    return for_each_peer([&](int peer) -> Result<void> {
      if (peer == rank_) return {};
      const PeerGroup::Member& other = group_->members[static_cast<std::size_t>(peer)];
      return own().gpu->wait(*other.gpu, other.*event, queue);
    });
  }

  std::shared_ptr<PeerGroup> group_;
  int rank_;
};

/// Groups that are being joined, by the number that rank 0 tells the others.
class Joining {
 public:
  static Joining& of_process() {
    static Joining joining;
    return joining;
  }
  int open(int world_size) {
    const std::lock_guard lock(mutex_);
    groups_[++last_] = std::make_shared<PeerGroup>(world_size);
    return last_;
  }
  std::shared_ptr<PeerGroup> at(int number) {
    const std::lock_guard lock(mutex_);
    return groups_.at(number);
  }
  void close(int number) {
    const std::lock_guard lock(mutex_);
    groups_.erase(number);
  }

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<PeerGroup>> groups_;
  int last_ = 0;
};

Result<PeerGroup::Member> member_of(std::shared_ptr<device::Gpu> gpu) {
  UK_TRY_VOID(gpu->use());
  UK_TRY(ready, gpu->make_event());
  UK_TRY(done, gpu->make_event());
  return PeerGroup::Member{.gpu = std::move(gpu), .ready = ready, .done = done};
}

Result<void> reach_all(const PeerGroup& group, device::Gpu& gpu) {
  for (const PeerGroup::Member& member : group.members)
    if (member.gpu.get() != &gpu) UK_TRY_VOID(gpu.reach(*member.gpu));
  return {};
}

}  // namespace

Result<std::unique_ptr<DeviceCollectives>> make_peers(Communicator& control,
                                                      std::shared_ptr<device::Gpu> gpu) {
  UK_CHECK(control.transport() == "threads" || control.world_size() == 1,
           "only threads of one process see one another's memory");
  Joining& joining = Joining::of_process();
  const int opened = control.rank() == 0 ? joining.open(control.world_size()) : 0;
  UK_TRY(numbers, control.all_gather_text(fmt::format("{}", opened)));
  const std::shared_ptr<PeerGroup> group = joining.at(std::stoi(numbers.front()));
  auto member = member_of(gpu);
  if (member) group->members[static_cast<std::size_t>(control.rank())] = *member;
  const Result<void> all = agree(control, member);
  if (control.rank() == 0) joining.close(opened);
  UK_TRY_VOID(all);
  UK_TRY_VOID(agree(control, reach_all(*group, *gpu)));
  return std::make_unique<PeerCollectives>(group, control.rank());
}

}  // namespace underkeel::comm
