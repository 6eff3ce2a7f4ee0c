#include "spec/run_overrides.h"

#include <algorithm>

#include <fmt/format.h>

#include "spec/yaml_reader.h"

namespace underkeel::spec {
namespace {

void mark_overridden(Value& value) {
  value.overridden = true;
  value.place = {};
  for (Value& item : value.items) mark_overridden(item);
  for (Entry& entry : value.entries) {
    entry.key_place = {};
    mark_overridden(entry.value);
  }
}

bool is_dotted(std::string_view key) {
  return key.find('.') != std::string_view::npos && key.front() != '.' && key.back() != '.' &&
         key.find("..") == std::string_view::npos;
}

std::vector<std::string> path_of(std::string_view key) {
  std::vector<std::string> path;
  std::size_t start = 0;
  while (start <= key.size()) {
    const std::size_t dot = std::min(key.find('.', start), key.size());
    path.emplace_back(key.substr(start, dot - start));
    start = dot + 1;
  }
  return path;
}

}  // namespace

std::vector<Override> parse_overrides(const std::vector<std::string>& words, Problems& problems) {
  std::vector<Override> overrides;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == std::string::npos ||
        (key.find('.') == std::string::npos ? key.empty() : !is_dotted(key))) {
      problems.add(
          {.key = fmt::format("`{}`", word), .what = "key=value is wanted on the command line"});
      continue;
    }
    if (equals + 1 == word.size()) {
      problems.add({.key = fmt::format("`{}`", word),
                    .what = "a value is missing behind `=`",
                    .fix = "an empty shell variable? null stands for none"});
      continue;
    }
    // A text that starts like YAML's punctuation still is one value: write it in a list.
    auto value = read_yaml("[" + word.substr(equals + 1) + "]", "the command line");
    if (!value || value->items.size() > 1) value = read_yaml(word.substr(equals + 1), "");
    if (!value) {
      problems.add({.key = fmt::format("`{}`", word), .what = value.error().what});
      continue;
    }
    Override change;
    if (value->kind == ValueKind::list && value->items.size() == 1)
      change.value = std::move(value->items.front());
    else if (!(value->kind == ValueKind::list && value->items.empty()) &&
             !(value->kind == ValueKind::mapping && value->entries.empty()))
      change.value = std::move(*value);
    change.path = path_of(key);
    mark_overridden(change.value);
    overrides.push_back(std::move(change));
  }
  return overrides;
}

std::vector<Override> take_dotted_keys(Value& root) {
  std::vector<Override> changes;
  for (const Entry& entry : root.entries)
    if (is_dotted(entry.key)) changes.push_back({path_of(entry.key), entry.value});
  std::erase_if(root.entries, [](const Entry& entry) { return is_dotted(entry.key); });
  return changes;
}

void apply_override(const Override& change, std::size_t first, Value& root, Problems& problems) {
  Value* at = &root;
  std::string name;
  for (std::size_t i = first; i < change.path.size(); ++i) {
    const std::string& key = change.path[i];
    if (at->kind == ValueKind::null) {
      *at = Value{};
      at->kind = ValueKind::mapping;
      at->overridden = true;
    }
    if (at->kind != ValueKind::mapping) {
      problems.add({.key = name + (change.value.overridden ? " on the command line" : ""),
                    .what = fmt::format("{} has no keys below it", shown(*at))});
      return;
    }
    name += (name.empty() ? "" : ".") + key;
    const auto entry = std::find_if(at->entries.begin(), at->entries.end(),
                                    [&](const Entry& candidate) { return candidate.key == key; });
    if (entry != at->entries.end()) {
      at = &entry->value;
      if (i + 1 == change.path.size()) entry->key_place = {};
    } else {
      at->entries.push_back({key, {}, Value{}});
      at = &at->entries.back().value;
    }
  }
  *at = change.value;
}

}  // namespace underkeel::spec
