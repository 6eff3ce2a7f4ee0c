#pragma once
// JSON that may stand inside a page's script element; private to this layer.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace underkeel::report {

/// `value` without spaces. No `<`, so that no name can end the element it stands in; bytes that are no UTF-8
/// are replaced; numbers that are not finite are null.
std::string safe_json(const nlohmann::ordered_json& value);

}  // namespace underkeel::report
