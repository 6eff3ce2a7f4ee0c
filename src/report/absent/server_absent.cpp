// Stands in for the server in a build without it.

#include "report/server.h"

namespace underkeel::report {

struct Server::State {};

Result<Server> Server::start(ServerOptions) {
  return fail(ErrorCode::unsupported, "this build has no server", "--watch",
              "build with -DUNDERKEEL_WATCH=ON, or make the page again with `underkeel report`");
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;
Server::~Server() = default;

int Server::port() const {
  return 0;
}

}  // namespace underkeel::report
