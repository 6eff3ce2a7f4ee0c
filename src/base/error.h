#pragma once
// What can go wrong for a reason outside this program, and how it is told.

#include <string>

namespace underkeel {

/// Kinds of failure. exit_code() maps each to the process exit status.
enum class ErrorCode {
  bad_config,    // a key, flag or value that the user gave
  bad_file,      // a file's content: truncated, malformed, of another shape
  not_found,     // a file, folder, tensor or key that is not there
  unsupported,   // a request that is understood and cannot be honoured
  does_not_fit,  // the plan needs more of a memory space or a disk than is allowed
  io,            // the operating system refused or failed: disk full, permission, read error
  peer_lost,     // another rank failed, died or did not come to a collective in time
  not_finite,    // loss or gradient norm is no longer a finite number
  stopped,       // a signal ended the run early; it can be resumed
};

/// 0 done; 2 the user's mistake; 3 the world's; 4 the numbers'; 75 stopped early, resumable.
int exit_code(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::bad_config;
  std::string what;   // what happened, with the numbers
  std::string where;  // config key, file and offset, tensor, operation
  std::string fix;    // what to do next; empty when nothing can be said
};

/// The three lines that a user sees: `error:`, `where:`, `try:`. Empty parts are left out.
std::string to_text(const Error& error);

}  // namespace underkeel
