#pragma once
// What a request asks of the page's server: all that is read of one, apart from the library that cuts it into parts.

#include <optional>
#include <string_view>

namespace underkeel::report {

struct Request {
  std::string_view method;
  std::string_view path;                 // as it was sent, without the query
  std::optional<std::string_view> host;  // of its Host line, where it has one
};

enum class Wanted { page, figures, unknown_path, other_method, other_name };

/// `checks_host`: a page of somebody else that a browser has open here may reach us under a name that it has made to
/// mean this machine. Then only names of loopback and `address` are ours.
Wanted wanted_of(const Request& request, std::string_view address, bool checks_host);

}  // namespace underkeel::report
