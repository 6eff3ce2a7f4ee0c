#pragma once
// `key=value` words of the command line. Private to spec.

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

/// Values are typed as in a YAML file; an empty one is null.
std::vector<Override> parse_overrides(const std::vector<std::string>& words, Problems& problems);

/// Sets the value at `path`, from element `first` on, making mappings on the way.
void apply_override(const Override& change, std::size_t first, Value& root, Problems& problems);

}  // namespace underkeel::spec
