#include "report/crowd.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace underkeel::report {

std::optional<int> Crowd::add(int socket, std::string address) {
  open_.push_back({.socket = socket, .address = std::move(address)});
  const Open& newest = open_.back();
  std::size_t of_address = 0, of_all = 0;
  for (const Open& one : open_) {
    if (one.is_leaving) continue;
    ++of_all;
    if (one.address == newest.address) ++of_address;
  }
  const bool address_is_over = of_address > limits_.of_address;
  if (!address_is_over && of_all <= limits_.of_all) return std::nullopt;
  for (Open& one : open_) {
    if (one.is_leaving || (address_is_over && one.address != newest.address)) continue;
    one.is_leaving = true;
    return one.socket;
  }
  return std::nullopt;  // not reached: the newest is of its own address
}

void Crowd::has_asked(int socket) {
  const auto at = std::find_if(open_.begin(), open_.end(),
                               [&](const Open& one) { return one.socket == socket; });
  if (at != open_.end()) open_.splice(open_.end(), open_, at);
}

void Crowd::remove(int socket) {
  open_.remove_if([&](const Open& one) { return one.socket == socket; });
}

}  // namespace underkeel::report
