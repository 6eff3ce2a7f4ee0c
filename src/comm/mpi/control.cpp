#include "comm/mpi/control.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace underkeel::comm {

namespace {
constexpr int control_tag = 1;
}

void Control::Message::append(int which, std::string_view part, std::size_t most) {
  const std::size_t begin = static_cast<std::size_t>(std::accumulate(lengths, lengths + which, 0));
  const std::size_t length = std::min({part.size(), most, text.size() - begin});
  std::copy_n(part.begin(), length, text.begin() + static_cast<std::ptrdiff_t>(begin));
  lengths[which] = static_cast<std::int32_t>(length);
}

std::string Control::Message::part(int which) const {
  const int begin = std::accumulate(lengths, lengths + which, 0);
  return {text.data() + begin, static_cast<std::size_t>(lengths[which])};
}

int Control::Message::size() const {
  return static_cast<int>(offsetof(Message, text)) + std::accumulate(lengths, lengths + 3, 0);
}

Control::Control(MPI_Comm comm, int rank, int world_size)
    : comm_(comm),
      rank_(rank),
      world_size_(world_size),
      failure_requests_(static_cast<std::size_t>(world_size), MPI_REQUEST_NULL),
      reports_(static_cast<std::size_t>(world_size)),
      report_requests_(static_cast<std::size_t>(world_size), MPI_REQUEST_NULL) {}

void Control::send_failure(const Error& reason) {
  failure_.is_failure = 1;
  failure_.code = static_cast<std::int32_t>(reason.code);
  failure_.append(0, reason.what, 700);
  failure_.append(1, reason.where, 400);
  failure_.append(2, reason.fix, 400);
  for (int peer = 0; peer < world_size_; ++peer)
    if (peer != rank_)
      MPI_Isend(&failure_, failure_.size(), MPI_BYTE, peer, control_tag, comm_,
                &failure_requests_[static_cast<std::size_t>(peer)]);
}

bool Control::failure_sent() {
  int done = 0;
  return MPI_Testall(world_size_, failure_requests_.data(), &done, MPI_STATUSES_IGNORE) !=
             MPI_SUCCESS ||
         done != 0;
}

void Control::send_progress(std::string_view doing, std::int64_t done_bytes,
                            std::int64_t total_bytes) {
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    const auto index = static_cast<std::size_t>(peer);
    int free = 0;
    if (MPI_Test(&report_requests_[index], &free, MPI_STATUS_IGNORE) != MPI_SUCCESS || free == 0)
      continue;
    Message& report = reports_[index];
    report.done_bytes = done_bytes;
    report.total_bytes = total_bytes;
    report.append(0, doing, 100);
    MPI_Isend(&report, report.size(), MPI_BYTE, peer, control_tag, comm_, &report_requests_[index]);
  }
}

std::optional<ControlNews> Control::receive() {
  int waiting = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, control_tag, comm_, &waiting, &status) != MPI_SUCCESS ||
      waiting == 0)
    return std::nullopt;
  Message message{};
  if (MPI_Recv(&message, sizeof message, MPI_BYTE, status.MPI_SOURCE, control_tag, comm_,
               MPI_STATUS_IGNORE) != MPI_SUCCESS)
    return std::nullopt;
  ControlNews news{.rank = status.MPI_SOURCE};
  if (message.is_failure != 0) {
    news.failure = Error{.code = static_cast<ErrorCode>(message.code),
                         .what = message.part(0),
                         .where = message.part(1),
                         .fix = message.part(2)};
  } else {
    news.doing = message.part(0);
    news.done_bytes = message.done_bytes;
    news.total_bytes = message.total_bytes;
  }
  return news;
}

}  // namespace underkeel::comm
