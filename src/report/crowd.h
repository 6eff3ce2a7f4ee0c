#pragma once
// Which connection has to go when too many are open: the one that has been silent longest, first of the address that
// has more than its share. So nobody who only holds connections keeps others out.

#include <cstddef>
#include <list>
#include <optional>
#include <string>

namespace underkeel::report {

struct CrowdLimits {
  std::size_t of_address = 16;
  std::size_t of_all = 48;
};

class Crowd {
 public:
  explicit Crowd(const CrowdLimits& limits = {}) : limits_(limits) {}

  /// A connection over `socket` from `address` is there. Gives the socket of the one that has to go for it.
  std::optional<int> add(int socket, std::string address);
  /// The connection has sent a whole request.
  void has_asked(int socket);
  void remove(int socket);
  std::size_t count() const { return open_.size(); }

 private:
  struct Open {
    int socket;
    std::string address;
    bool is_leaving = false;
  };
  std::list<Open> open_;  // the longest silent first
  CrowdLimits limits_;
};

}  // namespace underkeel::report
