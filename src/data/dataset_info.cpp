#include "data/dataset_info.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/byte_order_mark.h"
#include "base/nearest_word.h"
#include "base/printable.h"
#include "base/units.h"
#include "data/json_field.h"
#include "io/strict_json.h"

namespace underkeel::data {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t largest_info_bytes = 64 * mebibyte;

const std::vector<std::string> entry_keys = {
    "file_name",  "formatting", "columns",    "tags",           "num_samples",
    "ranking",    "subset",     "split",      "folder",         "hf_hub_url",
    "ms_hub_url", "om_hub_url", "script_url", "cloud_file_name"};
const std::vector<std::string> column_keys = {
    "prompt", "query",  "response", "history", "messages", "system", "tools",
    "images", "videos", "audios",   "chosen",  "rejected", "kto_tag"};
const std::vector<std::string> tag_keys = {"role_tag",      "content_tag",     "user_tag",
                                           "assistant_tag", "observation_tag", "function_tag",
                                           "system_tag"};
const std::vector<std::string> extensions = {".txt", ".json", ".jsonl", ".csv"};

bool is_in(std::string_view key, const std::vector<std::string>& known) {
  return std::find(known.begin(), known.end(), key) != known.end();
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// What a key that is not `known` may be meant for: another spelling, or another place.
std::string meant_by(const std::string& key, const std::vector<std::string>& known) {
  if (const std::string nearest = nearest_word(lower_case(key), known); !nearest.empty())
    return fmt::format("nearest is `{}`", nearest);
  for (const auto& [place, keys] :
       {std::pair{"`columns`", &column_keys}, std::pair{"`tags`", &tag_keys},
        std::pair{"the entry itself", &entry_keys}})
    if (is_in(key, *keys)) return fmt::format("which belongs into {}", place);
  return {};
}

/// "a, `b, c`": a name that is not one plain word stands in backticks, so that a list of them can be taken apart.
std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    const bool is_plain =
        !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
          return c >= 0x80 || std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/';
        });
    text += text.empty() ? "" : ", ";
    text += is_plain ? name : fmt::format("`{}`", name);
  }
  return text;
}

class NoVisitor final : public io::JsonVisitor {
 public:
  Result<void> begin_object(io::JsonPath) override { return {}; }
  Result<void> begin_array(io::JsonPath) override { return {}; }
  Result<void> end(io::JsonPath) override { return {}; }
  Result<void> scalar(io::JsonPath, const io::JsonScalar&) override { return {}; }
};

/// The line, from 1, of the key `name` of the outermost object; 0 where it is written with escapes.
std::int64_t line_of_key(std::string_view text, std::string_view name) {
  std::int64_t line = 1;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const std::size_t begin = at + 1;
    for (at = begin; at < text.size() && text[at] != '"'; ++at)
      if (text[at] == '\\') ++at;
    if (at >= text.size()) break;
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + 1);
    const bool is_key = next != std::string_view::npos && text[next] == ':';
    if (depth == 1 && is_key && text.substr(begin, at - begin) == name) return line;
  }
  return 0;
}

class EntryReader {
 public:
  EntryReader(io::FileSystem& files, const std::filesystem::path& folder, std::string name,
              std::string where)
      : files_(files), folder_(folder), name_(std::move(name)), where_(std::move(where)) {}

  Result<DatasetEntry> read(const Json& json) {
    if (!json.is_object())
      return fail(ErrorCode::bad_config, fmt::format("entry `{}` is not an object", name_), where_);
    UK_TRY_VOID(check_keys(json, entry_keys, "entry"));
    UK_TRY_VOID(check_source(json));
    DatasetEntry entry{.name = name_, .place = where_};
    UK_TRY(format, read_format(json));
    entry.format = format;
    UK_TRY(columns, read_columns(json));
    entry.columns = std::move(columns);
    entry.columns_are_named = find_field(json, "columns") != nullptr;
    UK_TRY(tags, read_tags(json));
    entry.tags = std::move(tags);
    if (const Json* count = find_field(json, "num_samples")) {
      if (!count->is_number_integer() || count->get<std::int64_t>() < 1)
        return fail(ErrorCode::bad_config, "`num_samples` is not a number from 1", where_);
      entry.sample_count = count->get<std::int64_t>();
    }
    UK_TRY(paths, read_files(json));
    entry.files = std::move(paths);
    return entry;
  }

 private:
  // All unknown keys at once, each with what it may be meant for.
  Result<void> check_keys(const Json& object, const std::vector<std::string>& known,
                          std::string_view what) const {
    std::vector<std::string> unknown;
    std::vector<std::string> fixes;
    for (const auto& [key, value] : object.items()) {
      if (is_in(key, known)) continue;
      unknown.push_back(key);
      if (const std::string nearest = nearest_word(lower_case(key), known); !nearest.empty())
        fixes.push_back(fmt::format("write `{}`", nearest));
    }
    if (unknown.empty()) return {};
    const auto told = [&](const std::string& key, std::string_view place) {
      const std::string meant = meant_by(key, known);
      return fmt::format("`{}`{}{}{}", printable(key), place, meant.empty() ? "" : ", ", meant);
    };
    const std::string place = fmt::format(" in {} `{}`", what, name_);
    std::string message = fmt::format("unknown key {}", told(unknown[0], place));
    if (unknown.size() > 1) {
      message = fmt::format("{} unknown keys{}", unknown.size(), place);
      for (const std::string& key : unknown) message += "; " + told(key, "");
    }
    return fail(ErrorCode::bad_config, std::move(message), where_,
                fixes.empty() ? fmt::format("known are {}", fmt::join(known, ", "))
                              : fmt::format("{}", fmt::join(fixes, ", ")));
  }

  Result<void> check_source(const Json& json) const {
    for (const std::string_view key :
         {"hf_hub_url", "ms_hub_url", "om_hub_url", "script_url", "cloud_file_name"})
      if (find_field(json, key) != nullptr)
        return fail(ErrorCode::unsupported,
                    fmt::format("`{}` of data set `{}`: data is read from files only", key, name_),
                    where_, "download the files and name them with `file_name`");
    UK_TRY(split, text_field(json, where_, "split"));
    if (!split.empty() && split != "train")
      return fail(
          ErrorCode::bad_config,
          fmt::format("`split` of data set `{}` is `{}`: a file has the split `train` alone", name_,
                      split),
          where_, "leave `split` out, and name the file of that split");
    UK_TRY(ranking, bool_field(json, where_, "ranking", false));
    if (ranking)
      return fail(ErrorCode::unsupported,
                  fmt::format("data set `{}` holds preferences (ranking: true)", name_), where_);
    return {};
  }

  Result<RecordFormat> read_format(const Json& json) const {
    UK_TRY(name, text_field(json, where_, "formatting"));
    if (name.empty() || name == "alpaca") return RecordFormat::alpaca;
    if (name == "sharegpt") return RecordFormat::sharegpt;
    if (name == "openai") return RecordFormat::openai;
    return fail(ErrorCode::bad_config,
                fmt::format("formatting `{}` of data set `{}` is not known", name, name_), where_,
                "write alpaca, sharegpt or openai");
  }

  // A `columns` that is there leaves out every column that it does not name.
  Result<Columns> read_columns(const Json& json) const {
    const Json* field = find_field(json, "columns");
    if (field == nullptr) return Columns{};
    if (!field->is_object())
      return fail(ErrorCode::bad_config, "`columns` is not an object", where_);
    UK_TRY_VOID(check_keys(*field, column_keys, "columns of"));
    for (const std::string_view key : {"images", "videos", "audios"})
      if (find_field(*field, key) != nullptr)
        return fail(ErrorCode::unsupported,
                    fmt::format("data set `{}` has {}: only text is trained on", name_, key),
                    where_);
    Columns columns;
    const std::pair<const char*, std::string*> names[] = {
        {"prompt", &columns.prompt},     {"query", &columns.query},
        {"response", &columns.response}, {"history", &columns.history},
        {"messages", &columns.messages}, {"system", &columns.system},
        {"tools", &columns.tools}};
    for (const auto& [key, into] : names) {
      UK_TRY(column, text_field(*field, where_, key));
      *into = std::move(column);
    }
    return columns;
  }

  // As with columns: tags that are there leave out the others.
  Result<Tags> read_tags(const Json& json) const {
    const Json* field = find_field(json, "tags");
    if (field == nullptr) return Tags{};
    if (!field->is_object()) return fail(ErrorCode::bad_config, "`tags` is not an object", where_);
    UK_TRY_VOID(check_keys(*field, tag_keys, "tags of"));
    Tags tags;
    const std::pair<const char*, std::string*> names[] = {{"role_tag", &tags.role},
                                                          {"content_tag", &tags.content},
                                                          {"user_tag", &tags.user},
                                                          {"assistant_tag", &tags.assistant},
                                                          {"observation_tag", &tags.observation},
                                                          {"function_tag", &tags.function},
                                                          {"system_tag", &tags.system}};
    for (const auto& [key, into] : names) {
      UK_TRY(tag, text_field(*field, where_, key));
      *into = std::move(tag);
    }
    for (const auto& [key, into] : names)
      if (into->empty() && (into == &tags.role || into == &tags.content || into == &tags.user ||
                            into == &tags.assistant))
        return fail(
            ErrorCode::bad_config, fmt::format("`tags` of data set `{}` names no `{}`", name_, key),
            where_,
            fmt::format(R"("tags": {{"{}": "..."}}; tags that are not named are none)", key));
    return tags;
  }

  Result<std::vector<std::string>> read_files(const Json& json) const {
    std::vector<std::string> names;
    const Json* field = find_field(json, "file_name");
    if (field != nullptr && field->is_string()) names.push_back(field->get<std::string>());
    if (field != nullptr && field->is_array())
      for (const Json& name : *field)
        if (name.is_string()) names.push_back(name.get<std::string>());
    if (names.empty() || (field->is_array() && names.size() != field->size()))
      return fail(ErrorCode::bad_config, fmt::format("data set `{}` names no `file_name`", name_),
                  where_, R"("file_name": "NAME.jsonl", a path below dataset_dir)");
    std::vector<std::string> paths;
    for (const std::string& name : names) {
      if (name.empty())  // else the whole of dataset_dir would be the data set
        return fail(ErrorCode::bad_config,
                    fmt::format("`file_name` of data set `{}` is empty", name_), where_,
                    R"("file_name": "NAME.jsonl", a path below dataset_dir)");
      const std::string path = (folder_ / name).string();
      UK_TRY(stat, files_.stat(path));
      if (!stat)
        return fail(ErrorCode::not_found,
                    fmt::format("data set `{}`: there is no such file", name_),
                    fmt::format("{}, {}", path, where_), "dataset_dir says where the files are");
      if (stat->kind != io::FileKind::folder) {
        paths.push_back(path);
        continue;
      }
      UK_TRY(entries, files_.list(path));
      for (const io::FolderEntry& entry : entries)
        if (entry.kind == io::FileKind::file && !entry.name.starts_with('.'))
          paths.push_back(io::join_path(path, entry.name));
    }
    if (paths.empty())
      return fail(ErrorCode::not_found, fmt::format("data set `{}`: the folder is empty", name_),
                  (folder_ / names[0]).string());
    UK_TRY_VOID(check_extensions(paths));
    return paths;
  }

  Result<void> check_extensions(const std::vector<std::string>& paths) const {
    const std::string first = std::filesystem::path(paths[0]).extension().string();
    for (const std::string& path : paths) {
      const std::string extension = std::filesystem::path(path).extension().string();
      UK_TRY_VOID(check_data_file_name(path, where_));
      if (extension != first)
        return fail(ErrorCode::bad_config,
                    fmt::format("data set `{}` mixes files that end in `{}` and `{}`", name_, first,
                                extension),
                    path, "one kind of file in a data set");
    }
    return {};
  }

  io::FileSystem& files_;
  const std::filesystem::path& folder_;
  std::string name_;
  std::string where_;
};

/// A folder that is not there, or one whose files nobody has described.
tl::unexpected<Error> no_dataset_info(io::FileSystem& files, const std::filesystem::path& folder,
                                      const std::vector<std::string>& names) {
  const auto stat = files.stat(folder.string());
  if (!stat || !*stat || (*stat)->kind != io::FileKind::folder)
    return fail(ErrorCode::not_found, "dataset_dir is no folder that is there", folder.string(),
                "dataset_dir names the folder that holds dataset_info.json and the data");
  std::vector<std::string> data;
  if (const auto entries = files.list(folder.string()))
    for (const io::FolderEntry& entry : *entries) {
      const std::string extension = std::filesystem::path(entry.name).extension().string();
      const bool is_data =
          std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
      if (entry.kind == io::FileKind::file && is_data) data.push_back(entry.name);
    }
  std::sort(data.begin(), data.end());
  const std::string name = names.empty() ? "NAME" : names.front();
  const std::string file = data.size() == 1 ? data[0] : "FILE.jsonl";
  return fail(
      ErrorCode::not_found,
      fmt::format("there is no dataset_info.json; the folder holds {} data file{}{}", data.size(),
                  data.size() == 1 ? "" : "s",
                  data.empty() ? "" : ", the first " + printable(data[0])),
      (folder / "dataset_info.json").string(),
      fmt::format(R"(write one that describes the data: {{"{}": {{"file_name": "{}"}}}}, or )"
                  "let dataset_dir name the folder that holds it",
                  name, printable(file)));
}

}  // namespace

Result<void> check_data_file_name(const std::filesystem::path& path, std::string_view place) {
  const std::string extension = path.extension().string();
  if (is_in(extension, extensions)) return {};
  if (const std::string lower = lower_case(extension); is_in(lower, extensions))
    return fail(ErrorCode::unsupported,
                fmt::format("the name ends in `{}`; small letters are wanted, as by LLaMA-Factory: "
                            "`{}`",
                            extension, lower),
                place.empty() ? path.string() : fmt::format("{}, {}", path.string(), place),
                fmt::format("rename it to {}, here and in dataset_info.json",
                            path.stem().string() + lower));
  return fail(ErrorCode::unsupported,
              fmt::format("files that end in `{}` are not supported", extension), path.string(),
              extension == ".parquet" || extension == ".arrow"
                  ? "write it as JSON lines: datasets.load_dataset(...).to_json(NAME.jsonl)"
                  : "write .jsonl, .json, .csv or .txt");
}

Result<std::vector<DatasetEntry>> read_dataset_info(io::FileSystem& files,
                                                    const std::filesystem::path& folder,
                                                    const std::vector<std::string>& names) {
  const std::filesystem::path path = folder / "dataset_info.json";
  if (!files.exists(path.string())) return no_dataset_info(files, folder, names);
  return read_dataset_description(files, path, names);
}

Result<std::vector<DatasetEntry>> read_dataset_description(io::FileSystem& files,
                                                           const std::filesystem::path& description,
                                                           const std::vector<std::string>& names) {
  const std::string path = description.string();
  const std::filesystem::path folder = description.parent_path();
  UK_TRY(content, files.read_text(path, largest_info_bytes));
  const std::string_view text = without_byte_order_mark(content);
  // A doubled key: of two entries of one name the other one could be meant.
  NoVisitor nothing;
  UK_TRY_VOID(io::read_strict_json(text, path, nothing));
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& exception) {
    return fail(ErrorCode::bad_file, fmt::format("not valid JSON: {}", exception.what()), path);
  }
  if (!json.is_object()) return fail(ErrorCode::bad_file, "the file is not a JSON object", path);
  std::vector<DatasetEntry> entries;
  for (const std::string& name : names) {
    if (!json.contains(name)) {
      std::vector<std::string> known;
      for (const auto& [key, value] : json.items()) known.push_back(key);
      const std::string nearest = nearest_word(name, known);
      return fail(ErrorCode::not_found, fmt::format("there is no data set `{}`", name), path,
                  !nearest.empty()     ? fmt::format("write `{}`", nearest)
                  : known.size() <= 20 ? fmt::format("it has: {}", list_of(known))
                                       : fmt::format("it has {} others", known.size()));
    }
    const std::int64_t line = line_of_key(text, name);
    std::string where =
        line > 0 ? fmt::format("{}:{}: {}", path, line, name) : fmt::format("{}: {}", path, name);
    UK_TRY(entry, EntryReader(files, folder, name, std::move(where)).read(json[name]));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace underkeel::data
