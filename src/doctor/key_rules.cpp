#include "doctor/key_rules.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/nearest_word.h"
#include "doctor/config_rules.h"
#include "doctor/key_tables.h"
#include "doctor/key_values.h"
#include "spec/fields.h"

namespace underkeel::doctor {
namespace {

using spec::Value;
using spec::ValueKind;

/// Names that say nothing about where they belong.
bool is_common_name(std::string_view key) {
  return key == "enabled" || key == "type" || key == "params" || key == "profile" ||
         key == "version" || key == "names" || key == "classes" || key == "dtype";
}

std::string join_key(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
}

/// "`none`, `cpu`, `nvme`".
std::string listed(std::string_view alternatives) {
  std::string text;
  while (true) {
    const std::size_t bar = alternatives.find('|');
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", alternatives.substr(0, bar));
    if (bar == std::string_view::npos) return text;
    alternatives.remove_prefix(bar + 1);
  }
}

class Checker {
 public:
  explicit Checker(const KeyQuestion& question) : question_(question) {}

  std::vector<Finding> check() {
    const Value& root = question_.config.root;
    if (root.kind != ValueKind::mapping) return {};
    stage_ = stage_in(root);
    if (question_.passes_accelerate && root.find("zero_optimization") == nullptr)
      findings_.push_back({.id = "zero-is-missing",
                           .severity = Severity::error,
                           .engine = Engine::deepspeed,
                           .file = question_.config.file,
                           .key = "zero_optimization"});
    check_section(*find_section(""), root);
    if (unsearched_count_ > 0)
      findings_.push_back(
          {.id = "more-of-a-kind",
           .severity = Severity::warning,
           .engine = Engine::deepspeed,
           .file = question_.config.file,
           .slots = {{"count", fmt::format("{}", unsearched_count_)}, {"kind", "key-unknown"}}});
    tell_autos();
    return std::move(findings_);
  }

 private:
  void tell(std::string_view id, Severity severity, std::string_view section,
            const spec::Entry& entry, std::vector<Slot> slots) {
    slots.push_back({"key", entry.key});
    findings_.push_back({.id = std::string(id),
                         .severity = severity,
                         .engine = Engine::deepspeed,
                         .file = question_.config.file,
                         .key = join_key(section, entry.key),
                         .line = entry.key_place.line,
                         .slots = std::move(slots)});
  }

  void check_section(const SectionTable& table, const Value& mapping) {
    const bool params_of_another = is_of_another_class(table.section.name);
    for (const spec::Entry& entry : mapping.entries) {
      const KeyRule* rule = find_key(table, entry.key);
      if (rule == nullptr) {
        if (!table.section.is_open && !params_of_another)
          tell_unknown(table, entry);
        else if (params_of_another && entry.value.kind == ValueKind::text &&
                 entry.value.text == "auto")
          check_auto(table.section, entry);
        continue;
      }
      check_known(table, *rule, entry);
      const SectionTable* inner = find_section(join_key(table.section.name, entry.key));
      if (inner != nullptr && entry.value.kind == ValueKind::mapping)
        check_section(*inner, entry.value);
    }
  }

  /// Whether the section has arguments of a class of torch's, which are not in our tables.
  bool is_of_another_class(std::string_view section) const {
    const Value& root = question_.config.root;
    if (section == "optimizer.params") return !is_adam(root);
    const auto scheduler = text_at(root, "scheduler.type");
    return section == "scheduler.params" && scheduler && !is_own_scheduler(*scheduler);
  }

  static bool is_adam(const Value& root) {
    std::string type = text_at(root, "optimizer.type").value_or("adam");
    std::transform(type.begin(), type.end(), type.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return type == "adam" || type == "adamw";
  }

  void tell_unknown(const SectionTable& table, const spec::Entry& entry) {
    // The search for the nearest key takes its time; of a hostile file the first keys are enough.
    constexpr int most_searched = 200;
    if (unknown_count_ == most_searched) {
      ++unsearched_count_;
      return;
    }
    ++unknown_count_;
    const Section& section = table.section;
    const bool is_ignored = section.reader == Reader::lookup;
    const Severity severity = is_ignored ? Severity::warning : Severity::error;
    const std::string does = is_ignored                           ? "@does.ignores"
                             : section.reader == Reader::pydantic ? "@does.rejects"
                                                                  : "@does.type-error";
    const std::string place = section.name.empty() ? "@top-level" : std::string(section.name);
    const bool loss_scale_in_bf16 =
        section.name.starts_with("bf") && find_key(*find_section("fp16"), entry.key) != nullptr;
    if (loss_scale_in_bf16)
      return tell("key-loss-scale-in-bf16", severity, section.name, entry, {});
    const auto homes = sections_of(entry.key);
    if (!is_common_name(entry.key) && !homes.empty()) {
      std::string where;
      for (const SectionTable* home : homes)
        where += fmt::format("{}{}", where.empty() ? "" : " / ",
                             join_key(home->section.name, entry.key));
      return tell("key-misplaced", severity, section.name, entry,
                  {{"section", place}, {"home", where}, {"does", does}});
    }
    std::vector<std::string> known;
    for (const KeyRule& rule : table.keys) known.emplace_back(rule.key);
    std::string nearest = nearest_word(entry.key, known);
    for (const std::string& each : known)
      if (lower_case(entry.key) == each) nearest = each;  // any number of letters away
    if (!nearest.empty())
      return tell("key-misspelt", severity, section.name, entry,
                  {{"section", place}, {"nearest", nearest}, {"does", does}});
    tell("key-unknown", severity, section.name, entry, {{"section", place}, {"does", does}});
  }

  void check_known(const SectionTable& table, const KeyRule& rule, const spec::Entry& entry) {
    const std::string_view section = table.section.name;
    const Value& value = entry.value;
    if (!rule.special.empty()) {
      const bool stops = rule.special == "key-in-docs-only" || rule.special == "key-max-grad-norm";
      const bool changes_nothing = rule.special == "key-dead" ||
                                   rule.special == "key-practically-dead" ||
                                   rule.special == "key-activation-checkpointing";
      tell(rule.special,
           stops             ? Severity::error
           : changes_nothing ? Severity::info
                             : Severity::warning,
           section, entry, {});
    }
    check_spelling(table, rule, entry);
    const bool is_auto = value.kind == ValueKind::text && value.text == "auto";
    // A section is looked into; of one that is a word nobody fills anything in.
    if (is_auto && section.empty() && rule.type == ValueType::mapping)
      return tell_wrong_type(table.section, rule, entry);
    // Where it is the default DeepSpeed itself knows the word.
    if (is_auto && rule.fallback == "auto") return;
    if (is_auto) return check_auto(table.section, entry);
    if (value.kind == ValueKind::null && rule.fallback == "null") return;
    if (section.empty() && entry.key == "zero_optimization" && value.kind == ValueKind::boolean)
      return tell("zero-as-boolean", Severity::warning, section, entry,
                  {{"found", spec::shown(value)}, {"stage", value.boolean ? "1" : "0"}});
    const Fit fit = fit_of(value, rule, table.section.reader);
    if (fit == Fit::wrong) return tell_wrong_type(table.section, rule, entry);
    if (fit == Fit::quoted)
      tell("value-quoted", Severity::warning, section, entry,
           {{"found", spec::shown(value)}, {"wanted", std::string(phrase_of(rule.type))}});
    if (fit == Fit::boolean)
      tell("value-boolean", Severity::warning, section, entry,
           {{"found", spec::shown(value)}, {"number", value.boolean ? "1" : "0"}});
    check_range(table.section, rule, entry);
    check_stage(table, rule, entry);
  }

  void check_spelling(const SectionTable& table, const KeyRule& rule, const spec::Entry& entry) {
    if (rule.other.empty()) return;
    const Value* parent = value_at(question_.config.root, table.section.name);
    const bool has_both = parent != nullptr && parent->find(rule.other) != nullptr;
    const std::string_view section = table.section.name;
    if (has_both && (rule.is_old || std::string_view(rule.key) > rule.other))
      tell("key-two-spellings", Severity::error, section, entry,
           {{"other", std::string(rule.other)},
            {"does", rule.is_old ? "@does.asserts" : "@does.rejects"}});
    else if (rule.is_old)
      tell("key-deprecated", Severity::warning, section, entry,
           {{"new", rule.other.starts_with("offload")
                        ? fmt::format("{}: {{\"device\": \"cpu\"}}", rule.other)
                        : std::string(rule.other)}});
  }

  void check_auto(const Section& section, const spec::Entry& entry) {
    const std::string_view filling = filling_of(section.name, entry.key);
    if (filling.empty())  // which program starts the config is not known without a run file
      return tell("auto-nobody-fills",
                  question_.auto_is_filled_in ? Severity::error : Severity::warning, section.name,
                  entry, {});
    if (question_.auto_is_filled_in) return;
    if (auto_count_++ == 0) first_auto_line_ = entry.key_place.line;
    autos_ += fmt::format("{}{} <- {}", autos_.empty() ? "" : "; ",
                          join_key(section.name, entry.key), filling);
  }

  /// One finding for all keys that wait for the Trainer.
  void tell_autos() {
    if (auto_count_ == 0) return;
    findings_.push_back({.id = "auto-waits-for-trainer",
                         .engine = Engine::deepspeed,
                         .file = question_.config.file,
                         .line = first_auto_line_,
                         .slots = {{"count", fmt::format("{}", auto_count_)}, {"keys", autos_}}});
  }

  /// The HF Trainer compares these with its own arguments before it hands the config to DeepSpeed.
  static bool is_compared_key(std::string_view key) {
    constexpr std::string_view keys[] = {"gradient_accumulation_steps",
                                         "gradient_clipping",
                                         "optimizer.params.betas",
                                         "optimizer.params.eps",
                                         "optimizer.params.lr",
                                         "optimizer.params.weight_decay",
                                         "scheduler.params.warmup_max_lr",
                                         "scheduler.params.warmup_num_steps",
                                         "train_batch_size",
                                         "train_micro_batch_size_per_gpu"};
    return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
  }

  void tell_wrong_type(const Section& section, const KeyRule& rule, const spec::Entry& entry) {
    const Value& value = entry.value;
    Effect effect = effect_of_wrong_type(section, rule, value);
    const bool is_compared = section.reader != Reader::pydantic && question_.is_compared &&
                             value.kind != ValueKind::number &&
                             is_compared_key(join_key(section.name, entry.key));
    if (is_compared) effect = {.does = "@does.trainer-stops", .severity = Severity::error};
    tell("value-wrong-type", effect.severity, section.name, entry,
         {{"found", spec::shown(value)},
          {"kind", fmt::format("@kind.{}", static_cast<int>(value.kind))},
          {"wanted", std::string(phrase_of(rule.type))},
          {"does", std::string(effect.does)}});
  }

  void check_range(const Section& section, const KeyRule& rule, const spec::Entry& entry) {
    const Value& value = entry.value;
    const auto [does, severity] = effect_out_of_range(section, rule);
    if (rule.type == ValueType::choice && !is_choice(rule, value.text))
      return tell("value-not-a-choice", severity, section.name, entry,
                  {{"found", spec::shown(value)},
                   {"choices", listed(rule.choices)},
                   {"does", std::string(does)}});
    if (rule.type != ValueType::whole && rule.type != ValueType::number) return;
    if (is_in_range(value, rule)) return;
    const auto bound = [](double limit) { return fmt::format("{}", limit); };
    tell("value-out-of-range", severity, section.name, entry,
         {{"found", spec::shown(value)},
          {"range", rule.most < 1e300 ? fmt::format("{} - {}", bound(rule.least), bound(rule.most))
                                      : fmt::format(">= {}", bound(rule.least))},
          {"does", std::string(does)}});
  }

  /// A value that is the default changes nothing anyway.
  bool is_default(const KeyRule& rule, const Value& value) const {
    if (value.kind == ValueKind::boolean)
      return rule.fallback == (value.boolean ? "true" : "false");
    const auto number = spec::to_double(value);
    return number && spec::parse_double(rule.fallback) == number;
  }

  void check_stage(const SectionTable& table, const KeyRule& rule, const spec::Entry& entry) {
    const bool acts = rule.stages.empty() ||
                      rule.stages.find(static_cast<char>('0' + stage_)) != std::string_view::npos;
    if (acts || is_default(rule, entry.value)) return;
    if (rule.type == ValueType::mapping && entry.key.starts_with("offload")) {
      const auto device = text_at(entry.value, "device").value_or("none");
      if (device == "none") return;
      return tell("offload-without-effect", Severity::warning, table.section.name, entry,
                  {{"stage", fmt::format("{}", stage_)}, {"stages", joined(rule.stages)}});
    }
    tell("key-without-effect-at-stage", Severity::info, table.section.name, entry,
         {{"stage", fmt::format("{}", stage_)}, {"stages", joined(rule.stages)}});
  }

  static std::string joined(std::string_view digits) {
    std::string text;
    for (const char digit : digits) text += fmt::format("{}{}", text.empty() ? "" : ", ", digit);
    return text;
  }

  const KeyQuestion& question_;
  int stage_ = 0;
  std::string autos_;  // "key <- what fills it; ..."
  int auto_count_ = 0, first_auto_line_ = 0;
  int unknown_count_ = 0, unsearched_count_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check_keys(const KeyQuestion& question) {
  return Checker(question).check();
}

}  // namespace underkeel::doctor
