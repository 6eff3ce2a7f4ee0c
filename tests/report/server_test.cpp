// The server against a browser's requests and hostile ones, over a real socket.

#include "report/server.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/value_of.h"

namespace underkeel::report {
namespace {

using test::value_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// What the server says to these bytes, until it closes or is silent for long.
std::string answer_to(int port, std::string_view request, std::int64_t patience_ms) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  const timeval patience{.tv_sec = patience_ms / 1000, .tv_usec = patience_ms % 1000 * 1000};
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::string answer;
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    while (!request.empty()) {
      const ssize_t sent = ::send(descriptor, request.data(), request.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;  // it has closed already
      request.remove_prefix(static_cast<std::size_t>(sent));
    }
    char buffer[4096];
    for (ssize_t size = 0; (size = ::recv(descriptor, buffer, sizeof buffer, 0)) > 0;)
      answer.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(descriptor);
  return answer;
}

std::string get(std::string_view path, std::string_view host = "127.0.0.1") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", path, host);
}

class Served : public ::testing::Test {
 protected:
  std::atomic<int> asked_ = 0;
  Server server_ = value_of(Server::start({.page = [] { return std::string("<p>a page</p>"); },
                                           .figures =
                                               [this] {
                                                 ++asked_;
                                                 return std::string("{\"run\":null}");
                                               }}));
  std::string answer(std::string_view request) {
    return answer_to(server_.port(), request, 30'000);
  }
  /// For what is no whole request, so that no answer may come.
  void send(std::string_view request) { answer_to(server_.port(), request, 100); }
};

TEST_F(Served, HasAPageAndItsFigures) {
  const std::string page = answer(get("/"));
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(page, HasSubstr("text/html"));
  EXPECT_THAT(page, HasSubstr("X-Content-Type-Options: nosniff"));
  EXPECT_THAT(page, HasSubstr("<p>a page</p>"));

  const std::string figures = answer(get("/report.json?x=1", "localhost:1234"));
  EXPECT_THAT(figures, HasSubstr("application/json"));
  EXPECT_THAT(figures, HasSubstr("{\"run\":null}"));
  EXPECT_EQ(asked_, 1);
}

TEST_F(Served, HeadHasNoBody) {
  const std::string head =
      answer("HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");

  EXPECT_THAT(head, StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(head.find("a page"), std::string::npos);
}

TEST_F(Served, NoPathButTwoIsKnown) {
  for (const char* path : {"/events.jsonl", "/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "//",
                           "/report.json/", "/%00", "/report.json%00.html", "/./report.json", "*",
                           "/index.html", "/%2e%2e/", "file:///etc/passwd"})
    EXPECT_THAT(answer(get(path)), ::testing::Not(HasSubstr(" 200 "))) << path;
  EXPECT_EQ(asked_, 0);
}

TEST_F(Served, OtherNamesOfThisMachineAreRefused) {
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80",
                           "", "[::1].evil.example", "0.0.0.0"})
    EXPECT_THAT(answer(get("/", host)), StartsWith("HTTP/1.1 403")) << host;
  EXPECT_THAT(answer("GET / HTTP/1.0\r\n\r\n"), HasSubstr(" 403 "));
}

TEST_F(Served, OtherMethodsAreRefusedBeforeTheirBody) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "X"}) {
    const std::string said = answer(fmt::format(
        "{} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\nabc", method));
    EXPECT_THAT(said, ::testing::Not(HasSubstr(" 200 "))) << method;
  }
  EXPECT_THAT(answer("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"),
              HasSubstr(" 405 "));
}

TEST_F(Served, MalformedRequestsLeaveItServing) {
  const std::string many = [] {
    std::string text = "GET / HTTP/1.1\r\nHost: localhost\r\n";
    for (int i = 0; i < 20'000; ++i) text += fmt::format("X-{}: {}\r\n", i, i);
    return text + "\r\n";
  }();
  const std::string requests[] = {
      "",
      "\r\n\r\n\r\n",
      std::string(100'000, '\0'),
      std::string(100'000, 'A'),
      "GET",
      "GET /",
      "GET / HTTP/9.9\r\n\r\n",
      "GET  /  HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\nHost: localhost\n\n",
      "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
      "GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
      "GET / HTTP/1.1\r\n: x\r\n\r\n",
      "GET /" + std::string(200'000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: " + std::string(200'000, 'h') + "\r\n\r\n",
      many,
      "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
      "chunked\r\n\r\nffffffffffffffff\r\nabc",
      "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: "
      "chunked\r\n\r\n0\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=-1,0-,5-2\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"};

  for (const std::string& request : requests) {
    send(request);
    ASSERT_THAT(answer(get("/")), HasSubstr("a page")) << request.substr(0, 60);
  }
}

TEST_F(Served, RandomBytesLeaveItServing) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 100; ++i) {
    std::string request = get(i % 2 == 0 ? "/" : "/report.json");
    for (int change = 0; change < 1 + i % 8; ++change) {
      const std::size_t at = random() % request.size();
      if (random() % 3 == 0) {
        request.erase(at, random() % 8);
      } else if (random() % 2 == 0) {
        request.insert(at, std::string(random() % 40, static_cast<char>(random())));
      } else {
        request[at] = static_cast<char>(random());
      }
      if (request.empty()) request = "\r\n";
    }
    send(request);
  }

  EXPECT_THAT(answer(get("/")), HasSubstr("a page"));
}

// Many more than the server holds, from the address of the one that asks, from another, and from several.
TEST_F(Served, SilentConnectionsDoNotKeepOthersOut) {
  for (const int address_count : {1, 2, 16}) {
    std::vector<int> silent;
    for (int i = 0; i < 200; ++i) {
      silent.push_back(::socket(AF_INET, SOCK_STREAM, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      const std::string from = fmt::format("127.0.0.{}", 1 + i % address_count);
      inet_pton(AF_INET, from.c_str(), &address.sin_addr);
      ASSERT_EQ(::bind(silent.back(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
      inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
      address.sin_port = htons(static_cast<std::uint16_t>(server_.port()));
      ASSERT_EQ(::connect(silent.back(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
      if (i % 3 == 0) ::send(silent.back(), "GET / HT", 8, MSG_NOSIGNAL);
    }

    // While the library still counts those that were just told to go, it may turn one away; a page asks again.
    std::string page = answer(get("/"));
    for (int again = 0; again < 100 && page.empty(); ++again) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      page = answer(get("/"));
    }
    EXPECT_THAT(page, HasSubstr("a page")) << address_count;
    for (const int descriptor : silent) ::close(descriptor);
  }
}

TEST(Server, ListensOnThisMachineAloneUnlessTold) {
  const Server server = value_of(Server::start(
      {.page = [] { return std::string(); }, .figures = [] { return std::string(); }}));
  // 127.0.0.2 is this machine too, and another address: a socket on all addresses would answer.
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(server.port()));
  inet_pton(AF_INET, "127.0.0.2", &address.sin_addr);

  EXPECT_NE(::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(descriptor);
}

TEST(Server, AddressesAndPortsThatCannotBeAreErrors) {
  const auto none = Server::start({.address = "example.org"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what, "`example.org` is no address");

  const Server first = value_of(Server::start(
      {.page = [] { return std::string(); }, .figures = [] { return std::string(); }}));
  const auto taken = Server::start({.port = first.port()});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::io);
  EXPECT_THAT(taken.error().what, HasSubstr("in use"));
}

}  // namespace
}  // namespace underkeel::report
