#include "base/error.h"

#include "base/printable.h"

namespace underkeel {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_config:
    case ErrorCode::bad_file:
    case ErrorCode::not_found:
    case ErrorCode::unsupported:
    case ErrorCode::does_not_fit:
      return 2;
    case ErrorCode::io:
    case ErrorCode::peer_lost:
      return 3;
    case ErrorCode::not_finite:
      return 4;
    case ErrorCode::stopped:
      return 75;
  }
  return 134;
}

std::string to_text(const Error& error) {
  std::string text = "error: " + printable_lines(error.what);
  // Of a plan that does not fit it is lines of our own; elsewhere a place, often a path as it was given.
  if (!error.where.empty())
    text +=
        "\nwhere: " + (error.code == ErrorCode::does_not_fit ? printable_lines(error.where)
                                                             : printable(error.where, any_length));
  if (!error.fix.empty()) text += "\ntry:   " + printable_lines(error.fix);
  return text;
}

}  // namespace underkeel
