#pragma once
// `key=value` words of the command line, and keys of the file with dots. Private to spec.

#include <string>
#include <string_view>
#include <vector>

#include "spec/problems.h"
#include "spec/value.h"

namespace underkeel::spec {

struct Override {
  std::vector<std::string> path;  // cut at dots
  Value value;
};

/// Takes the keys of a run file that have dots (`underkeel.recompute: cheap`): they reach into mappings as words of
/// the command line do, which hold over them.
std::vector<Override> take_dotted_keys(Value& root);

/// Values are typed as in a YAML file; an empty one is null.
std::vector<Override> parse_overrides(const std::vector<std::string>& words, Problems& problems);

/// Sets the value at `path`, from element `first` on, making mappings on the way.
void apply_override(const Override& change, std::size_t first, Value& root, Problems& problems);

}  // namespace underkeel::spec
