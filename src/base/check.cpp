#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace underkeel {

void check_failed(const char* file, int line, const char* condition, std::string_view message) {
  std::fprintf(stderr, "internal error: %.*s\nwhere: %s:%d, %s\ntry:   report this, it is a bug\n",
               static_cast<int>(message.size()), message.data(), file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace underkeel
