// Ranks that are threads of one process: each reads the others' buffers where they lie. Rank r
// writes only into its own buffers, and in a reduction only into its own range, which no other
// rank reads; what others wrote is read after a meeting.

#include <cstring>

#include "comm/arguments.h"
#include "comm/communicator.h"
#include "comm/ordered_sum.h"
#include "comm/threads/meeting.h"

namespace underkeel::comm {

namespace {

void copy(void* into, const void* from, std::int64_t byte_count) {
  if (byte_count > 0 && into != from) std::memcpy(into, from, static_cast<std::size_t>(byte_count));
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Meeting> meeting, int rank)
      : meeting_(std::move(meeting)),
        rank_(rank),
        sources_(static_cast<std::size_t>(meeting_->world_size())) {}
  ~ThreadCommunicator() override { meeting_->leave(rank_); }

  int rank() const override { return rank_; }
  int world_size() const override { return meeting_->world_size(); }
  int ranks_on_node() const override { return world_size(); }
  int rank_on_node() const override { return rank_; }
  std::string_view transport() const override { return "threads"; }

  Result<void> all_gather(TensorView shard, TensorView full) override {
    check_all_gather(shard, full, rank_, world_size());
    UK_TRY_VOID(meeting_->begin(rank_, {.call = "all_gather",
                                        .data = shard.data,
                                        .size = full.element_count(),
                                        .type = full.type}));
    for (int peer = 0; peer < world_size(); ++peer) {
      const ShardRange range = range_of(full, peer);
      copy(element_at(full, range.begin), meeting_->post_of(peer).data,
           bytes_of(full.type, range.size()));
    }
    return meeting_->finish(rank_);
  }

  Result<void> reduce_scatter(TensorView full, TensorView staging) override {
    check_reduce(full, staging, world_size());
    UK_TRY_VOID(begin_reduce("reduce_scatter", full));
    add_own_range(full);
    return meeting_->finish(rank_);
  }

  Result<void> all_reduce(TensorView full, TensorView staging) override {
    check_reduce(full, staging, world_size());
    UK_TRY_VOID(begin_reduce("all_reduce", full));
    add_own_range(full);
    UK_TRY_VOID(meeting_->between(rank_));
    for (int peer = 0; peer < world_size(); ++peer) {
      const ShardRange range = range_of(full, peer);
      const auto* from = static_cast<const std::byte*>(meeting_->post_of(peer).data);
      copy(element_at(full, range.begin), from + bytes_of(full.type, range.begin),
           bytes_of(full.type, range.size()));
    }
    return meeting_->finish(rank_);
  }

  Result<void> all_gather_values(std::span<const double> own, std::span<double> all) override {
    UK_CHECK(all.size() == own.size() * sources_.size(), "`all` holds every rank's values");
    UK_TRY_VOID(meeting_->begin(rank_, {.call = "all_gather_values",
                                        .data = own.data(),
                                        .size = static_cast<std::int64_t>(own.size()),
                                        .type = DType::f64}));
    for (int peer = 0; peer < world_size(); ++peer)
      copy(all.data() + own.size() * static_cast<std::size_t>(peer), meeting_->post_of(peer).data,
           static_cast<std::int64_t>(own.size_bytes()));
    return meeting_->finish(rank_);
  }

  Result<std::vector<std::string>> all_gather_text(std::string_view own) override {
    UK_TRY_VOID(meeting_->begin(rank_, {.call = "all_gather_text",
                                        .data = own.data(),
                                        .size = static_cast<std::int64_t>(own.size()),
                                        .sizes_differ = true}));
    std::vector<std::string> texts;
    for (int peer = 0; peer < world_size(); ++peer) {
      const Post& post = meeting_->post_of(peer);
      texts.emplace_back(static_cast<const char*>(post.data), static_cast<std::size_t>(post.size));
    }
    UK_TRY_VOID(meeting_->finish(rank_));
    return texts;
  }

  Result<void> barrier() override {
    UK_TRY_VOID(meeting_->begin(rank_, {.call = "barrier"}));
    return meeting_->finish(rank_);
  }

  void set_phase(std::string_view phase) override { meeting_->set_phase(rank_, phase); }
  void set_time_limit(double seconds) override { meeting_->set_time_limit(rank_, seconds); }
  void report_progress(std::string_view doing, std::int64_t done_bytes,
                       std::int64_t total_bytes) override {
    meeting_->report_progress(rank_, doing, done_bytes, total_bytes);
  }
  std::optional<Wait> waiting() const override { return meeting_->waiting(rank_); }
  Result<void> check() override { return meeting_->check(rank_); }
  void abort(const Error& reason) override { meeting_->abort(rank_, reason); }

 private:
  ShardRange range_of(TensorView full, int rank) const {
    return shard_of(full.element_count(), world_size(), rank);
  }

  Result<void> begin_reduce(std::string_view call, TensorView full) {
    return meeting_->begin(
        rank_, {.call = call, .data = full.data, .size = full.element_count(), .type = full.type});
  }

  void add_own_range(TensorView full) {
    const ShardRange own = range_of(full, rank_);
    for (int peer = 0; peer < world_size(); ++peer)
      sources_[static_cast<std::size_t>(peer)] =
          static_cast<const std::byte*>(meeting_->post_of(peer).data) +
          bytes_of(full.type, own.begin);
    sum_in_rank_order(sources_, element_at(full, own.begin), full.type, own.size());
  }

  std::shared_ptr<Meeting> meeting_;
  int rank_;
  std::vector<const void*> sources_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_group(int world_size) {
  UK_CHECK(world_size >= 1, "a group has at least one rank");
  const auto meeting = std::make_shared<Meeting>(world_size);
  std::vector<std::unique_ptr<Communicator>> group;
  for (int rank = 0; rank < world_size; ++rank)
    group.push_back(std::make_unique<ThreadCommunicator>(meeting, rank));
  return group;
}

}  // namespace underkeel::comm
