#include "comm/mpi/pending.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace underkeel::comm {

namespace {
int count_of(std::int64_t size_bytes) {
  UK_CHECK(size_bytes >= 0 && size_bytes <= std::numeric_limits<int>::max(),
           "a message is counted in an int");
  return static_cast<int>(size_bytes);
}
}  // namespace

Pending::Pending(int world_size) {
  const std::size_t most = 2 * static_cast<std::size_t>(world_size);
  requests_.reserve(most);
  peers_.reserve(most);
  receives_.reserve(most);
  indices_.resize(most);
}

int Pending::send(MPI_Comm comm, int peer, int tag, const void* data, std::int64_t size_bytes) {
  UK_CHECK(requests_.size() < indices_.size(), "one send and one receive per peer");
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Isend(data, count_of(size_bytes), MPI_BYTE, peer, tag, comm, &request);
  requests_.push_back(request);
  peers_.push_back(peer);
  receives_.push_back(false);
  return code;
}

int Pending::receive(MPI_Comm comm, int peer, int tag, void* data, std::int64_t size_bytes) {
  UK_CHECK(requests_.size() < indices_.size(), "one send and one receive per peer");
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Irecv(data, count_of(size_bytes), MPI_BYTE, peer, tag, comm, &request);
  requests_.push_back(request);
  peers_.push_back(peer);
  receives_.push_back(true);
  return code;
}

int Pending::test_some(int& done) {
  if (requests_.empty()) return MPI_SUCCESS;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &done,
                                indices_.data(), MPI_STATUSES_IGNORE);
  if (done == MPI_UNDEFINED) done = 0;
  return code;
}

void Pending::forget_complete() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    peers_[kept] = peers_[i];
    receives_[kept] = receives_[i];
    ++kept;
  }
  requests_.resize(kept);
  peers_.resize(kept);
  receives_.resize(kept);
}

void Pending::cancel() {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (receives_[i]) MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
  requests_.clear();
  peers_.clear();
  receives_.clear();
}

bool Pending::waits_for(int peer) const {
  const bool any_receive = std::find(receives_.begin(), receives_.end(), true) != receives_.end();
  for (std::size_t i = 0; i < peers_.size(); ++i)
    if (peers_[i] == peer && receives_[i] == any_receive) return true;
  return false;
}

}  // namespace underkeel::comm
