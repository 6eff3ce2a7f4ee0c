#include "spec/cgroup.h"

#include <algorithm>
#include <vector>

#include "spec/value.h"

namespace underkeel::spec {
namespace {

namespace fs = std::filesystem;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool has_word(std::string_view list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// One of the two versions: where its tree is mounted and which file holds a group's limit.
struct Hierarchy {
  bool is_version_2 = false;
  std::string_view limit_file;
};

/// The group's path inside `hierarchy`, from lines "id:controllers:path".
std::optional<std::string_view> group_path(std::string_view groups, const Hierarchy& hierarchy) {
  for (const std::string_view line : split(groups, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool matches = hierarchy.is_version_2
                             ? line.substr(0, first) == "0" && controllers.empty()
                             : has_word(controllers, "memory");
    if (matches) return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Mount {
  std::string_view root;  // the part of the tree that is mounted
  std::string_view point;
};

/// From lines "id parent device root point options ... - type source super-options".
std::optional<Mount> find_mount(std::string_view mounts, const Hierarchy& hierarchy) {
  for (const std::string_view line : split(mounts, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto before = split(line.substr(0, dash), ' ');
    const auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    const bool matches = hierarchy.is_version_2
                             ? after[0] == "cgroup2"
                             : after[0] == "cgroup" && has_word(after[2], "memory");
    if (matches) return Mount{before[3], before[4]};
  }
  return std::nullopt;
}

/// "max", and the huge number that version 1 shows for "no limit", are none.
std::optional<std::int64_t> parse_limit(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const auto limit = parse_integer(text);
  constexpr std::int64_t no_limit = std::int64_t{1} << 62;
  if (!limit || *limit < 0 || *limit >= no_limit) return std::nullopt;
  return limit;
}

}  // namespace

std::optional<std::int64_t> tightest_memory_limit_bytes(std::string_view groups,
                                                        std::string_view mounts,
                                                        const FileReader& read) {
  std::optional<std::int64_t> tightest;
  for (const Hierarchy& hierarchy :
       {Hierarchy{true, "memory.max"}, Hierarchy{false, "memory.limit_in_bytes"}}) {
    const auto group = group_path(groups, hierarchy);
    const auto mount = find_mount(mounts, hierarchy);
    if (!group || !mount) continue;
    // Inside a container the mount shows a part of the tree only; groups outside it are out of
    // sight, and a path that does not lie in that part is the mount itself.
    std::string_view below = *group;
    const std::string_view root = mount->root == "/" ? std::string_view() : mount->root;
    const bool inside =
        below.starts_with(root) && (below.size() == root.size() || below[root.size()] == '/');
    below = inside ? below.substr(root.size()) : std::string_view();
    const fs::path top(mount->point);
    fs::path folder(std::string(mount->point) + std::string(below));
    if (below.find("/..") != std::string_view::npos) folder = top;
    while (true) {
      if (const auto text = read(folder / hierarchy.limit_file))
        if (const auto limit = parse_limit(*text))
          tightest = std::min(tightest.value_or(*limit), *limit);
      if (folder == top || folder.native().size() <= top.native().size()) break;
      folder = folder.parent_path();
    }
  }
  return tightest;
}

}  // namespace underkeel::spec
