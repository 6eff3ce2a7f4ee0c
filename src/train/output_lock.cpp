#include "train/output_lock.h"

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace underkeel::train {

namespace {
constexpr auto longest_wait = std::chrono::seconds(5);
constexpr auto between_tries = std::chrono::milliseconds(50);
}  // namespace

Result<OutputLock> OutputLock::take(const std::string& output) {
  OutputLock lock(::open(output.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.descriptor_ < 0) return lock;  // the first write into the folder says what is wrong
  const auto until = std::chrono::steady_clock::now() + longest_wait;
  while (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return lock;
    if (std::chrono::steady_clock::now() > until)
      return fail(ErrorCode::bad_config, "another run writes into this output folder", output,
                  "wait for it to end, or choose another output_dir");
    std::this_thread::sleep_for(between_tries);
  }
  return lock;
}

OutputLock::OutputLock(OutputLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputLock::~OutputLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace underkeel::train
