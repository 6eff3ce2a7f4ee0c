#pragma once
// The sends and receives of one round of a collective, each with the peer it waits for.

#include <cstdint>
#include <vector>

#include <mpi.h>

namespace underkeel::comm {

/// Room for one send and one receive per peer is reserved at the start. The caller holds
/// mpi_mutex() for everything but the questions. Functions return MPI's code.
class Pending {
 public:
  explicit Pending(int world_size);

  int send(MPI_Comm comm, int peer, int tag, const void* data, std::int64_t size_bytes);
  int receive(MPI_Comm comm, int peer, int tag, void* data, std::int64_t size_bytes);
  /// Forgets what is complete and calls `heard_from(peer)` for it.
  template <class HeardFrom>
  int test(HeardFrom heard_from) {
    int done = 0;
    const int code = test_some(done);
    for (int i = 0; i < done; ++i) heard_from(peers_[static_cast<std::size_t>(indices_[i])]);
    forget_complete();
    return code;
  }
  /// Withdraws receives that have not begun. What has begun may still touch its memory.
  void cancel();

  bool empty() const { return requests_.empty(); }
  /// Whether something of `peer` is missing: a receive, or when no receive is missing, a send.
  bool waits_for(int peer) const;

 private:
  int test_some(int& done);
  void forget_complete();

  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;
  std::vector<bool> receives_;
  std::vector<int> indices_;
};

}  // namespace underkeel::comm
