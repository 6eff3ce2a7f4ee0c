#include "data/records.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_word.h"
#include "data/csv_record.h"
#include "data/formats.h"
#include "data/in_order.h"
#include "data/record_judge.h"

namespace underkeel::data {
namespace {

constexpr std::size_t problems_kept = 20;
constexpr std::size_t batch_records = 256;
constexpr std::size_t batch_bytes = 256 * static_cast<std::size_t>(kibibyte);
// Records above this are tokenised one at a time, and their memory is given back.
constexpr std::size_t large_record_bytes = mebibyte;
// Of a large record, most of it while one word of its whole length is merged (measured: 31).
constexpr std::int64_t working_bytes_per_byte = 40;
constexpr int batches_in_flight = 4;  // besides one a thread: work_in_order()

// Of messages that are {"role": ..., "content": ...}, as they mostly are under this name.
/// Records of one file, together with what becomes of them.
struct Batch {
  const std::string* file = nullptr;
  FileForm form = FileForm::json_lines;
  const std::vector<std::string>* column_names = nullptr;
  std::vector<RawRecord> raw;  // never shorter than it was: the texts keep their memory
  std::size_t count = 0;
  bool has_first = false;  // the first record of the data set
  std::vector<Judgement> judged;
  std::vector<TokenisedRecord> tokens;
  std::optional<Error> error;  // of the record after the last one judged
  std::optional<CutShort> cut_short;
};

// In flight: the bytes of each batch and its tokens (a word a byte at the most); worked on: one record.
std::int64_t bytes_per_byte(int thread_count) {
  constexpr std::int64_t waiting_bytes_per_byte = 1 + sizeof(TokenWord);
  return working_bytes_per_byte + waiting_bytes_per_byte * (thread_count + batches_in_flight);
}

class DatasetReader {
 public:
  DatasetReader(io::FileSystem& files, const DatasetEntry& entry, const RecordRules& rules,
                const RecordWork& work)
      : files_(files),
        entry_(entry),
        rules_(rules),
        work_(work),
        wanted_(wanted_columns(entry, rules.content)) {}

  Result<RecordReport> run() {
    if (wanted_.front().name.empty()) return no_column(wanted_.front());
    UK_TRY_VOID(work_in_order<Batch>(
        work_.thread_count, [this](Batch& batch) { return fill(batch); },
        [this](Batch& batch) { judge_all(batch); }, [this](Batch& batch) { return take(batch); }));
    UK_TRY_VOID(check_columns());
    if (report_.broken > 0 && !rules_.skip_broken)
      return fail(
          ErrorCode::bad_file, fmt::format("data set `{}`: {}", entry_.name, describe(report_)),
          entry_.files.size() == 1 ? entry_.files[0] : "the files of the data set",
          report_.broken == report_.records
              ? "no record is well formed: JSON lines, a JSON list, comma separated values and "
                "plain text are read by the name's ending"
              : "mend the broken records, or leave them out with "
                "underkeel.skip_broken_records: true");
    return std::move(report_);
  }

 private:
  bool is_enough() const { return rules_.most_records >= 0 && read_ >= rules_.most_records; }

  Result<void> open_next() {
    path_ = &entry_.files[next_file_++];
    const std::int64_t limit_bytes = largest_record_bytes(rules_, work_.thread_count);
    UK_TRY(reader, RawRecordReader::open(files_, *path_, limit_bytes));
    reader_.emplace(std::move(reader));
    if (reader_->had_byte_order_mark())
      report_.notes.push_back(fmt::format("{}: skipped the byte-order mark", *path_));
    if (reader_->form() == FileForm::json_list && path_->ends_with(".jsonl"))
      report_.notes.push_back(
          fmt::format("{}: read as a JSON list, though its name ends in .jsonl", *path_));
    column_names_.push_back(
        std::make_unique<std::vector<std::string>>(csv_names(reader_->header())));
    return {};
  }

  Result<bool> next(RawRecord& record) {
    auto found = reader_->next(record);
    if (found || found.error().code != ErrorCode::does_not_fit || !rules_.memory_bytes)
      return found;
    Error error = std::move(found).error();
    error.fix = fmt::format(
        "split it into several; {} of host memory are there, and a record may need {} times its "
        "size while "
        "it is tokenised",
        format_bytes(*rules_.memory_bytes), bytes_per_byte(work_.thread_count));
    return tl::unexpected(std::move(error));
  }

  Result<bool> fill(Batch& batch) {
    batch.count = 0;
    batch.judged.clear();
    batch.tokens.clear();
    batch.error.reset();
    batch.cut_short.reset();
    batch.has_first = read_ == 0;
    while (true) {
      if (!reader_) {
        if (is_enough() || next_file_ == entry_.files.size()) return false;
        UK_TRY_VOID(open_next());
      }
      batch.file = path_;
      batch.form = reader_->form();
      batch.column_names = column_names_.back().get();
      std::size_t size_bytes = 0;
      while (!is_enough() && batch.count < batch_records && size_bytes < batch_bytes) {
        if (batch.raw.size() == batch.count) batch.raw.emplace_back();
        UK_TRY(found, next(batch.raw[batch.count]));
        if (!found) {
          batch.cut_short = reader_->cut_short();
          reader_.reset();
          break;
        }
        size_bytes += batch.raw[batch.count].text.size();
        ++batch.count;
        ++read_;
      }
      if (is_enough()) {
        reader_.reset();
        next_file_ = entry_.files.size();
      }
      if (batch.count > 0 || batch.cut_short) return true;
    }
  }

  // By several threads at once.
  void judge_all(Batch& batch) {
    for (std::size_t i = 0; i < batch.count && !batch.error; ++i) {
      const bool is_large = batch.raw[i].text.size() > large_record_bytes;
      std::unique_lock<std::mutex> alone(one_large_record_, std::defer_lock);
      if (is_large) alone.lock();
      auto judged = judge({.entry = entry_,
                           .content = rules_.content,
                           .wanted = wanted_,
                           .form = batch.form,
                           .column_names = *batch.column_names,
                           .file = *batch.file,
                           .wants_keys = batch.has_first && i == 0},
                          batch.raw[i]);
      if (!judged) {
        batch.error = std::move(judged).error();
        return;
      }
      TokenisedRecord tokens;
      if (judged->state == RecordState::usable) {
        auto made = work_.make(judged->record);
        if (!made) {
          batch.error = std::move(made).error();
          batch.error->where =
              fmt::format("{}:{}, {}", *batch.file, batch.raw[i].line, batch.error->where);
          return;
        }
        tokens = std::move(*made);
      }
      if (is_large) {
        batch.raw[i].text = std::string();
        judged->record = Record();
        tokens.words.shrink_to_fit();
      }
      batch.judged.push_back(std::move(*judged));
      batch.tokens.push_back(std::move(tokens));
    }
  }

  Result<void> take(Batch& batch) {
    for (std::size_t i = 0; i < batch.judged.size(); ++i) {
      Judgement& judged = batch.judged[i];
      if (report_.records++ == 0) first_keys_ = std::move(judged.keys);
      seen_ |= judged.columns;
      if (judged.state == RecordState::usable) {
        ++report_.usable;
        if (judged.empty) ++report_.empty;
      } else {
        add_problem({.file = *batch.file,
                     .line = judged.line,
                     .column = judged.column,
                     .broken = judged.state == RecordState::broken,
                     .reason = std::move(judged.reason)});
      }
      UK_TRY_VOID(work_.take({.state = judged.state,
                              .file = *batch.file,
                              .line = batch.raw[i].line,
                              .record = std::move(judged.record),
                              .tokens = std::move(batch.tokens[i])}));
    }
    if (batch.error) return tl::unexpected(*batch.error);
    if (!batch.cut_short) return {};
    ++report_.records;
    add_problem({.file = *batch.file,
                 .line = batch.cut_short->line,
                 .broken = true,
                 .reason = batch.cut_short->reason});
    return work_.take({.state = RecordState::broken,
                       .file = *batch.file,
                       .line = batch.cut_short->line,
                       .record = {},
                       .tokens = {}});
  }

  void add_problem(RecordProblem problem) {
    ++(problem.broken ? report_.broken : report_.dropped);
    if (report_.problems.size() < problems_kept) report_.problems.push_back(std::move(problem));
  }

  tl::unexpected<Error> no_column(const WantedColumn& column) const {
    return fail(
        ErrorCode::bad_config,
        fmt::format("`columns` of data set `{}` names no `{}`", entry_.name, column.key),
        entry_.place,
        rules_.content == RecordContent::text
            ? R"(for plain text: "columns": {"prompt": "text"})"
            : fmt::format(R"("columns": {{"{}": "..."}}; a column that is not named is none)",
                          column.key));
  }

  bool has_first_key(std::string_view key) const {
    return std::find(first_keys_.begin(), first_keys_.end(), key) != first_keys_.end();
  }

  // Names under which others keep a question and its answer.
  std::string other_columns() const {
    if (rules_.content == RecordContent::text) return {};
    const auto first_of = [&](std::initializer_list<std::string_view> names) {
      for (const std::string_view name : names)
        if (has_first_key(name)) return name;
      return std::string_view();
    };
    if (entry_.format != RecordFormat::alpaca) {
      const std::string_view messages =
          first_of({"messages", "conversations", "conversation", "dialog", "dialogue", "turns"});
      if (messages.empty()) return {};
      const bool is_openai = messages == "messages" && entry_.tags.role == Tags{}.role;
      return fmt::format(R"("columns": {{"messages": "{}"}}{}{})", messages, is_openai ? ", " : "",
                         is_openai ? openai_tags : "");
    }
    const std::string_view prompt =
        first_of({"instruction", "prompt", "question", "query", "problem", "input"});
    const std::string_view response =
        first_of({"output", "response", "answer", "completion", "solution", "target"});
    if (prompt.empty() || response.empty()) return {};
    return fmt::format(R"("columns": {{"prompt": "{}", "response": "{}"}})", prompt, response);
  }

  // What the columns look like, when they look like another format.
  std::string other_format() const {
    if (rules_.content == RecordContent::text) return {};
    if (entry_.format != RecordFormat::alpaca)
      return has_first_key("instruction") && has_first_key("output")
                 ? R"(leave "formatting" and "columns" out: these are instructions and outputs)"
                 : "";
    for (const char* name : {"conversations", "messages"})
      if (has_first_key(name))
        return fmt::format(R"("formatting": "sharegpt", "columns": {{"messages": "{}"}})", name) +
               (std::string_view(name) == "messages" ? fmt::format(", {}", openai_tags) : "");
    return {};
  }

  // What the file may be instead.
  std::string other_kind() const {
    if (first_keys_.size() != 1) return {};
    const std::string& only = first_keys_[0];
    if (only.find_first_of(";\t|") != std::string::npos)
      return "values are separated by commas: write the file anew, or as JSON lines";
    if (only == "data" || only == "examples" || only == "train")
      return fmt::format(
          "the records seem to be a list under `{}`: the file has to be that list itself", only);
    if (rules_.content == RecordContent::conversation && (only == "text" || only == "content"))
      return "plain text trains with stage: pt";
    return {};
  }

  // A column that no record has is a mistake in the description, not in the records.
  Result<void> check_columns() const {
    if (first_keys_.empty()) return {};
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      if ((seen_ & (1u << i)) != 0) continue;
      const WantedColumn& column = wanted_[i];
      if (column.name.empty()) return no_column(column);
      const std::string nearest = nearest_word(column.name, first_keys_);
      const std::string better = !nearest.empty()          ? nearest
                                 : first_keys_.size() == 1 ? first_keys_[0]
                                                           : std::string();
      std::string fix = other_format();
      if (fix.empty()) fix = other_kind();
      if (fix.empty() && nearest.empty()) fix = other_columns();
      if (fix.empty())
        fix = fmt::format(R"("columns": {{"{}": "{}"}})", column.key,
                          better.empty() ? "..." : better);
      return fail(
          ErrorCode::bad_config,
          fmt::format("data set `{}`: the column `{}` is in no record; the first one has `{}`",
                      entry_.name, column.name, fmt::join(first_keys_, "`, `")),
          entry_.place, std::move(fix));
    }
    return {};
  }

  io::FileSystem& files_;
  const DatasetEntry& entry_;
  const RecordRules& rules_;
  const RecordWork& work_;
  const std::vector<WantedColumn> wanted_;
  std::optional<RawRecordReader> reader_;
  const std::string* path_ = nullptr;
  std::size_t next_file_ = 0;
  std::int64_t read_ = 0;
  std::vector<std::unique_ptr<std::vector<std::string>>> column_names_;  // of each file
  RecordReport report_;
  std::vector<std::string> first_keys_;
  std::uint32_t seen_ = 0;  // as Judgement::columns, of any record
  std::mutex one_large_record_;
};

}  // namespace

std::int64_t largest_record_bytes(const RecordRules& rules, int thread_count) {
  if (!rules.memory_bytes) return rules.largest_record_bytes;
  const auto least = static_cast<std::int64_t>(large_record_bytes);
  return std::min(rules.largest_record_bytes,
                  std::max(least, *rules.memory_bytes / bytes_per_byte(thread_count)));
}

std::string describe(const RecordReport& report) {
  std::string text =
      fmt::format("{} records, {} usable ({} empty), {} dropped, {} broken", report.records,
                  report.usable, report.empty, report.dropped, report.broken);
  for (const RecordProblem& problem : report.problems) {
    text += fmt::format("\n  {}:{}", problem.file, problem.line);
    if (problem.column > 0) text += fmt::format(", column {}", problem.column);
    text += fmt::format(": {}, {}", problem.broken ? "broken" : "dropped", problem.reason);
  }
  const auto kept = static_cast<std::int64_t>(report.problems.size());
  if (report.dropped + report.broken > kept)
    text += fmt::format("\n  and {} more", report.dropped + report.broken - kept);
  return text;
}

Result<RecordReport> read_records(io::FileSystem& files, const DatasetEntry& entry,
                                  const RecordRules& rules, const RecordWork& work) {
  return DatasetReader(files, entry, rules, work).run();
}

}  // namespace underkeel::data
