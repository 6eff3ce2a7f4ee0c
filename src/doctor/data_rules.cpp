#include "doctor/data_rules.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "data/records.h"
#include "spec/fields.h"
#include "spec/json_reader.h"
#include "spec/text_file.h"

namespace underkeel::doctor {
namespace {

namespace fs = std::filesystem;
using data::DatasetEntry;
using data::RecordContent;

// Of a file that is too large to be read whole.
constexpr std::int64_t sampled_records = 1000;

/// Ways to read records that nobody has described, as they are met most.
struct Guess {
  RecordContent content = RecordContent::conversation;
  data::RecordFormat format = data::RecordFormat::alpaca;
  data::Columns columns = {};
  data::Tags tags = {};
};
std::vector<Guess> guesses() {
  const data::Columns messages{.prompt = "", .query = "", .response = "", .messages = "messages"};
  const data::Tags roles{
      .role = "role", .content = "content", .user = "user", .assistant = "assistant"};
  return {{},
          {.format = data::RecordFormat::sharegpt},
          {.format = data::RecordFormat::sharegpt, .columns = messages, .tags = roles},
          {.content = RecordContent::text, .columns = {.prompt = "text", .query = ""}}};
}

std::int64_t size_of(const std::string& path) {
  std::error_code status;
  const auto size = fs::file_size(path, status);
  return status ? 0 : static_cast<std::int64_t>(size);
}

/// What the last line of a file is, or as much of it as ends the file.
std::string last_line_of(const std::string& path) {
  constexpr std::int64_t looked_at = 1 << 20;
  const std::int64_t size = size_of(path);
  std::ifstream stream(path, std::ios::binary);
  stream.seekg(std::max<std::int64_t>(0, size - looked_at));
  std::string text(static_cast<std::size_t>(std::min(size, looked_at)), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != std::string_view::npos)
    text.pop_back();
  const std::size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

class DataLook {
 public:
  DataLook(const Question& question, const Inputs& inputs, Diagnosis& diagnosis)
      : question_(question), inputs_(inputs), diagnosis_(diagnosis) {
    if (!inputs.run) return;
    const spec::Value& root = inputs.run->root;
    skips_broken_ = truth_at(root, "underkeel.skip_broken_records").value_or(false);
    is_text_ = text_at(root, "stage") == "pt";
    for (const char* key : {"dataset", "eval_dataset"}) {
      if (const auto names = text_at(root, key))
        for (const std::string& name : spec::split_words(*names)) named_.insert(name);
      if (const spec::Value* list = value_at(root, key))
        for (const spec::Value& name : list->items) named_.insert(name.text);
    }
  }

  void run() {
    for (const Document& document : inputs_.others) {
      if (document.kind == FileKind::dataset_info) look_at_description(document, document.path);
      if (document.kind == FileKind::data_folder)
        look_at_description(document, (fs::path(document.path) / "dataset_info.json").string());
    }
    for (const Document& document : inputs_.others)
      if (document.kind == FileKind::records) look_at_records(document);
  }

 private:
  void tell(std::string_view id, Severity severity, const std::string& file, std::string key,
            std::vector<Slot> slots, Engine engine = Engine::both) {
    diagnosis_.findings.push_back({.id = std::string(id),
                                   .severity = severity,
                                   .engine = engine,
                                   .file = file,
                                   .key = std::move(key),
                                   .slots = std::move(slots)});
  }

  void refuse(const std::string& file, const std::string& key, const Error& error) {
    // Told already, of the run that reads it.
    if (question_.data_error && question_.data_error->what == error.what) return;
    tell("data-unusable", Severity::error, file, key,
         {{"what", error.what}, {"where", error.where}, {"do", error.fix}});
  }

  // --- dataset_info.json ---

  /// The sets that are asked for: those that the run names and the file has, else all of the file.
  std::vector<std::string> names_in(const spec::Value& root) const {
    std::vector<std::string> all, wanted;
    for (const spec::Entry& entry : root.entries) {
      all.push_back(entry.key);
      if (named_.count(entry.key) > 0) wanted.push_back(entry.key);
    }
    return wanted.empty() ? all : wanted;
  }

  static bool names_file_wrongly(const spec::Value& entry) {
    const spec::Value* file = entry.find("file_name");
    if (file == nullptr) return false;
    const auto is_wrong = [](const spec::Value& name) {
      return !data::check_data_file_name(name.text, "");
    };
    return file->kind == spec::ValueKind::text
               ? is_wrong(*file)
               : std::any_of(file->items.begin(), file->items.end(), is_wrong);
  }

  void look_at_description(const Document& document, const std::string& path) {
    const auto text = spec::read_text_file(path);
    if (!text) return refuse(document.file, "", text.error());
    const auto json = spec::read_json(*text, path, spec::JsonDialect::strict);
    if (!json) {
      // A file that was given has its own finding when no dialect can read it.
      const bool is_told =
          document.kind == FileKind::dataset_info && document.root.kind != spec::ValueKind::mapping;
      if (!is_told) refuse(document.file, "", json.error());
      return;
    }
    std::int64_t usable = 0, records = 0;
    std::vector<std::string> elsewhere;
    const auto names = names_in(json->root);
    for (const std::string& name : names) {
      auto entries = data::read_dataset_description(files_, path, {name});
      // A description may have sets that nobody trains on here.
      const bool may_be_elsewhere =
          named_.count(name) == 0 && !names_file_wrongly(*json->root.find(name));
      if (!entries && entries.error().code == ErrorCode::unsupported && may_be_elsewhere) {
        elsewhere.push_back(name);
        continue;
      }
      if (!entries) {
        refuse(document.file, name, entries.error());
        continue;
      }
      for (const std::string& file : entries->front().files) described_[file] = entries->front();
      const auto report = read_described(entries->front());
      if (!report) {
        refuse(document.file, name, report.error());
        continue;
      }
      for (const std::string& file : entries->front().files) read_.insert(fs::path(file));
      ++usable;
      records += report->records;
    }
    if (usable > 0)
      tell("data-described", Severity::info, document.file, "",
           {{"count", fmt::format("{}", usable)},
            {"all", fmt::format("{}", names.size())},
            {"records", fmt::format("{}", records)}});
    if (!elsewhere.empty())
      tell("data-elsewhere", Severity::warning, document.file, elsewhere.front(),
           {{"count", fmt::format("{}", elsewhere.size())}, {"name", elsewhere.front()}},
           Engine::underkeel);
  }

  Result<data::RecordReport> read_described(const DatasetEntry& entry) {
    std::int64_t bytes = 0;
    for (const std::string& file : entry.files) bytes += size_of(file);
    const std::int64_t most = bytes <= most_record_bytes ? -1 : sampled_records;
    auto report = read(entry, is_text_ ? RecordContent::text : RecordContent::conversation, most);
    // Without a run nobody says whether it trains on plain text.
    if (!report && !inputs_.run && report.error().code == ErrorCode::bad_config)
      if (auto as_text = read(entry, RecordContent::text, most)) return as_text;
    return report;
  }

  // --- data files ---

  void look_at_records(const Document& document) {
    if (read_.count(fs::path(document.path)) > 0) return;  // with its description
    if (const auto usable = data::check_data_file_name(document.path, ""); !usable)
      return refuse(document.file, "", usable.error());
    const std::int64_t size = size_of(document.path);
    const bool is_whole = size <= most_record_bytes;
    if (!is_whole && !ends_well(document)) return;
    const auto report = read_by_guess(document.path, is_whole ? -1 : sampled_records);
    if (!report) {
      const bool columns_are_unknown = report.error().code == ErrorCode::bad_config;
      // The file is at fault, not what is known of it: a list under a key, values with other separators.
      const std::string& fix = report.error().fix;
      const bool has_no_columns = fix.starts_with("the records seem to be a list under") ||
                                  fix.starts_with("values are separated by commas");
      if (!columns_are_unknown || has_no_columns) return refuse(document.file, "", report.error());
      if (is_whole && !ends_well(document)) return;
      return tell("data-columns-unknown", Severity::warning, document.file, "",
                  {{"what", report.error().what}});
    }
    if (report->records == 0)
      return tell("data-without-records", Severity::error, document.file, "", {});
    if (report->usable == 0)
      return tell("data-without-usable", Severity::error, document.file, "",
                  {{"records", fmt::format("{}", report->records)}});
    if (report->usable < report->records && !report->problems.empty()) {
      const data::RecordProblem& first = report->problems.front();
      tell("data-partly-usable", Severity::warning, document.file, "",
           {{"records", fmt::format("{}", report->records)},
            {"usable", fmt::format("{}", report->usable)},
            {"line", fmt::format("{}", first.line)},
            {"what", first.reason}});
      return;
    }
    tell(is_whole ? "data-readable" : "data-begins-well", Severity::info, document.file, "",
         {{"records", fmt::format("{}", report->records)},
          {"usable", fmt::format("{}", report->usable)},
          {"bytes", amount(static_cast<double>(size))}});
  }

  /// Of a file that is not read whole: a list ends with its bracket, lines with a whole one.
  bool ends_well(const Document& document) {
    const std::string line = last_line_of(document.path);
    std::ifstream stream(document.path, std::ios::binary);
    std::string beginning(4096, '\0');
    stream.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
    const std::size_t first = beginning.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    const bool is_list = first != std::string::npos && beginning[first] == '[';
    const bool is_lines = first != std::string::npos && beginning[first] == '{';
    const bool ends = is_list ? line.ends_with(']') : is_lines ? line.ends_with('}') : true;
    if (!ends)
      tell("data-cut-short", Severity::error, document.file, "",
           {{"bytes", amount(static_cast<double>(size_of(document.path)))},
            {"wanted", is_list ? "]" : "}"}});
    return ends;
  }

  Result<data::RecordReport> read_by_guess(const std::string& path, std::int64_t most) {
    if (const auto known = described_.find(path); known != described_.end()) {
      DatasetEntry entry = known->second;
      entry.files = {path};
      return read(entry, is_text_ ? RecordContent::text : RecordContent::conversation, most);
    }
    const std::string name = fs::path(path).filename().string();
    const auto entry_of = [&](const Guess& guess) {
      return DatasetEntry{.name = name,
                          .place = path,
                          .files = {path},
                          .format = guess.format,
                          .columns = guess.columns,
                          .tags = guess.tags};
    };
    std::optional<Error> first;
    for (const Guess& guess : guesses()) {
      auto report = read(entry_of(guess), guess.content, most);
      if (report || report.error().code != ErrorCode::bad_config) return report;
      if (!first) first = report.error();
    }
    return tl::unexpected(std::move(*first));
  }

  Result<data::RecordReport> read(const DatasetEntry& entry, RecordContent content,
                                  std::int64_t most) {
    return data::read_records(
        files_, entry, {.content = content, .skip_broken = skips_broken_, .most_records = most},
        {.make = [](const data::Record&) -> Result<data::TokenisedRecord> {
           return data::TokenisedRecord{};
         },
         .take = [](const data::JudgedRecord&) -> Result<void> { return {}; }});
  }

  const Question& question_;
  const Inputs& inputs_;
  Diagnosis& diagnosis_;
  io::FileSystem files_;
  bool skips_broken_ = false;
  bool is_text_ = false;
  std::set<std::string> named_;                    // sets of the run
  std::map<std::string, DatasetEntry> described_;  // by file
  std::set<fs::path> read_;
};

}  // namespace

void look_at_data_files(const Question& question, const Inputs& inputs, Diagnosis& diagnosis) {
  DataLook(question, inputs, diagnosis).run();
}

}  // namespace underkeel::doctor
