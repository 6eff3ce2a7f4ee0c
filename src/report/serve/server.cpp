// The server, by GNU libmicrohttpd: one thread, a fixed piece of memory for each connection
// (docs/decisions/0023).

#include "report/server.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "report/crowd.h"
#include "report/request.h"

namespace underkeel::report {

namespace {

// A page asks once in two seconds over one connection; browsers open a few more. What is slower than the
// limit or larger than the memory is turned away; where more come than CrowdLimits says, the longest silent one goes.
// The library's own counts are above those: they hold what comes before the one that goes is gone.
constexpr unsigned connection_count = 64;
constexpr unsigned connections_of_address = 32;
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
  Crowd crowd;
  MHD_Daemon* daemon = nullptr;

  ~State() {
    if (daemon != nullptr) MHD_stop_daemon(daemon);
  }

  Answer answer(const Request& request) const {
    switch (wanted_of(request, options.address, checks_host)) {
      case Wanted::page:
        return {.type = "text/html; charset=utf-8", .body = options.page()};
      case Wanted::figures:
        return {.type = "application/json", .body = options.figures()};
      case Wanted::other_method:
        return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "only GET and HEAD are answered\n"};
      case Wanted::other_name:
        return {.status = MHD_HTTP_FORBIDDEN,
                .body = "this page is served under its address only\n"};
      case Wanted::unknown_path:
        break;
    }
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

  static std::optional<int> socket_of(MHD_Connection* connection) {
    const MHD_ConnectionInfo* info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == nullptr ? std::nullopt : std::optional(static_cast<int>(info->connect_fd));
  }

  static std::string address_of(MHD_Connection* connection) {
    const MHD_ConnectionInfo* info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info == nullptr || info->client_addr == nullptr) return {};
    char text[INET6_ADDRSTRLEN] = {};
    Address address;
    const bool is_v6 = info->client_addr->sa_family == AF_INET6;
    std::memcpy(&address, info->client_addr, is_v6 ? sizeof address.v6 : sizeof address.v4);
    const void* figures = is_v6 ? static_cast<const void*>(&address.v6.sin6_addr)
                                : static_cast<const void*>(&address.v4.sin_addr);
    inet_ntop(is_v6 ? AF_INET6 : AF_INET, figures, text, sizeof text);
    return text;
  }

  // Called from the server's thread, as all that is here.
  static void on_connection(void* self, MHD_Connection* connection, void**,
                            MHD_ConnectionNotificationCode code) {
    auto& crowd = static_cast<State*>(self)->crowd;
    const auto socket = socket_of(connection);
    if (!socket) return;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) return crowd.remove(*socket);
    try {
      // The library sees the end of what is sent, and closes the connection.
      if (const auto leaving = crowd.add(*socket, address_of(connection)))
        ::shutdown(*leaving, SHUT_RDWR);
    } catch (const std::exception&) {  // no memory to count one more: it goes
      ::shutdown(*socket, SHUT_RDWR);
    }
  }

  // Paths are compared as they were sent: "%00" is no end of one.
  static std::size_t leave_escaped(void*, MHD_Connection*, char* text) { return std::strlen(text); }

  // Called once a request's header is complete, and answered then: a body is never read.
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path,
                               const char* method, const char*, const char*, std::size_t*, void**) {
    try {
      auto& state = *static_cast<State*>(self);
      if (const auto socket = socket_of(connection)) state.crowd.has_asked(*socket);
      const char* host =
          MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
      Request request{.method = method, .path = path};
      if (host != nullptr) request.host = host;
      return send(connection, state.answer(request));
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
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, connections_of_address, MHD_OPTION_NOTIFY_CONNECTION,
      &State::on_connection, state.get(), MHD_OPTION_CONNECTION_TIMEOUT, idle_limit_s,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory_bytes, MHD_OPTION_END);
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
