#pragma once
// Serves the page of a run in progress over HTTP. Knows two paths, `/` and `/report.json`; nothing of a
// request reaches the file system.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace underkeel::report {

struct ServerOptions {
  std::string address = "127.0.0.1";     // IPv4 or IPv6, in figures
  int port = 0;                          // 0: a free one
  std::function<std::string()> page;     // of `/`
  std::function<std::string()> figures;  // of `/report.json`
};

/// Serves from its own thread until it goes. Both functions are called from that thread, one at a time.
class Server {
 public:
  /// Errors: bad_config for an address that is none; io when it is taken or not ours; unsupported when this
  /// build has no server.
  static Result<Server> start(ServerOptions options);
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;
  ~Server();

  int port() const;

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace underkeel::report
