#include "data/tokenise_set.h"

#include <utility>

#include <fmt/format.h>
#include <malloc.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "data/supervised.h"

namespace underkeel::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr int cache_version = 4;  // counts changes of what the same key would give
constexpr std::size_t places_kept = 20;

// Everything that the tokens depend on.
Result<std::string> key_of(io::FileSystem& files, const DatasetEntry& entry,
                           const DatasetOptions& options, const std::string& text_end,
                           bool with_begin, std::int64_t most_records) {
  Json key = {{"version", cache_version},
              {"content", options.content == RecordContent::text ? "text" : "conversation"},
              {"tokenizer", options.tokenizer_key},
              {"most_records", most_records},
              {"skip_broken", options.skip_broken}};
  for (const std::string& path : entry.files) {
    UK_TRY(sum, content_checksum(files, path));
    key["files"].push_back({path, sum});
  }
  const Columns& columns = entry.columns;
  key["columns"] = {columns.prompt,   columns.query,
                    columns.response, columns.history,
                    columns.messages, columns.system,
                    columns.tools,    entry.columns_are_named ? "named" : "default"};
  if (options.content == RecordContent::text) {
    key["end"] = text_end;
    key["begin"] = with_begin;
    return key.dump();
  }
  const Tags& tags = entry.tags;
  key["format"] = static_cast<int>(entry.format);
  key["tags"] = {tags.role,        tags.content,  tags.user,  tags.assistant,
                 tags.observation, tags.function, tags.system};
  const ChatStyle& style = options.style;
  key["template"] = style.style->name;
  key["system"] = style.system;
  key["thinking"] = style.enable_thinking ? Json(*style.enable_thinking) : Json(nullptr);
  key["preserve_thinking"] = style.preserve_thinking;
  key["cutoff"] = options.cutoff_tokens;
  key["train_on_prompt"] = options.train_on_prompt;
  key["mask_history"] = options.mask_history;
  return key.dump();
}

Json to_json(const RecordReport& report) {
  Json problems = Json::array();
  for (const RecordProblem& problem : report.problems)
    problems.push_back(
        {problem.file, problem.line, problem.column, problem.broken, problem.reason});
  return {{"records", report.records}, {"usable", report.usable}, {"dropped", report.dropped},
          {"broken", report.broken},   {"empty", report.empty},   {"problems", problems},
          {"notes", report.notes}};
}

RecordReport report_of(const Json& json) {
  RecordReport report{.records = json.at("records"),
                      .usable = json.at("usable"),
                      .dropped = json.at("dropped"),
                      .broken = json.at("broken"),
                      .empty = json.at("empty"),
                      .problems = {},
                      .notes = json.at("notes")};
  for (const Json& problem : json.at("problems"))
    report.problems.push_back({.file = problem.at(0),
                               .line = problem.at(1),
                               .column = problem.at(2),
                               .broken = problem.at(3),
                               .reason = problem.at(4)});
  return report;
}

constexpr std::int64_t CutFigures::*cut_fields[] = {&CutFigures::tokens,
                                                    &CutFigures::trained,
                                                    &CutFigures::longest_uncut,
                                                    &CutFigures::whole,
                                                    &CutFigures::untrained,
                                                    &CutFigures::answers,
                                                    &CutFigures::answers_cut,
                                                    &CutFigures::answers_lost,
                                                    &CutFigures::prompts_cut,
                                                    &CutFigures::prompts_lost,
                                                    &CutFigures::unanswered,
                                                    &CutFigures::longest_prompt,
                                                    &CutFigures::longest_prompt_kept,
                                                    &CutFigures::longest_answer,
                                                    &CutFigures::longest_answer_kept};

std::string text_of(const DatasetFigures& figures) {
  Json cut = Json::array();
  for (const auto field : cut_fields) cut.push_back(figures.cut.*field);
  Json shortened = Json::array();
  for (const CutRecord& record : figures.shortened) {
    Json answers = Json::array();
    for (const AnswerLengths& answer : record.answers)
      answers.push_back({answer.kept, answer.uncut});
    shortened.push_back({record.place, answers});
  }
  const Json json = {{"records", to_json(figures.records)},
                     {"cut", cut},
                     {"whole", figures.whole},
                     {"shortened", shortened},
                     {"untrained", figures.untrained},
                     {"unanswered", figures.unanswered}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<void> read_figures(const std::string& text, DatasetFigures& figures) {
  try {
    const Json json = Json::parse(text);
    figures.records = report_of(json.at("records"));
    figures.untrained = json.at("untrained").get<std::vector<std::string>>();
    figures.unanswered = json.at("unanswered").get<std::vector<std::string>>();
    figures.whole = json.at("whole").get<std::vector<std::string>>();
    const Json& shortened = json.at("shortened");
    for (const Json& record : shortened) {
      CutRecord& into = figures.shortened.emplace_back(CutRecord{.place = record.at(0)});
      for (const Json& answer : record.at(1))
        into.answers.push_back({.kept = answer.at(0), .uncut = answer.at(1)});
    }
    std::size_t place = 0;
    for (const auto field : cut_fields) figures.cut.*field = json.at("cut").at(place++);
  } catch (const Json::exception& error) {
    return fail(ErrorCode::bad_file, fmt::format("the report of cached tokens: {}", error.what()),
                figures.name, "set overwrite_cache: true once");
  }
  return {};
}

Result<TokenisedRecord> tokenise_text(const Tokenizer& tokenizer, const std::string& text) {
  UK_TRY(ids, tokenizer.encode(text));
  TokenisedRecord record;
  record.words.reserve(ids.size());
  for (const std::int32_t id : ids)
    record.words.push_back(static_cast<TokenWord>(id) | label_is_token);
  const auto count = static_cast<std::int64_t>(ids.size());
  record.figures = {.tokens = count,
                    .trained = std::max<std::int64_t>(count - 1, 0),
                    .longest_uncut = count,
                    .whole = 1};
  return record;
}

}  // namespace

Result<std::string> text_end_of(const Tokenizer& tokenizer, const DatasetOptions& options) {
  if (!options.text_end.empty()) return options.text_end;
  if (tokenizer.special_tokens().end) return tokenizer.special_tokens().end->text;
  if (tokenizer.id_of("<|endoftext|>")) return std::string("<|endoftext|>");
  return fail(ErrorCode::bad_config, "the tokenizer has no end token",
              "tokenizer_config.json: eos_token", "name a token of the vocabulary there");
}

Result<TokenisedSet> tokenise_set(io::FileSystem& files, const Tokenizer& tokenizer,
                                  const DatasetEntry& entry, const DatasetOptions& options) {
  const SpecialTokens& special = tokenizer.special_tokens();
  const bool is_text = options.content == RecordContent::text;
  const bool with_begin = is_text && !options.packing && special.add_begin && special.begin;
  std::string text_end;
  if (is_text) {
    UK_TRY(end, text_end_of(tokenizer, options));
    text_end = std::move(end);
  }
  RecordRules rules{.content = options.content,
                    .skip_broken = options.skip_broken,
                    .memory_bytes = options.memory_bytes};
  // num_samples chooses among all records, so all are read then.
  if (!entry.sample_count && options.max_samples) rules.most_records = *options.max_samples;
  UK_TRY(key, key_of(files, entry, options, text_end, with_begin, rules.most_records));

  const ChatEncoder encoder(tokenizer, options.style);
  const SupervisedOptions supervised{
      .cutoff_tokens = options.cutoff_tokens,
      .train_on_prompt = options.train_on_prompt,
      .mask_history = options.mask_history,
      .efficient_eos = !is_text && options.style.style->efficient_eos && special.end,
      .end_token = special.end ? special.end->id : 0};
  DatasetFigures figures{.name = entry.name, .files = entry.files};
  const auto make = [&](TokenFileWriter& writer) -> Result<TokenFileInfo> {
    RecordWork work{.thread_count = options.thread_count};
    work.make = [&](const Record& record) -> Result<TokenisedRecord> {
      if (is_text)
        return tokenise_text(tokenizer,
                             (with_begin ? special.begin->text : "") + record.text + text_end);
      UK_TRY(turns, encoder.encode(record.talk, options.mask_history));
      return make_supervised(turns, supervised);
    };
    work.take = [&](const JudgedRecord& judged) -> Result<void> {
      if (judged.state != RecordState::usable) return writer.add(nullptr);
      figures.cut.add(judged.tokens.figures);
      const CutFigures& cut = judged.tokens.figures;
      const std::string place = fmt::format("{}:{}", judged.file, judged.line);
      auto& places = cut.unanswered > 0 ? figures.unanswered : figures.untrained;
      if (cut.untrained > 0 && places.size() < places_kept) places.push_back(place);
      if (cut.whole == 0 && figures.shortened.size() < places_kept)
        figures.shortened.push_back({.place = place, .answers = judged.tokens.answers});
      if (cut.whole > 0 && !is_text && figures.whole.size() < places_kept)
        figures.whole.push_back(place);
      return writer.add(&judged.tokens);
    };
    UK_TRY(report, read_records(files, entry, rules, work));
    figures.records = std::move(report);
    malloc_trim(0);  // what the threads freed goes back, so that it is not planned for
    return TokenFileInfo{.report = text_of(figures), .end_token = supervised.end_token};
  };
  UK_TRY(cached, find_or_make_tokens(files,
                                     {.folder = options.cache_folder,
                                      .name = entry.name,
                                      .key = std::move(key),
                                      .make_anew = options.make_anew},
                                     make));
  figures.was_cached = cached.was_there;
  if (cached.was_there) UK_TRY_VOID(read_figures(cached.file.report(), figures));
  return TokenisedSet{.tokens = std::move(cached.file), .figures = std::move(figures)};
}

}  // namespace underkeel::data
