#include "comm/fault.h"

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

namespace underkeel::comm {

namespace {

constexpr std::string_view variable = "UNDERKEEL_FAULT";

tl::unexpected<Error> cannot_read(std::string_view word) {
  return fail(ErrorCode::bad_config, fmt::format("cannot read `{}`", word), std::string(variable),
              "write rank=R phase=NAME [step=N], then delay=SECONDSs, kill, fail, or layer=L "
              "doublings=N");
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Result<Fault> parse_fault(std::string_view text) {
  Fault fault{.rank = -1};
  bool has_action = false;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t space = rest.find(' ');
    const std::string_view word = rest.substr(0, space);
    rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : word.substr(equals + 1);
    if (key == "rank") {
      if (!read_number(value, fault.rank)) return cannot_read(word);
    } else if (key == "phase") {
      fault.phase = value;
    } else if (key == "step") {
      if (!read_number(value, fault.step.emplace())) return cannot_read(word);
    } else if (key == "delay") {
      if (value.ends_with('s')) value.remove_suffix(1);
      if (!read_number(value, fault.delay_s)) return cannot_read(word);
      fault.action = Fault::Action::delay;
      has_action = true;
    } else if (key == "layer") {
      if (!read_number(value, fault.layer)) return cannot_read(word);
    } else if (key == "doublings") {
      if (!read_number(value, fault.doublings)) return cannot_read(word);
      fault.action = Fault::Action::distort;
      has_action = true;
    } else if (word == "kill" || word == "fail") {
      fault.action = word == "kill" ? Fault::Action::kill : Fault::Action::fail;
      has_action = true;
    } else {
      return cannot_read(word);
    }
  }
  if (fault.rank < 0 || fault.phase.empty() || !has_action) return cannot_read(text);
  if (fault.action == Fault::Action::distort && fault.layer < 0) return cannot_read(text);
  return fault;
}

Result<void> strike(const Fault& fault, int rank, std::string_view phase, std::int64_t step) {
  if (fault.rank != rank || fault.phase != phase || fault.step.value_or(step) != step) return {};
  switch (fault.action) {
    case Fault::Action::delay:
      std::this_thread::sleep_for(std::chrono::duration<double>(fault.delay_s));
      return {};
    case Fault::Action::kill:
      (void)std::raise(SIGKILL);
      return {};
    case Fault::Action::distort:
      return {};  // forward_distortion() says what to do
    case Fault::Action::fail:
      break;
  }
  return fail(ErrorCode::io, fmt::format("fault injected on rank {}", rank),
              fmt::format("{} at step {}", phase, step), "");
}

namespace {

/// Null when the variable is not set.
const Result<Fault>* fault_of_environment() {
  static const char* const text = std::getenv(variable.data());
  if (text == nullptr || *text == '\0') return nullptr;
  static const Result<Fault> fault = parse_fault(text);
  return &fault;
}

}  // namespace

Result<void> fault_point(int rank, std::string_view phase, std::int64_t step) {
  const Result<Fault>* fault = fault_of_environment();
  if (fault == nullptr) return {};
  if (!*fault) return tl::unexpected(fault->error());
  return strike(**fault, rank, phase, step);
}

std::optional<Distortion> distortion_of(const Fault& fault, int rank, std::int64_t step) {
  if (fault.action != Fault::Action::distort || fault.rank != rank || fault.phase != "forward" ||
      step < fault.step.value_or(step))
    return std::nullopt;
  return Distortion{.layer = fault.layer, .doublings = fault.doublings};
}

Result<std::optional<Distortion>> forward_distortion(int rank, std::int64_t step) {
  const Result<Fault>* fault = fault_of_environment();
  if (fault == nullptr) return std::nullopt;
  if (!*fault) return tl::unexpected(fault->error());
  return distortion_of(**fault, rank, step);
}

}  // namespace underkeel::comm
