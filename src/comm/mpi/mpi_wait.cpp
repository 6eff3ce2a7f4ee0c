// How a wait over MPI ends: with the data, with a peer's reason, or after a time limit of silence.

#include <fmt/format.h>

#include "comm/failure.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/mpi/runtime.h"

namespace underkeel::comm {

namespace {

// Reports beyond ten a second would tell nobody more.
constexpr double report_interval_s = 0.1;
// A reason fits into a transport's first message; this is for one that is choked.
constexpr double send_reason_limit_s = 0.5;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::optional<Error> MpiCommunicator::failure() const {
  const std::lock_guard lock(state_mutex_);
  return failure_;
}

tl::unexpected<Error> MpiCommunicator::give_up(Error reason, bool tell_others) {
  {
    const std::lock_guard lock(state_mutex_);
    missing_rank_.reset();
    if (failure_) return tl::unexpected(*failure_);
    failure_ = reason;
  }
  note_failure(reason.code);
  if (!tell_others) return tl::unexpected(std::move(reason));
  {
    const std::lock_guard lock(mpi_mutex());
    control_.send_failure(reason);
  }
  const auto begin = Clock::now();
  while (seconds_since(begin) < send_reason_limit_s) {
    {
      const std::lock_guard lock(mpi_mutex());
      if (control_.failure_sent()) break;
    }
    sleep_between_tests(seconds_since(begin));
  }
  return tl::unexpected(std::move(reason));
}

/// With mpi_mutex() held: the others are not told, since MPI itself is in doubt.
tl::unexpected<Error> MpiCommunicator::mpi_failed(int code) {
  const std::string_view call = call_;
  std::string where;
  {
    const std::lock_guard lock(state_mutex_);
    where = fmt::format("{}, {} of rank {} of {}", phase_.empty() ? "start-up" : phase_, call,
                        rank_, world_size_);
  }
  return give_up({.code = ErrorCode::peer_lost,
                  .what = fmt::format("MPI failed: {}", mpi_error_text(code)),
                  .where = std::move(where),
                  .fix = "look for the first error of the other ranks, then at the network"},
                 false);
}

/// With mpi_mutex() held: takes what others have sent about themselves.
void MpiCommunicator::take_news() {
  while (auto news = control_.receive()) {
    if (news->failure) {
      (void)give_up(gave_up(news->rank, *news->failure), false);
      continue;
    }
    const std::lock_guard lock(state_mutex_);
    Peer& peer = peers_[static_cast<std::size_t>(news->rank)];
    peer.last_sign = Clock::now();
    peer.doing = std::move(news->doing);
    peer.done_bytes = news->done_bytes;
    peer.total_bytes = news->done_bytes < news->total_bytes ? news->total_bytes : 0;
  }
}

void MpiCommunicator::show_wait(std::optional<int> missing_rank, Clock::time_point wait_begin) {
  const std::lock_guard lock(state_mutex_);
  missing_rank_ = missing_rank;
  wait_begin_ = wait_begin;
}

/// The error for peers of which nothing was heard for the time limit.
std::optional<Error> MpiCommunicator::overdue(const Pending& pending,
                                              Clock::time_point wait_begin) {
  const std::lock_guard lock(state_mutex_);
  Silence silence(Clock::now(), wait_begin, time_limit_);
  for (int rank = 0; rank < world_size_; ++rank)
    if (rank != rank_ && pending.waits_for(rank))
      silence.add_missing(rank, peers_[static_cast<std::size_t>(rank)].last_sign);
  if (silence.overdue().empty()) return std::nullopt;
  return did_not_arrive({.ranks = silence.overdue(),
                         .rank = rank_,
                         .world_size = world_size_,
                         .phase = phase_,
                         .call = call_,
                         .waited_s = silence.overdue_s()});
}

/// One look at the network.
Result<void> MpiCommunicator::look(Pending& pending, Clock::time_point& last_move) {
  const std::lock_guard lock(mpi_mutex());
  const int code = pending.test([&](int rank) {
    last_move = Clock::now();
    const std::lock_guard state_lock(state_mutex_);
    peers_[static_cast<std::size_t>(rank)].last_sign = last_move;
  });
  if (code != MPI_SUCCESS) return mpi_failed(code);
  take_news();
  return {};
}

Result<void> MpiCommunicator::wait_for(Pending& pending) {
  const auto wait_begin = Clock::now();
  auto last_move = wait_begin;
  const auto end = [&](Error reason, bool tell_others) {
    auto error = give_up(std::move(reason), tell_others);
    const std::lock_guard lock(mpi_mutex());
    for (Pending& round : rounds_) round.cancel();
    return error;
  };
  while (true) {
    if (auto looked = look(pending, last_move); !looked) return end(looked.error(), false);
    // What has come in full is kept, whatever a rank that was faster has told since.
    if (pending.empty()) break;
    if (auto reason = failure()) return end(std::move(*reason), false);
    if (auto reason = overdue(pending, wait_begin)) return end(std::move(*reason), true);
    int missing_rank = 0;
    while (!pending.waits_for(missing_rank)) ++missing_rank;
    show_wait(missing_rank, wait_begin);
    sleep_between_tests(seconds_since(last_move));
  }
  show_wait(std::nullopt, wait_begin);
  return {};
}

void MpiCommunicator::set_phase(std::string_view phase) {
  const std::lock_guard lock(state_mutex_);
  phase_ = phase;
}

void MpiCommunicator::set_time_limit(double seconds) {
  note_time_limit(seconds);
  const std::lock_guard lock(state_mutex_);
  time_limit_ = time_limit_of(seconds);
}

void MpiCommunicator::report_progress(std::string_view doing, std::int64_t done_bytes,
                                      std::int64_t total_bytes) {
  {
    const std::lock_guard lock(state_mutex_);
    const bool last = done_bytes >= total_bytes;
    if (!last && seconds_since(last_report_) < report_interval_s) return;
    last_report_ = Clock::now();
  }
  const std::lock_guard lock(mpi_mutex());
  control_.send_progress(doing, done_bytes, total_bytes);
}

std::optional<Wait> MpiCommunicator::waiting() const {
  const std::lock_guard lock(state_mutex_);
  if (!missing_rank_) return std::nullopt;
  const Peer& peer = peers_[static_cast<std::size_t>(*missing_rank_)];
  Wait wait{.rank = *missing_rank_, .phase = phase_, .elapsed_s = seconds_since(wait_begin_)};
  if (peer.total_bytes > 0) {
    wait.doing = peer.doing;
    wait.done_bytes = peer.done_bytes;
    wait.total_bytes = peer.total_bytes;
  }
  return wait;
}

Result<void> MpiCommunicator::check() {
  {
    const std::lock_guard lock(mpi_mutex());
    take_news();
  }
  if (auto reason = failure()) return tl::unexpected(std::move(*reason));
  return {};
}

void MpiCommunicator::abort(const Error& reason) {
  (void)give_up(reason, true);
}

}  // namespace underkeel::comm
