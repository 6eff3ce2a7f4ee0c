#include "report/request.h"

namespace underkeel::report {
namespace {

/// "127.0.0.1:8080" without its port; the colons of "[::1]" are none of a port.
std::string_view without_port(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos;
  return has_port ? host.substr(0, colon) : host;
}

bool is_our_name(std::string_view host, std::string_view address) {
  const std::string_view name = without_port(host);
  const bool is_bracketed = name.size() == address.size() + 2 && name.starts_with('[') &&
                            name.ends_with(']') && name.substr(1, address.size()) == address;
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]" || name == address ||
         is_bracketed;
}

}  // namespace

Wanted wanted_of(const Request& request, std::string_view address, bool checks_host) {
  if (request.method != "GET" && request.method != "HEAD") return Wanted::other_method;
  if (checks_host && !(request.host && is_our_name(*request.host, address)))
    return Wanted::other_name;
  if (request.path == "/") return Wanted::page;
  if (request.path == "/report.json") return Wanted::figures;
  return Wanted::unknown_path;
}

}  // namespace underkeel::report
