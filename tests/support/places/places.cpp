#include "support/places.h"

#include <cstdlib>

namespace underkeel::test {

std::string in_source(std::string_view path) {
  const char* const copy = std::getenv("UNDERKEEL_SOURCE_DIR");
  return std::string(copy != nullptr ? copy : UNDERKEEL_SOURCE_DIR).append("/").append(path);
}

std::string in_build(std::string_view path) {
  return std::string(UNDERKEEL_BINARY_DIR).append("/").append(path);
}

}  // namespace underkeel::test
