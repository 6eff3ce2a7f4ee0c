#pragma once
// Where tests find files of the source tree and of the build. Compiled in one place, so that the objects of
// tests do not depend on where the tree lies.

#include <string>
#include <string_view>

namespace underkeel::test {

/// A path in the source tree, "tests/goldens"; or, where what was built elsewhere is run, in the copy of its parts
/// that scripts/gpu_check made and UNDERKEEL_SOURCE_DIR names.
std::string in_source(std::string_view path);
/// A path in the build folder, "apps/underkeel".
std::string in_build(std::string_view path);

}  // namespace underkeel::test
