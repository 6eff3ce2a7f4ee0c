#pragma once
// The known spelling that a mistyped word is closest to.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace underkeel {

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The known spelling nearest to `word`: by edits, else one that `word` begins or that begins
/// `word`. Empty when none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace underkeel
