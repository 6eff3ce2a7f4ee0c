#pragma once
// Collects everything that is wrong in one file, so that a user sees all of it at once. For
// spec and doctor.

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace underkeel::spec {

struct Problem {
  ErrorCode code = ErrorCode::bad_config;
  std::string key;   // where: a key, with its mapping, or a line
  std::string what;  // one sentence
  std::string fix;   // may be empty
};

class Problems {
 public:
  /// Words of the file that it quotes are made printable, so that it stays one line.
  void add(Problem problem);
  bool empty() const { return problems_.empty(); }
  const std::vector<Problem>& all() const { return problems_; }

  /// One error for all: the problem itself when there is one, else a line for each.
  Error to_error(std::string_view source) const;

 private:
  std::vector<Problem> problems_;
};

}  // namespace underkeel::spec
