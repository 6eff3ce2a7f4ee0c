#include "data/csv_record.h"

#include <algorithm>
#include <array>
#include <utility>

namespace underkeel::data {
namespace {

// What pandas.read_csv makes NaN of.
constexpr std::array<std::string_view, 19> missing = {
    "",     "#N/A", "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A",  "NA",       "NULL", "NaN",     "None",     "n/a",  "nan",  "null"};

template <class Take>
void cut(std::string_view text, Take take) {
  std::string value;
  bool quoted = false;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at == text.size() || (text[at] == ',' && !quoted)) {
      take(std::exchange(value, {}));
    } else if (text[at] != '"') {
      value += text[at];
    } else if (quoted && at + 1 < text.size() && text[at + 1] == '"') {
      value += '"';
      ++at;
    } else if (quoted || value.empty()) {
      quoted = !quoted;
    } else {
      value += '"';  // a mark inside a value that does not begin with one
    }
  }
}

}  // namespace

std::vector<std::optional<std::string>> csv_values(std::string_view text) {
  std::vector<std::optional<std::string>> values;
  cut(text, [&](std::string value) {
    if (std::find(missing.begin(), missing.end(), value) != missing.end())
      values.emplace_back();
    else
      values.emplace_back(std::move(value));
  });
  return values;
}

std::vector<std::string> csv_names(std::string_view text) {
  std::vector<std::string> names;
  cut(text, [&](std::string name) {
    std::string free = name;
    for (int copy = 1; std::find(names.begin(), names.end(), free) != names.end(); ++copy)
      free = name + "." + std::to_string(copy);
    names.push_back(std::move(free));
  });
  return names;
}

}  // namespace underkeel::data
