// Asks what a request wants of the page's server: lines of method, path, host and the server's address. Nothing but the
// two paths is ever given, and under a foreign name nothing at all.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "report/request.h"

using namespace underkeel::report;

namespace {

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

/// The name alone, or with a port behind it.
bool is_name_with_port(std::string_view host, std::string_view name) {
  return host.starts_with(name) && (host.size() == name.size() || host[name.size()] == ':');
}

bool names_this_machine(std::string_view host, std::string_view address) {
  const std::string bracketed = "[" + std::string(address) + "]";
  for (const std::string_view name :
       {std::string_view("localhost"), std::string_view("127.0.0.1"), std::string_view("[::1]"),
        address, std::string_view(bracketed)})
    if (is_name_with_port(host, name)) return true;
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  Request request;
  request.method = take_line(text);
  request.path = take_line(text);
  const bool has_host = !text.empty();
  const std::string_view host = take_line(text);
  if (has_host) request.host = host;
  const std::string_view address = take_line(text);
  for (const bool checks_host : {false, true}) {
    const Wanted wanted = wanted_of(request, address, checks_host);
    if (wanted != Wanted::page && wanted != Wanted::figures) continue;
    UK_CHECK(request.method == "GET" || request.method == "HEAD", "only these are answered");
    UK_CHECK(request.path == (wanted == Wanted::page ? "/" : "/report.json"), "two paths alone");
    UK_CHECK(!checks_host || (has_host && names_this_machine(host, address)),
             "a foreign name gets nothing");
  }
  return 0;
}
