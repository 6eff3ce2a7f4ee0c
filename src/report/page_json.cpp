#include "report/page_json.h"

#include <nlohmann/json.hpp>

namespace underkeel::report {

std::string safe_json(const nlohmann::ordered_json& value) {
  const std::string plain =
      value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string safe;
  safe.reserve(plain.size());
  for (const char c : plain) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace underkeel::report
