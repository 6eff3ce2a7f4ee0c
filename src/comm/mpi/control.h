#pragma once
// Short messages beside the data of a group: why a rank gives up, and how far a slow one is.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include "base/error.h"

namespace underkeel::comm {

/// What came from `rank`: a failure, or else a report of progress.
struct ControlNews {
  int rank = 0;
  std::optional<Error> failure;
  std::string doing;
  std::int64_t done_bytes = 0;
  std::int64_t total_bytes = 0;
};

/// The caller holds mpi_mutex() for every call.
class Control {
 public:
  Control(MPI_Comm comm, int rank, int world_size);

  /// Posts the reason to all other ranks; failure_sent() says when it is on its way.
  void send_failure(const Error& reason);
  bool failure_sent();
  /// Skips peers whose last report has not left yet.
  void send_progress(std::string_view doing, std::int64_t done_bytes, std::int64_t total_bytes);
  std::optional<ControlNews> receive();

 private:
  // Small enough to be sent at once by every transport of Open MPI, whatever the peer is doing.
  static constexpr std::size_t text_bytes = 1500;
  struct Message {
    std::int32_t is_failure;
    std::int32_t code;
    std::int64_t done_bytes;
    std::int64_t total_bytes;
    std::int32_t lengths[3];  // of the texts, which follow each other in `text`
    std::array<char, text_bytes> text;

    void append(int which, std::string_view part, std::size_t most);
    std::string part(int which) const;
    int size() const;
  };

  MPI_Comm comm_;
  int rank_;
  int world_size_;
  Message failure_{};
  std::vector<MPI_Request> failure_requests_;
  std::vector<Message> reports_;  // one per peer, owned by its request
  std::vector<MPI_Request> report_requests_;
};

}  // namespace underkeel::comm
