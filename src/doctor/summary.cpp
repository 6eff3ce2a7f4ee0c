#include "doctor/summary.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace underkeel::doctor {
namespace {

bool is_about(const Finding& finding, Engine engine) {
  return finding.engine == Engine::both || finding.engine == engine;
}

// Findings that carry a verdict, those that tell most first.
constexpr std::string_view fits[] = {"deepspeed-fits", "underkeel-fits"};
constexpr std::string_view leaves_open[] = {
    "deepspeed-may-not-fit",       "deepspeed-long-samples-do-not-fit",
    "deepspeed-lengths-not-known", "underkeel-lengths-not-known",
    "deepspeed-not-counted",       "deepspeed-no-machine",
    "deepspeed-fits-where-known",  "memory-not-judged",
    "memory-of-unknown-model",     "underkeel-machine-unread",
    "underkeel-not-planned",       "model-elsewhere",
    "memory-without-model",        "unread-not-compared"};
// What was found of folders and files that are no run.
constexpr std::string_view judged[] = {"checkpoint-newest",      "checkpoint-whole",
                                       "checkpoint-state-whole", "weights-whole",
                                       "adapter-whole",          "model-described",
                                       "machine-described",      "machine-described-without-gpus"};

const Finding* first_named(const Diagnosis& diagnosis, Engine engine,
                           std::span<const std::string_view> ids) {
  for (const std::string_view id : ids)
    for (const Finding& finding : diagnosis.findings)
      if (finding.id == id && is_about(finding, engine)) return &finding;
  return nullptr;
}

const Finding* first_as_severe(const Diagnosis& diagnosis, Engine engine, Severity severity) {
  for (const Finding& finding : diagnosis.findings)
    if (finding.severity == severity && is_about(finding, engine)) return &finding;
  return nullptr;
}

/// What decides the verdict of an engine; null where nothing was judged.
const Finding* reason_of(const Diagnosis& diagnosis, Engine engine, Verdict verdict) {
  if (verdict == Verdict::fails) return first_as_severe(diagnosis, engine, Severity::error);
  if (verdict == Verdict::runs) return first_named(diagnosis, engine, fits);
  const Finding* told = first_named(diagnosis, engine, leaves_open);
  return told != nullptr ? told : first_as_severe(diagnosis, engine, Severity::warning);
}

std::int64_t count_of(const Diagnosis& diagnosis, Severity severity) {
  return std::count_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                       [&](const Finding& each) { return each.severity == severity; });
}

std::string figure_text(std::int64_t count) {
  return fmt::format("{}", count);
}

/// Where a finding stands, behind its headline; its key is in the words already. A verdict on memory is of all files.
std::string place_behind(const Finding& finding) {
  if (finding.line > 0) return fmt::format(" ({}:{})", finding.file, finding.line);
  const bool is_verdict =
      finding.id.starts_with("deepspeed-") || finding.id.starts_with("underkeel-");
  return finding.file.empty() || is_verdict ? std::string() : fmt::format(" ({})", finding.file);
}

/// What makes our engine run it, where that is known: its own row, or ranks that do.
std::string own_cure(const Diagnosis& diagnosis, Language language) {
  for (const Alternative& row : diagnosis.alternatives)
    if (row.engine == Engine::underkeel && row.changes > 0 && row.verdict == Verdict::runs)
      return std::string(phrase("cure.smallest", language)) + row.words;
  for (const Finding& finding : diagnosis.findings)
    if (finding.id == "underkeel-enough-ranks") return fix_of(finding, language);
  return {};
}

/// The smallest change that is known to help; else what the deciding finding asks for.
std::string fix_line(const Diagnosis& diagnosis, Engine engine, Verdict verdict,
                     const Finding& reason, Language language) {
  std::string fix;
  if (engine == Engine::underkeel && verdict == Verdict::fails) fix = own_cure(diagnosis, language);
  if (fix.empty()) fix = fix_of(reason, language);
  return fix.empty() ? fix : fmt::format("  {}{}\n", phrase("fix", language), fix);
}

std::string line_of_engines(const Diagnosis& diagnosis, std::string engines, Engine engine,
                            Verdict verdict, const Finding* reason, Language language) {
  std::string why = "@summary.nothing-told";
  std::string more;
  if (reason != nullptr) why = headline_of(*reason, language) + place_behind(*reason);
  if (verdict == Verdict::fails) {
    const auto others =
        std::count_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                      [&](const Finding& each) {
                        return each.severity == Severity::error && is_about(each, engine);
                      }) -
        1;
    if (others > 0)
      more = fmt::format("@[summary.and]{}@[summary.more-error{}]", others, others == 1 ? "" : "s");
  }
  const Finding line{.id = "summary-verdict",
                     .slots = {{"engines", std::move(engines)},
                               {"verdict", fmt::format("@verdict.{}", name_of(verdict))},
                               {"why", std::move(why)},
                               {"more", std::move(more)}}};
  return message_of(line, language) + "\n" +
         (reason != nullptr ? fix_line(diagnosis, engine, verdict, *reason, language)
                            : std::string());
}

std::string verdicts_of(const Diagnosis& diagnosis, Language language) {
  const Verdict theirs = diagnosis.deepspeed.verdict, ours = diagnosis.underkeel.verdict;
  const Finding* their_reason = reason_of(diagnosis, Engine::deepspeed, theirs);
  const Finding* our_reason = reason_of(diagnosis, Engine::underkeel, ours);
  if (theirs == ours && their_reason == our_reason)
    return line_of_engines(diagnosis, "@engine.both", Engine::underkeel, ours, our_reason,
                           language);
  return line_of_engines(diagnosis, "@engine.deepspeed", Engine::deepspeed, theirs, their_reason,
                         language) +
         line_of_engines(diagnosis, "@engine.underkeel", Engine::underkeel, ours, our_reason,
                         language);
}

/// Of files and folders without a run: what is wrong, and what was found whole.
std::string judged_of(const Diagnosis& diagnosis, Language language) {
  constexpr std::size_t most = 3;
  std::vector<const Finding*> told;
  const auto take = [&](const auto& is_wanted) {
    for (const Finding& finding : diagnosis.findings)
      if (told.size() < most && is_wanted(finding)) told.push_back(&finding);
  };
  take([](const Finding& each) { return each.severity == Severity::error; });
  for (const std::string_view id : judged) take([&](const Finding& each) { return each.id == id; });
  take([](const Finding& each) { return each.severity == Severity::warning; });
  if (told.empty()) take([](const Finding&) { return true; });
  std::string text = message_of({.id = "summary-no-run"}, language) + "\n";
  if (told.empty())
    text += fmt::format("  {}\n", message_of({.id = "summary-nothing-wrong"}, language));
  for (const Finding* each : told)
    text += fmt::format("  {}{}\n", headline_of(*each, language), place_behind(*each));
  return text;
}

}  // namespace

namespace {

/// Where each clause of the first line ends, brackets left whole; the last is the line's own end.
std::vector<std::size_t> clause_ends(std::string_view message, Language language) {
  const std::string_view mark = language == Language::chinese ? "；" : "; ";
  std::vector<std::size_t> ends;
  int depth = 0;
  std::size_t at = 0;
  for (; at < message.size() && message[at] != '\n'; ++at) {
    const std::string_view rest = message.substr(at);
    if (rest[0] == '(' || rest.starts_with("（")) ++depth;
    if (rest[0] == ')' || rest.starts_with("）")) --depth;
    if (depth <= 0 && rest.starts_with(mark)) ends.push_back(at);
  }
  ends.push_back(at);
  return ends;
}

/// The clause to end with: as many as are a line, at least one, and no list of parts.
std::size_t last_clause(std::string_view message, const std::vector<std::size_t>& ends,
                        Language language) {
  const bool is_chinese = language == Language::chinese;
  // A Chinese sign has three bytes, and is as wide as two letters.
  const std::size_t longest = is_chinese ? 210 : 150;
  const std::string_view parts = is_chinese ? "；最大的几项：" : "; largest: ";
  std::size_t last = 0;
  while (last + 1 < ends.size() && ends[last + 1] <= longest &&
         !message.substr(ends[last]).starts_with(parts))
    ++last;
  return last;
}

/// The figures in a text, each once.
std::set<std::string, std::less<>> figures_in(std::string_view text) {
  std::set<std::string, std::less<>> figures;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() &&
           (is_digit(text[end]) ||
            (text[end] == '.' && end + 1 < text.size() && is_digit(text[end + 1]))))
      ++end;
    figures.emplace(text.substr(at, end - at));
    at = end;
  }
  return figures;
}

}  // namespace

std::string headline_of(const std::string& message, Language language) {
  const auto ends = clause_ends(message, language);
  return message.substr(0, ends[last_clause(message, ends, language)]);
}

std::string headline_of(const Finding& finding, Language language) {
  const std::string english = message_of(finding, Language::english);
  const std::string chinese = message_of(finding, Language::chinese);
  const auto ends = clause_ends(english, Language::english);
  const auto chinese_ends = clause_ends(chinese, Language::chinese);
  // Both end where they have told the same figures; English clauses decide, fewer of them before more.
  const std::size_t wanted = last_clause(english, ends, Language::english);
  std::vector<std::size_t> tries;
  for (std::size_t clause = wanted + 1; clause-- > 0;) tries.push_back(clause);
  for (std::size_t clause = wanted + 1; clause < ends.size(); ++clause) tries.push_back(clause);
  for (const std::size_t clause : tries) {
    const auto figures = figures_in(std::string_view(english).substr(0, ends[clause]));
    std::optional<std::size_t> twin;
    for (std::size_t other = 0; other < chinese_ends.size(); ++other) {
      const bool is_whole = other + 1 == chinese_ends.size();
      if (is_whole != (clause + 1 == ends.size()) && twin) continue;
      if (figures_in(std::string_view(chinese).substr(0, chinese_ends[other])) == figures &&
          (!twin || other <= clause))
        twin = other;
    }
    if (!twin) continue;
    return language == Language::english ? english.substr(0, ends[clause])
                                         : chinese.substr(0, chinese_ends[*twin]);
  }
  return headline_of(language == Language::english ? english : chinese, language);
}

std::string summary_of(const Diagnosis& diagnosis, Language language, Engine asked) {
  const int code = exit_code_of(diagnosis, asked);
  const Engine other = asked == Engine::underkeel ? Engine::deepspeed : Engine::underkeel;
  const int other_code = exit_code_of(diagnosis, other);
  const std::int64_t errors = count_of(diagnosis, Severity::error);
  const std::int64_t warnings = count_of(diagnosis, Severity::warning);
  Finding counts{.id = "summary-counts",
                 .slots = {{"errors", figure_text(errors)},
                           {"warnings", figure_text(warnings)},
                           {"notes", figure_text(count_of(diagnosis, Severity::info))}}};
  Finding exit{.id = diagnosis.is_of_run || code != other_code ? "summary-exit-code"
                                                               : "summary-exit-code-of-files",
               .slots = {{"code", figure_text(code)},
                         {"engine", fmt::format("@engine.{}", name_of(asked))},
                         {"flag", std::string(name_of(other))},
                         {"other", figure_text(other_code)}}};
  return (diagnosis.is_of_run ? verdicts_of(diagnosis, language) : judged_of(diagnosis, language)) +
         message_of(counts, language) + message_of(exit, language) + "\n";
}

}  // namespace underkeel::doctor
