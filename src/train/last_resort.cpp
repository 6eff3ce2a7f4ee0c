#include "train/last_resort.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace underkeel::train {

void end_process(const Error& error) {
  std::fprintf(stderr, "%s\n", to_text(error).c_str());
  std::fflush(nullptr);
  std::_Exit(exit_code(error.code));
}

void end_process_after(double grace_s, const Error& error) {
  static std::once_flag once;
  std::call_once(once, [&] {
    std::thread([grace_s, error] {
      std::this_thread::sleep_for(std::chrono::duration<double>(grace_s));
      end_process(error);
    }).detach();
  });
}

}  // namespace underkeel::train
