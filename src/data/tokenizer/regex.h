#pragma once
// Regular expressions of tokenizer.json. They are written for Oniguruma with Unicode 16; PCRE2
// runs them here, after a translation (regex_syntax.cpp) that keeps their meaning or refuses.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace underkeel::data {

/// The pattern in PCRE2's syntax with the meaning that it has in Oniguruma (Ruby syntax, UTF-8).
/// Errors: unsupported, naming the construct and its offset, where the two differ and no
/// translation is known.
Result<std::string> translate_regex(std::string_view pattern);

/// `text` as a pattern that matches exactly it.
std::string escape_regex(std::string_view text);

struct Match {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A compiled pattern; immutable, may be used by several threads.
class Regex {
 public:
  /// Errors: unsupported or bad_file with the pattern and the offset.
  static Result<Regex> compile(std::string_view pattern);

  /// Calls `visit` for every match from left to right, without overlap. An empty match right after
  /// another match is left out. `text` is well-formed UTF-8.
  /// Errors: bad_file when the pattern needs more backtracking than is allowed.
  Result<void> for_each_match(std::string_view text, const std::function<void(Match)>& visit) const;

  /// `text` with every match replaced by `content` as it is.
  Result<std::string> replace(std::string_view text, std::string_view content) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

}  // namespace underkeel::data
