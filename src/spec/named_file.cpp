#include "spec/named_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/nearest_word.h"
#include "spec/text_file.h"

namespace underkeel::spec {

std::string where_to_look(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code status;
  const fs::path whole = fs::absolute(path, status).lexically_normal();
  const bool names_a_folder = !whole.has_filename();  // ends in a slash
  const fs::path plain = names_a_folder ? whole.parent_path() : whole;
  constexpr std::size_t most_names = 1000;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(plain.parent_path(), status), end;
       !status && entry != end && names.size() < most_names; entry.increment(status))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  if (const std::string nearest = nearest_word(plain.filename().string(), names); !nearest.empty())
    return fmt::format("the nearest that is there: {}", (path.parent_path() / nearest).string());
  if (path.is_relative())
    return fmt::format("paths count from the working folder, {}",
                       fs::current_path(status).string());
  fs::path there = plain.parent_path();
  while (there.has_relative_path() && !fs::is_directory(there, status)) there = there.parent_path();
  return fmt::format("look at the path: of its folders {} is there", there.string());
}

Result<std::string> read_named_file(const std::filesystem::path& file) {
  Result<std::string> text = read_text_file(file);
  if (text || text.error().code != ErrorCode::not_found || !text.error().fix.empty()) return text;
  Error error = std::move(text).error();
  error.fix = where_to_look(file);
  return tl::unexpected(std::move(error));
}

}  // namespace underkeel::spec
