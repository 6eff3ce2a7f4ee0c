// A diagnosis as text for people and as JSON for machines.

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "doctor/doctor.h"
#include "doctor/summary.h"

namespace underkeel::doctor {
namespace {

using Json = nlohmann::ordered_json;

/// Files may ask for more bytes than 64 bits count.
std::int64_t whole_bytes(double bytes) {
  return static_cast<std::int64_t>(std::clamp(bytes, -9.2e18, 9.2e18));
}

Json memory_of(const Forecast& forecast) {
  Json memory = Json::object();
  for (std::size_t p = 0; p < phase_count; ++p) {
    Json spaces = Json::object();
    for (std::size_t s = 0; s < space_count; ++s) {
      const auto& holding = forecast.memory[p][s];
      if (!holding) continue;
      Json terms = Json::object();
      for (const Term& term : holding->terms)
        if (term.name != rounding_term)
          terms[std::string(term.name)] = whole_bytes((term.low_bytes + term.high_bytes) / 2);
      // As verdicts and sentences count.
      const double high = holding->high_without(rounding_term);
      const double middle = (holding->low() + high) / 2;
      Json one = {
          {"bytes", whole_bytes(middle)},
          {"low_bytes", whole_bytes(holding->low())},
          {"high_bytes", whole_bytes(high)},
          {"rounding_bytes", whole_bytes(holding->high() - high)},
          {"margin_bytes",
           holding->limit_bytes ? Json(whole_bytes(*holding->limit_bytes - middle)) : Json()},
          {"terms", terms}};
      spaces[std::string(name_of(static_cast<Space>(s)))] = one;
    }
    if (!spaces.empty()) memory[std::string(name_of(static_cast<Phase>(p)))] = spaces;
  }
  return memory;
}

Json engine_of(const Forecast& forecast) {
  return {{"verdict", name_of(forecast.verdict)}, {"memory", memory_of(forecast)}};
}

Json bytes_or_null(const std::optional<double>& bytes) {
  return bytes ? Json(whole_bytes(*bytes)) : Json();
}

Json alternative_of(const Alternative& row) {
  return {{"engine", name_of(row.engine)},
          {"stage", row.stage},
          {"offload_optimizer", row.offload_optimizer},
          {"offload_param", row.offload_param},
          {"recompute", row.recomputes},
          {"micro_batch", row.micro_batch},
          {"accumulation_steps", row.accumulation_steps},
          {"evaluation_batch", row.evaluation_batch > 0 ? Json(row.evaluation_batch) : Json()},
          {"verdict", name_of(row.verdict)},
          {"changes", row.changes},
          {"device_bytes", whole_bytes(row.device_bytes)},
          {"device_margin_bytes", bytes_or_null(row.device_margin_bytes)},
          {"device_least_bytes", bytes_or_null(row.device_least_bytes)},
          {"host_bytes", whole_bytes(row.host_bytes)},
          {"host_margin_bytes", bytes_or_null(row.host_margin_bytes)},
          {"host_least_bytes", bytes_or_null(row.host_least_bytes)},
          {"nvme_bytes", bytes_or_null(row.nvme_bytes)},
          {"disk_bytes", bytes_or_null(row.disk_bytes)},
          {"disk_margin_bytes", bytes_or_null(row.disk_margin_bytes)},
          {"resume", row.resume ? Json(name_of(*row.resume)) : Json()},
          {"resume_host_bytes", row.resume ? Json(whole_bytes(row.resume_host_bytes)) : Json()},
          {"keeps_state", row.saving == Saving::as_it_is},
          {"words", row.words}};
}

std::string place_of(const Finding& finding) {
  std::string place = finding.file;
  if (finding.line > 0) place += fmt::format(":{}", finding.line);
  if (!finding.key.empty()) place += fmt::format("{}{}", place.empty() ? "" : " ", finding.key);
  return printable(place, any_length);
}

}  // namespace

std::string to_json(const Diagnosis& diagnosis, Language language) {
  Json findings = Json::array();
  for (const Finding& finding : diagnosis.findings)
    findings.push_back({{"id", finding.id},
                        {"severity", name_of(finding.severity)},
                        {"certainty", name_of(finding.certainty)},
                        {"engine", name_of(finding.engine)},
                        {"file", printable(finding.file, any_length)},
                        {"line", finding.line > 0 ? Json(finding.line) : Json()},
                        {"key", printable(finding.key, any_length)},
                        {"message", message_of(finding, language)},
                        {"fix", fix_of(finding, language)}});
  Json alternatives = Json::array();
  for (const Alternative& row : diagnosis.alternatives) alternatives.push_back(alternative_of(row));
  const Json all = {{"findings", findings},
                    {"engines",
                     {{"deepspeed", engine_of(diagnosis.deepspeed)},
                      {"underkeel", engine_of(diagnosis.underkeel)}}},
                    {"alternatives", alternatives}};
  return all.dump(2) + "\n";
}

namespace {

/// A row as text; without a machine there are no margins.
std::string row_of(const Alternative& row, bool has_margins, Language language) {
  const auto margin = [&](const std::optional<double>& bytes) {
    return has_margins ? fmt::format(" {:>9}", bytes ? amount(*bytes) : "-") : std::string();
  };
  std::string ranges;
  const auto add_range = [&](std::string_view space, const std::optional<double>& least,
                             double most) {
    if (least)
      ranges += fmt::format("{} {} - {}  ", phrase(fmt::format("space.{}", space), language),
                            amount(*least), amount(most));
  };
  add_range("device", row.device_least_bytes, row.device_bytes);
  add_range("host", row.host_least_bytes, row.host_bytes);
  std::string marks;
  if (row.nvme_bytes) marks += fmt::format("nvme {}  ", amount(*row.nvme_bytes));
  if (row.gathers_weights || row.save_total_limit > 0 || row.saving != Saving::as_it_is)
    marks += fmt::format("{} {}  ", phrase("row.disk", language), amount(*row.disk_bytes));
  if (row.saving != Saving::as_it_is)
    marks += fmt::format("{}  ", phrase("disk.nothing-to-resume", language));
  else if (row.resume.value_or(Verdict::runs) != Verdict::runs)
    marks +=
        fmt::format("{} {}  ", phrase(fmt::format("row.resume-{}", name_of(*row.resume)), language),
                    amount(row.resume_host_bytes));
  return fmt::format("  {:10} {:7} {:7} {:9} {:>5} x {:<5} {:>9}{} {:>9}{}  {}{}{}\n", row.stage,
                     row.offload_optimizer, row.offload_param,
                     phrase(row.recomputes ? "table.yes" : "table.no", language), row.micro_batch,
                     row.accumulation_steps, amount(row.device_bytes),
                     margin(row.device_margin_bytes), amount(row.host_bytes),
                     margin(row.host_margin_bytes), marks, ranges, row.words);
}

/// The rows that run, of one engine, the smallest change first, five at most; where none runs those of which nobody can
/// tell: they may fit, or no machine is known.
std::string table_of(const Diagnosis& diagnosis, Engine engine, Language language) {
  constexpr std::size_t most_shown = 5;
  const auto is_of = [&](const Alternative& row, Verdict verdict) {
    return row.engine == engine && row.changes > 0 && row.verdict == verdict;
  };
  const std::vector<Alternative>& rows = diagnosis.alternatives;
  const bool any_runs = std::any_of(rows.begin(), rows.end(), [&](const Alternative& row) {
    return row.engine == engine && row.verdict == Verdict::runs;
  });
  std::vector<const Alternative*> shown;
  bool has_margins = false;
  for (const Alternative& row : rows) {
    if (!is_of(row, any_runs ? Verdict::runs : Verdict::unknown) || shown.size() == most_shown)
      continue;
    shown.push_back(&row);
    has_margins = has_margins || row.device_margin_bytes || row.host_margin_bytes;
  }
  if (shown.empty()) return {};
  const std::string title = !has_margins ? "alternatives.unknown"
                            : any_runs   ? fmt::format("alternatives.{}", name_of(engine))
                                         : "alternatives.may-fit";
  std::string text = fmt::format(
      "\n{}\n{}\n", phrase(title, language),
      phrase(has_margins ? "alternatives.header" : "alternatives.header-of-sizes", language));
  for (const Alternative* row : shown) text += row_of(*row, has_margins, language);
  return text;
}

}  // namespace

namespace {

/// An error or a warning: two lines or three.
std::string told(const Finding& finding, Language language) {
  const std::string severity = fmt::format("severity.{}", name_of(finding.severity));
  const std::string engine = fmt::format("engine.{}", name_of(finding.engine));
  const std::string certainty = fmt::format("certainty.{}", name_of(finding.certainty));
  std::string text =
      fmt::format("{} ({}, {})  {}\n  {}\n", phrase(severity, language), phrase(engine, language),
                  phrase(certainty, language), place_of(finding), message_of(finding, language));
  if (const std::string fix = fix_of(finding, language); !fix.empty())
    text += fmt::format("  {}{}\n", phrase("fix", language), fix);
  return text;
}

/// "12 KEY: " before a note whose file stands in the heading.
std::string place_in_file(const Finding& finding) {
  Finding place = finding;
  place.file.clear();
  std::string text = place_of(place);
  if (text.starts_with(':')) text.erase(0, 1);
  return text.empty() ? text : text + ": ";
}

/// Notes under one heading for each engine and file: those of both engines first, files as they first come.
std::string notes_of(const std::vector<Finding>& findings, Language language) {
  std::vector<const Finding*> left;
  for (const Finding& finding : findings)
    if (finding.severity == Severity::info) left.push_back(&finding);
  const auto rank = [](const Finding* each) {
    return each->engine == Engine::both ? -1 : static_cast<int>(each->engine);
  };
  std::stable_sort(left.begin(), left.end(),
                   [&](const Finding* a, const Finding* b) { return rank(a) < rank(b); });
  std::string text;
  while (!left.empty()) {
    const Finding& first = *left.front();
    text += fmt::format("\n{} ({}){}{}\n", phrase("severity.info", language),
                        phrase(fmt::format("engine.{}", name_of(first.engine)), language),
                        first.file.empty() ? "" : "  ", printable(first.file, any_length));
    std::erase_if(left, [&](const Finding* each) {
      if (each->engine != first.engine || each->file != first.file) return false;
      const std::string_view certainty =
          phrase(fmt::format("certainty.{}", name_of(each->certainty)), language);
      text +=
          fmt::format("  - {}{}{}\n", place_in_file(*each), message_of(*each, language),
                      each->certainty == Certainty::exact ? "" : fmt::format(" [{}]", certainty));
      if (const std::string fix = fix_of(*each, language); !fix.empty())
        text += fmt::format("    {}{}\n", phrase("fix", language), fix);
      return true;
    });
  }
  return text;
}

}  // namespace

std::string to_text(const Diagnosis& diagnosis, Language language, Engine asked) {
  std::string text = summary_of(diagnosis, language, asked);
  for (const Finding& finding : diagnosis.findings)
    if (finding.severity != Severity::info) text += "\n" + told(finding, language);
  text += notes_of(diagnosis.findings, language);
  // What fails for another reason than memory is not cured by the table.
  const auto is_short = [&](const Forecast& forecast, Engine engine) {
    return forecast.verdict != Verdict::runs &&
           std::none_of(diagnosis.alternatives.begin(), diagnosis.alternatives.end(),
                        [&](const Alternative& row) {
                          return row.engine == engine && row.changes == 0 &&
                                 row.verdict == Verdict::runs;
                        });
  };
  for (const auto& [engine, forecast] : {std::pair{Engine::deepspeed, &diagnosis.deepspeed},
                                         std::pair{Engine::underkeel, &diagnosis.underkeel}})
    if (is_short(*forecast, engine)) text += table_of(diagnosis, engine, language);
  return text;
}

}  // namespace underkeel::doctor
