#pragma once
// Reads the keys of one mapping with their types and bounds, collecting problems instead of
// stopping at the first, and remembers which keys were asked for. Private to spec.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "spec/problems.h"
#include "spec/value.h"

namespace underkeel::spec {

struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t most = INT64_MAX;
};

struct NumberRange {
  double least = 0;
  double most = 1e300;
  bool least_is_allowed = true;
};

/// Whether "8" or "true" in quotes counts as the number or the truth value that it spells.
enum class QuotedValues { refuse, accept };

class Fields {
 public:
  /// `prefix` precedes keys in messages: "zero_optimization.". `mapping` must outlive this.
  Fields(const Value& mapping, std::string prefix, Problems& problems,
         QuotedValues quoted = QuotedValues::refuse)
      : mapping_(mapping), prefix_(std::move(prefix)), problems_(problems), quoted_(quoted) {}

  /// The value as it stands, or null when the key is absent. Marks the key as asked for.
  const Value* take(std::string_view key);
  /// True when the key is there, also when it is null.
  bool has(std::string_view key) const { return mapping_.find(key) != nullptr; }
  bool is_null(std::string_view key) const;

  // nullopt when the key is absent or null, and after a problem.
  std::optional<std::int64_t> integer(std::string_view key, IntegerRange range);
  std::optional<double> number(std::string_view key, NumberRange range);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  /// Texts of a list, or of one text cut at commas and stripped.
  std::optional<std::vector<std::string>> words(std::string_view key);

  void problem(std::string_view key, std::string what, std::string fix = {},
               ErrorCode code = ErrorCode::bad_config);
  /// `prefix` + key, and where it stands: "zero_optimization.stage (line 4)", "... (command line)".
  std::string name(std::string_view key) const;
  struct Refusal {
    std::string what, fix;
    ErrorCode code = ErrorCode::bad_config;
  };
  /// A problem for each key that nothing asked for; of a file with more than 20 the others are counted.
  void refuse_unread(const std::function<Refusal(const Entry&)>& refusal_of);
  /// Keys that nothing asked for, in the file's order.
  std::vector<const Entry*> unread() const;
  /// Keys that were asked for, there or not.
  std::vector<std::string> asked() const { return {asked_.begin(), asked_.end()}; }
  /// Quoted values that were taken for what they spell, one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void wrong_type(std::string_view key, const Value& value, std::string_view wanted);
  bool may_convert(std::string_view key, const Value& value, std::string_view wanted);

  const Value& mapping_;
  std::string prefix_;
  Problems& problems_;
  QuotedValues quoted_;
  std::set<std::string, std::less<>> asked_;
  std::vector<std::string> notes_;
};

/// Cuts at commas and strips blanks; empty parts are left out.
std::vector<std::string> split_words(std::string_view text);
/// "true" or "false" in any case; nullopt for anything else.
std::optional<bool> parse_boolean(std::string_view text);

}  // namespace underkeel::spec
