#pragma once
// Private to spec; nearest_word() in run_config.h is the public question.

#include <cstddef>
#include <string_view>

namespace underkeel::spec {

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace underkeel::spec
