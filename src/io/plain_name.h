#pragma once
// File names that come out of a file; private to this layer.

#include <cstddef>
#include <string_view>

namespace underkeel::io {

/// A name of a file in the same folder: no separator, no `..`, nothing hidden in it.
inline bool is_plain_file_name(std::string_view name) {
  constexpr std::size_t longest = 255;
  return !name.empty() && name.size() <= longest && name != "." &&
         name.find("..") == std::string_view::npos &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace underkeel::io
