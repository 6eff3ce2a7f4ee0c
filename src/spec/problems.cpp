#include "spec/problems.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/printable.h"

namespace underkeel::spec {

void Problems::add(Problem problem) {
  for (std::string* part : {&problem.key, &problem.what, &problem.fix})
    *part = printable(*part, any_length);
  problems_.push_back(std::move(problem));
}

Error Problems::to_error(std::string_view source) const {
  UK_CHECK(!problems_.empty(), "an error needs a problem");
  if (problems_.size() == 1) {
    const Problem& only = problems_.front();
    return {only.code, only.what,
            only.key.empty() ? std::string(source) : fmt::format("{}, {}", source, only.key),
            only.fix};
  }
  const bool same_code = std::all_of(problems_.begin(), problems_.end(), [&](const Problem& p) {
    return p.code == problems_.front().code;
  });
  Error error{same_code ? problems_.front().code : ErrorCode::bad_config,
              fmt::format("{} problems", problems_.size()),
              std::string(source),
              {}};
  for (const Problem& problem : problems_) {
    error.what += "\n  ";
    if (!problem.key.empty()) error.what += problem.key + ": ";
    error.what += problem.what;
    if (!problem.fix.empty()) error.what += "; " + problem.fix;
  }
  return error;
}

}  // namespace underkeel::spec
