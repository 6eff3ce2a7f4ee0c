#include "train/wait_teller.h"

#include <chrono>
#include <utility>

#include "base/log.h"

namespace underkeel::train {

namespace {

constexpr std::chrono::milliseconds between_looks(500);
// Waits shorter than this are part of the work; later lines come at twice the time of the one before.
constexpr double first_line_s = 2;

}  // namespace

bool tells_of_wait(int rank, int missing_rank) {
  return rank == (missing_rank == 0 ? 1 : 0);
}

WaitTeller::WaitTeller(std::vector<const comm::Communicator*> groups)
    : groups_(std::move(groups)), thread_([this] { run(); }) {}

WaitTeller::~WaitTeller() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WaitTeller::run() {
  std::vector<double> next_line_s(groups_.size(), first_line_s);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, between_looks, [this] { return ends_; })) {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const auto wait = groups_[i]->waiting();
      if (!wait || wait->elapsed_s < first_line_s) {
        next_line_s[i] = first_line_s;
      } else if (wait->elapsed_s >= next_line_s[i] &&
                 tells_of_wait(groups_[i]->rank(), wait->rank)) {
        log(LogLevel::info, comm::to_text(*wait));
        next_line_s[i] = 2 * wait->elapsed_s;
      }
    }
  }
}

}  // namespace underkeel::train
