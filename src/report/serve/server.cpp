// The server, by GNU libmicrohttpd: one thread, a fixed piece of memory for each connection
// (docs/decisions/0023).

#include "report/server.h"

#include <cerrno>
#include <cstring>
#include <string_view>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace underkeel::report {

namespace {

// A page asks once in two seconds over one connection; browsers open a few more. What is slower than the
// limit, larger than the memory, or more than the count is turned away.
constexpr unsigned connection_count = 32;
constexpr unsigned idle_limit_s = 15;
constexpr std::size_t connection_memory_bytes = 32 * 1024;

struct Answer {
  unsigned status = MHD_HTTP_OK;
  const char* type = "text/plain; charset=utf-8";
  std::string body;
};

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

bool parse_address(const std::string& text, int port, Address& address) {
  std::memset(&address, 0, sizeof address);
  const auto port_number = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, text.c_str(), &address.v4.sin_addr) == 1) {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = port_number;
    return true;
  }
  if (inet_pton(AF_INET6, text.c_str(), &address.v6.sin6_addr) == 1) {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = port_number;
    return true;
  }
  return false;
}

bool is_loopback(const Address& address) {
  if (address.any.sa_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr) != 0;
  return (ntohl(address.v4.sin_addr.s_addr) >> 24) == 127;
}

}  // namespace

struct Server::State {
  ServerOptions options;
  bool checks_host = true;
  MHD_Daemon* daemon = nullptr;

  ~State() {
    if (daemon != nullptr) MHD_stop_daemon(daemon);
  }

  /// A page of somebody else that a browser has open here may reach us under a name that it has made to
  /// mean this machine; such a name is not one of ours.
  bool is_our_name(const char* host) const {
    if (!checks_host) return true;
    if (host == nullptr) return false;
    std::string_view name(host);
    const std::size_t colon = name.rfind(':');
    if (colon != std::string_view::npos && name.find(']', colon) == std::string_view::npos)
      name = name.substr(0, colon);
    return name == "localhost" || name == options.address || name == "[" + options.address + "]" ||
           name == "127.0.0.1" || name == "[::1]";
  }

  Answer answer(std::string_view method, std::string_view path, const char* host) const {
    if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD)
      return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "only GET and HEAD are answered\n"};
    if (!is_our_name(host))
      return {.status = MHD_HTTP_FORBIDDEN, .body = "this page is served under its address only\n"};
    if (path == "/") return {.type = "text/html; charset=utf-8", .body = options.page()};
    if (path == "/report.json") return {.type = "application/json", .body = options.figures()};
    return {.status = MHD_HTTP_NOT_FOUND, .body = "there are / and /report.json\n"};
  }

  static MHD_Result send(MHD_Connection* connection, const Answer& answer) {
    MHD_Response* response = MHD_create_response_from_buffer(
        answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    const std::pair<const char*, const char*> headers[] = {
        {MHD_HTTP_HEADER_CONTENT_TYPE, answer.type},
        {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"}};
    for (const auto& [name, value] : headers) MHD_add_response_header(response, name, value);
    if (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED)
      MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    const MHD_Result result = MHD_queue_response(connection, answer.status, response);
    MHD_destroy_response(response);
    return result;
  }

  // Paths are compared as they were sent: "%00" is no end of one.
  static std::size_t leave_escaped(void*, MHD_Connection*, char* text) { return std::strlen(text); }

  // Called once a request's header is complete, and answered then: a body is never read.
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path,
                               const char* method, const char*, const char*, std::size_t*, void**) {
    try {
      const char* host =
          MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
      return send(connection, static_cast<const State*>(self)->answer(method, path, host));
    } catch (const std::exception&) {  // no memory: the connection is closed, the others go on
      return MHD_NO;
    }
  }
};

Result<Server> Server::start(ServerOptions options) {
  Address address;
  if (!parse_address(options.address, options.port, address))
    return fail(ErrorCode::bad_config, fmt::format("`{}` is no address", options.address),
                "--listen", "write one in figures, such as 127.0.0.1, ::1 or 0.0.0.0");
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  state->checks_host = is_loopback(address);
  const bool is_v6 = address.any.sa_family == AF_INET6;
  const unsigned flags =
      MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | (is_v6 ? unsigned{MHD_USE_IPv6} : 0U);
  errno = 0;
  state->daemon = MHD_start_daemon(
      flags, static_cast<std::uint16_t>(state->options.port), nullptr, nullptr, &State::on_request,
      state.get(), MHD_OPTION_SOCK_ADDR, &address.any, MHD_OPTION_UNESCAPE_CALLBACK,
      &State::leave_escaped, nullptr, MHD_OPTION_CONNECTION_LIMIT, connection_count,
      MHD_OPTION_CONNECTION_TIMEOUT, idle_limit_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      connection_memory_bytes, MHD_OPTION_END);
  if (state->daemon == nullptr)
    return fail(ErrorCode::io,
                fmt::format("cannot listen on {} port {}: {}", state->options.address,
                            state->options.port, std::strerror(errno)),
                "--port", "give another port, or none: then a free one is taken");
  return Server(std::move(state));
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;
Server::~Server() = default;

int Server::port() const {
  const MHD_DaemonInfo* info = MHD_get_daemon_info(state_->daemon, MHD_DAEMON_INFO_BIND_PORT);
  return info == nullptr ? state_->options.port : info->port;
}

}  // namespace underkeel::report
