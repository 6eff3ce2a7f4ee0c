#pragma once
// One rank's end of an MPI group. Every exchange is point to point, so that a wait knows for whom
// it waits, and nonblocking, so that it can end.

#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <mpi.h>

#include "comm/communicator.h"
#include "comm/mpi/control.h"
#include "comm/mpi/pending.h"
#include "comm/silence.h"

namespace underkeel::comm {

class MpiCommunicator final : public Communicator {
 public:
  /// `comm` is this group's own duplicate and stays until MPI ends.
  MpiCommunicator(MPI_Comm comm, int rank, int world_size);

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  int ranks_on_node() const override { return ranks_on_node_; }
  int rank_on_node() const override { return rank_on_node_; }
  std::string_view transport() const override { return "mpi"; }
  void set_place_on_node(int rank, int rank_count) {
    rank_on_node_ = rank;
    ranks_on_node_ = rank_count;
  }

  Result<void> all_gather(TensorView shard, TensorView full) override;
  Result<void> reduce_scatter(TensorView full, TensorView staging) override;
  Result<void> all_reduce(TensorView full, TensorView staging) override;
  Result<void> all_gather_values(std::span<const double> own, std::span<double> all) override;
  Result<std::vector<std::string>> all_gather_text(std::string_view own) override;
  Result<void> barrier() override;

  void set_phase(std::string_view phase) override;
  void set_time_limit(double seconds) override;
  void report_progress(std::string_view doing, std::int64_t done_bytes,
                       std::int64_t total_bytes) override;
  std::optional<Wait> waiting() const override;
  Result<void> check() override;
  void abort(const Error& reason) override;

 private:
  using Clock = std::chrono::steady_clock;

  struct Peer {
    Clock::time_point last_sign;
    std::string doing;
    std::int64_t done_bytes = 0;
    std::int64_t total_bytes = 0;  // 0: no report
  };

  Result<void> begin(std::string_view call);
  Result<void> gather_shards(TensorView full);
  Result<void> reduce_own_range(TensorView full, TensorView staging);
  /// Every rank's `sizes_bytes[peer]` bytes of `own` at its `into[peer]`.
  template <class SizeOf, class Into>
  Result<void> exchange(const void* own, std::int64_t own_bytes, SizeOf size_of, Into into);

  Result<void> send(Pending& pending, int peer, const void* data, std::int64_t size_bytes);
  Result<void> receive(Pending& pending, int peer, void* data, std::int64_t size_bytes);
  Result<void> wait_for(Pending& pending);
  Result<void> look(Pending& pending, Clock::time_point& last_move);
  std::optional<Error> overdue(const Pending& pending, Clock::time_point wait_begin);
  void take_news();
  /// Makes `reason` the group's failure unless there is one, and returns the one that holds.
  tl::unexpected<Error> give_up(Error reason, bool tell_others);
  tl::unexpected<Error> mpi_failed(int code);
  std::optional<Error> failure() const;
  void show_wait(std::optional<int> missing_rank, Clock::time_point wait_begin);

  ShardRange range_of(TensorView full, int rank) const {
    return shard_of(full.element_count(), world_size_, rank);
  }
  int peer_after(int step) const { return (rank_ + step) % world_size_; }
  int peer_before(int step) const { return (rank_ - step + world_size_) % world_size_; }

  MPI_Comm comm_;
  int rank_;
  int world_size_;
  int ranks_on_node_ = 1;
  int rank_on_node_ = 0;
  int tag_ = 0;
  std::string_view call_ = "start-up";  // a literal
  std::array<Pending, 2> rounds_;
  std::vector<const void*> sources_;
  Control control_;  // under mpi_mutex()

  // mpi_mutex() may be held when this one is taken, never the other way round.
  mutable std::mutex state_mutex_;
  std::optional<Error> failure_;
  std::string phase_;
  Clock::duration time_limit_ = time_limit_of(default_time_limit_s);
  std::vector<Peer> peers_;
  std::optional<int> missing_rank_;
  Clock::time_point wait_begin_;
  Clock::time_point last_report_;
};

}  // namespace underkeel::comm
