#include "doctor/document.h"

#include <algorithm>
#include <cctype>
#include <fstream>

#include <fmt/format.h>

#include "base/foreign_content.h"
#include "doctor/bare_json.h"
#include "doctor/log_content.h"
#include "doctor/log_reader.h"
#include "doctor/obstacle.h"
#include "spec/json_reader.h"
#include "spec/text_file.h"
#include "spec/yaml_reader.h"

namespace underkeel::doctor {
namespace {

namespace fs = std::filesystem;
using spec::Value;
using spec::ValueKind;

// Of a log the end tells what happened; of a data set the beginning tells what it is.
constexpr std::int64_t log_tail_bytes = 4 << 20;
constexpr std::int64_t sniff_bytes = 64 << 10;
// An article has a tenth of it, a long thread all of it.
constexpr std::size_t most_advice_bytes = 1 << 20;

std::string beginning_of(const fs::path& path, std::int64_t most_bytes = sniff_bytes) {
  std::ifstream stream(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(most_bytes), '\0');
  stream.read(text.data(), most_bytes);
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

std::string end_of(const fs::path& path) {
  std::error_code status;
  const auto size = static_cast<std::int64_t>(fs::file_size(path, status));
  std::ifstream stream(path, std::ios::binary);
  stream.seekg(std::max<std::int64_t>(0, size - log_tail_bytes));
  std::string text(static_cast<std::size_t>(std::min(size, log_tail_bytes)), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, stream.gcount())));
  return text;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\xEF\xBB\xBF") == std::string_view::npos;
}

bool is_weights(std::string_view beginning) {
  return beginning.size() > 9 && beginning[8] == '{' && beginning[7] == '\0' &&
         beginning[6] == '\0';
}

std::string lower_extension(const fs::path& path) {
  return lower_case(path.extension().string());
}

/// A list of objects, whole or cut short; a log may begin with a bracket too.
bool begins_like_a_list_of_records(std::string_view text) {
  if (!text.starts_with('[')) return false;
  const std::size_t next = text.find_first_not_of(" \t\r\n", 1);
  return next == std::string_view::npos || text[next] == '{' || text[next] == ']';
}

/// Endings of data that are no text.
bool is_packed_data(std::string_view extension) {
  constexpr std::string_view endings[] = {".gz",      ".zst",   ".zip",  ".xz",    ".bz2",
                                          ".parquet", ".arrow", ".json", ".jsonl", ".txt"};
  return std::find(std::begin(endings), std::end(endings), extension) != std::end(endings);
}

/// Endings that promise a log, whatever it says.
bool is_log_name(std::string_view extension) {
  return extension == ".log" || extension == ".out" || extension == ".err";
}

/// Records by what comes first, whatever a text in them says: logs are told by words that data may hold too.
bool is_data(std::string_view text, std::string_view extension) {
  if (text.empty()) return false;
  if (extension == ".csv" || begins_like_a_list_of_records(text)) return true;
  // Neither JSON nor a comment: what such a name promises is not there.
  return (extension == ".json" || extension == ".jsonl") &&
         std::string_view("{/#").find(text[0]) == std::string_view::npos;
}

bool has_more_lines(std::string_view text) {
  const std::size_t end = text.find('\n');
  return end != std::string_view::npos &&
         text.find_first_not_of(" \t\r\n", end) != std::string_view::npos;
}

FileKind kind_of_folder(const fs::path& path) {
  std::error_code status;
  const auto has = [&](std::string_view name) { return fs::exists(path / name, status); };
  // A checkpoint of ours is a model folder besides, whole or not.
  const bool is_named_so = fs::path(path).filename().string().starts_with("checkpoint-");
  if (has("manifest.json") || (is_named_so && has("training_args.json")))
    return FileKind::checkpoint_folder;
  if (has("config.json")) return FileKind::model_folder;
  if (has("adapter_config.json")) return FileKind::adapter_folder;
  if (has("trainer_state.json")) return FileKind::checkpoint_folder;
  bool has_checkpoints = false, has_partitions = has("zero_to_fp32.py") || has("latest");
  for (const auto& entry : fs::directory_iterator(path, status)) {
    const std::string name = entry.path().filename().string();
    has_checkpoints = has_checkpoints || name.starts_with("checkpoint-");
    has_partitions = has_partitions || name.starts_with("global_step") ||
                     name.starts_with("zero_pp_rank_") || name.starts_with("bf16_zero_pp_rank_") ||
                     name.starts_with("mp_rank_");
  }
  if (has_checkpoints) return FileKind::output_folder;
  if (has_partitions) return FileKind::deepspeed_checkpoint;
  if (has("model.safetensors") || has("model.safetensors.index.json"))
    return FileKind::model_folder;
  if (has("adapter_model.safetensors")) return FileKind::adapter_folder;
  if (has("dataset_info.json")) return FileKind::data_folder;
  return FileKind::unknown;
}

void tell(std::vector<Finding>& findings, std::string_view id, Severity severity,
          const Document& document, std::vector<Slot> slots, Engine engine = Engine::both) {
  findings.push_back({.id = std::string(id),
                      .severity = severity,
                      .engine = engine,
                      .file = document.file,
                      .slots = std::move(slots)});
}

/// An empty log or an empty answer tells nothing; anything else that is empty stops whoever reads it.
void tell_empty(const Document& document, std::string_view extension,
                std::vector<Finding>& findings) {
  const bool tells_a_story =
      extension == ".log" || extension == ".out" || extension == ".err" || extension == ".md";
  tell(findings, "file-empty", tells_a_story ? Severity::warning : Severity::error, document, {});
}

/// What was left unread of a long text.
void tell_part(const Document& document, const fs::path& path, std::size_t read_bytes,
               std::string_view part, std::vector<Finding>& findings) {
  std::error_code status;
  const auto size = fs::file_size(path, status);
  if (status || size <= read_bytes) return;
  tell(findings, "file-read-in-part", Severity::info, document,
       {{"read", amount(static_cast<double>(read_bytes))},
        {"size", amount(static_cast<double>(size))},
        {"part", std::string(part)}});
}

/// JSON with DeepSpeed's liberties; true when it could be read.
bool read_as_json(std::string_view text, Document& document, std::vector<Finding>& findings) {
  auto read = spec::read_json(text, document.file, spec::JsonDialect::relaxed);
  const bool is_too_large = !read && read.error().code == ErrorCode::unsupported;
  if (is_too_large && !mentions_deepspeed_keys(text)) {
    tell(findings, "file-unrecognised", Severity::warning, document, {});
    return false;
  }
  // DeepSpeed and the Trainer differ in what they make of a key that a DeepSpeed config has twice.
  if (!read && !is_too_large && mentions_deepspeed_keys(text))
    if (auto last = spec::read_json(text, document.file, spec::JsonDialect::last_holds);
        last && kind_of(last->root) == FileKind::deepspeed_config)
      read = std::move(last);
  if (!read) {
    document.kind = kind_of_broken(text);
    document.is_unread = true;
    tell(findings, "file-broken", Severity::error, document,
         {{"what", read.error().what}, {"where", read.error().where}});
    return false;
  }
  document.root = std::move(read->root);
  // Broken so far that none of its keys is left, it is a description still.
  const bool is_description = document.file == "dataset_info.json";
  document.kind = is_description ? FileKind::dataset_info : kind_of(document.root);
  // A run file of nothing but keys that DeepSpeed has too is no run file, where it is JSON.
  if (document.kind == FileKind::run_file && are_all_of_deepspeed(document.root))
    document.kind = FileKind::deepspeed_config;
  if (document.kind == FileKind::run_record)
    tell(findings, "file-of-a-run", Severity::info, document, {});
  for (const std::string& departure : read->departures)
    tell(findings, "json-not-strict", Severity::warning, document, {{"what", departure}},
         Engine::deepspeed);
  for (const spec::RepeatedKey& each : read->repeated) {
    tell(findings, "key-given-twice", Severity::warning, document, {{"key", each.key}},
         Engine::deepspeed);
    findings.back().key = each.key;
    findings.back().line = each.place.line;
  }
  return true;
}

}  // namespace

Document open_document(const fs::path& given, std::vector<Finding>& findings) {
  // A folder may come with a slash behind it, which is no part of its name.
  const fs::path path = given.has_filename() ? given : given.parent_path();
  Document document{.path = path.string(), .file = path.filename().string()};
  std::error_code status;
  if (const auto obstacle = obstacle_of(path, document.file)) {
    findings.push_back(*obstacle);
    return document;
  }
  if (fs::is_directory(path, status)) {
    document.kind = kind_of_folder(path);
    if (document.kind == FileKind::unknown)
      tell(findings, "file-unrecognised", Severity::warning, document, {});
    return document;
  }
  if (!fs::is_regular_file(path, status)) {  // a pipe would never end
    tell(findings, "file-no-file", Severity::error, document, {{"path", path.string()}});
    return document;
  }
  const std::string beginning = beginning_of(path);
  if (is_weights(beginning)) {
    document.kind = FileKind::weights;
    return document;
  }
  if (const auto foreign = foreign_content_of(beginning)) {
    tell(findings, "file-foreign", Severity::error, document,
         {{"what", foreign->what}, {"fix", foreign->fix}});
    return document;
  }
  if (is_blank(beginning) && fs::file_size(path, status) <= sniff_bytes) {
    tell_empty(document, lower_extension(path), findings);
    return document;
  }
  const std::size_t first = beginning.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  const char opening = first == std::string::npos ? '\0' : beginning[first];
  const std::string_view content =
      std::string_view(beginning).substr(std::min(first, beginning.size()));
  const std::string extension = lower_extension(path);
  if (extension == ".json" && beginning.size() < sniff_bytes &&
      take_bare_json(beginning, document, findings))
    return document;
  std::string end = end_of(path);
  const auto take_log = [&] {
    document.kind = FileKind::log;
    document.text = std::move(end);
    tell_part(document, path, document.text.size(), "@part.end", findings);
  };
  const auto json_line = first_json_line(content);
  if (json_line && is_log_in_json(*json_line, content, end)) {
    take_log();
    return document;
  }
  if ((json_line && has_more_lines(content)) || is_data(content, extension)) {
    document.kind = FileKind::records;
    return document;
  }
  if (beginning.find('\0') != std::string::npos) {  // no text: packed data, or a file of others
    if (is_packed_data(extension))
      document.kind = FileKind::records;
    else
      tell(findings, "file-unrecognised", Severity::warning, document, {});
    return document;
  }
  if (is_log_name(extension) || looks_like_log(beginning) || looks_like_log(end)) {
    take_log();
    return document;
  }
  if (content.starts_with('{') &&
      has(content, "\"weight_map\"")) {  // which may name 100,000 tensors
    document.kind = FileKind::weight_index;
    return document;
  }
  const bool has_yaml_name = extension == ".yaml" || extension == ".yml";
  const bool is_json = opening == '{' || opening == '/' || opening == '#';
  const auto take_advice = [&](std::string beginning_of_text) {
    document.kind = FileKind::advice;
    document.text = std::move(beginning_of_text);
    tell_part(document, path, document.text.size(), "@part.beginning", findings);
  };
  const auto text = spec::read_text_file(path);
  // No configuration is as long, but what people write may be.
  if (!text && !is_json && (extension == ".txt" || extension == ".md") &&
      fs::file_size(path, status) > most_advice_bytes) {
    take_advice(beginning_of(path, most_advice_bytes));
    return document;
  }
  if (!text) {
    tell(findings, "file-unreadable", Severity::error, document,
         {{"what", text.error().what}, {"fix", text.error().fix}});
    return document;
  }
  if (is_json && (opening == '{' || text->find('{') < text->find(':'))) {
    read_as_json(*text, document, findings);
  } else if (auto yaml = spec::read_yaml(*text, document.file);
             yaml && yaml->kind == ValueKind::mapping && !yaml->entries.empty() &&
             kind_of(*yaml) != FileKind::unknown) {
    document.root = std::move(*yaml);
    document.kind = kind_of(document.root);
  } else if (const FileKind kind = kind_of_broken(*text);
             !yaml && (kind == FileKind::run_file || has_yaml_name)) {
    document.kind = kind == FileKind::deepspeed_config ? FileKind::unknown : kind;
    document.is_unread = true;
    if (yaml.error().code == ErrorCode::unsupported)
      tell(findings, "yaml-not-read-here", Severity::error, document,
           {{"where", yaml.error().where}}, Engine::underkeel);
    else
      tell(findings, "file-broken", Severity::error, document,
           {{"what", yaml.error().what}, {"where", yaml.error().where}});
  } else if (yaml && yaml->kind == ValueKind::mapping && has_yaml_name) {
    document.root = std::move(*yaml);  // no prose, and of no kind that is known
  } else {
    take_advice(text->substr(0, most_advice_bytes));
  }
  // A file that loaders know by its name alone.
  if (document.kind == FileKind::unknown && document.root.kind == ValueKind::mapping &&
      document.file == "adapter_config.json")
    document.kind = FileKind::adapter_config;
  if (document.kind == FileKind::unknown && document.root.kind == ValueKind::mapping)
    tell(findings, "file-unrecognised", Severity::warning, document, {});
  return document;
}

}  // namespace underkeel::doctor
