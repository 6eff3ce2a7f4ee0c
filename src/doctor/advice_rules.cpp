#include "doctor/advice_rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/printable.h"
#include "doctor/advice_clauses.h"
#include "doctor/advice_keys.h"
#include "doctor/advice_text.h"
#include "doctor/advice_words.h"
#include "doctor/config_rules.h"

namespace underkeel::doctor {
namespace {

/// Whether the config has the rule's key with its value.
bool follows(const spec::Value& config, const AdviceRule& rule) {
  if (rule.key.empty()) return false;
  // Keys that never existed are written at the top level or in zero_optimization.
  const spec::Value* value = value_at(config, rule.key);
  if (value == nullptr && rule.key.find('.') == std::string_view::npos)
    value = value_at(config, fmt::format("zero_optimization.{}", rule.key));
  if (value == nullptr || (value->kind == spec::ValueKind::text && value->text == "auto"))
    return false;
  if (rule.value.empty()) return true;
  if (value->kind == spec::ValueKind::boolean)
    return rule.value == (value->boolean ? "true" : "false");
  const auto number = spec::to_double(*value);
  return number && spec::parse_double(rule.value) == number;
}

std::string_view phrase_of(Truth truth) {
  constexpr std::string_view names[] = {"@advice.true", "@advice.half", "@advice.false",
                                        "@advice.unknown"};
  return names[static_cast<std::size_t>(truth)];
}

Truth truth_named(std::string_view phrase) {
  for (const Truth truth : {Truth::is_true, Truth::is_half})
    if (phrase == phrase_of(truth)) return truth;
  return Truth::is_false;
}

/// Of the rule itself, or of the figures of the run at hand that decide it.
Truth truth_of(const AdviceRule& rule, const std::map<std::string, std::string>& figures) {
  if (rule.decided_by.empty()) return rule.truth;
  const auto judged = figures.find(fmt::format("{}_truth", rule.decided_by));
  if (judged == figures.end())
    return figures.at(fmt::format("{}_fits", rule.decided_by)) == "@fits.yes" ? Truth::is_true
                                                                              : Truth::is_false;
  return truth_named(judged->second);
}

/// Of the contrary of a statement.
Truth contrary_of(Truth truth) {
  return truth == Truth::is_true    ? Truth::is_false
         : truth == Truth::is_false ? Truth::is_true
                                    : truth;
}

std::vector<Slot> slots_for(const Wording& wording,
                            const std::map<std::string, std::string>& figures,
                            std::string_view verdict) {
  std::vector<Slot> slots = {{"truth", std::string(verdict)}};
  for (const std::string_view pattern : {wording.message.english, wording.fix.english})
    for (std::size_t open = pattern.find('{'); open != std::string_view::npos;
         open = pattern.find('{', open + 1)) {
      const std::string name(pattern.substr(open + 1, pattern.find('}', open) - open - 1));
      if (const auto figure = figures.find(name); figure != figures.end())
        slots.push_back({name, figure->second});
    }
  return slots;
}

/// Beside a model alone, advice is answered for full fine-tuning of it.
std::optional<MemoryCase> case_of_advice(const Question& question, const Inputs& inputs) {
  auto memory = memory_case(question, inputs);
  if (memory || !inputs.model) return memory;
  MemoryCase bare;
  bare.model = &*inputs.model;
  bare.run.is_lora = false;
  bare.sizes = sizes_of(*inputs.model);
  bare.limits = limits_of(question, inputs);
  bare.ranks = static_cast<double>(inputs.ranks.count);
  bare.ranks_on_node = static_cast<double>(inputs.ranks.on_node);
  return bare;
}

bool has_effect_cue(const Clause& clause) {
  return std::any_of(clause.cues.begin(), clause.cues.end(),
                     [](const Cue& cue) { return cue.is_of_effect; });
}

/// Where nobody named a model, and a sentence names a machine.
MemoryCase case_of_default() {
  static const spec::ModelSpec model = default_model();
  MemoryCase bare;
  bare.model = &model;
  bare.run.is_lora = false;
  bare.sizes = sizes_of(model);
  return bare;
}

/// What a sentence says of a rule's subject.
struct Reading {
  bool is_denied = false;
  bool is_of_effect = false;  // denied is what the setting does, not that it should be made
  AskedNumber asked;
};

/// The clause that has most of the words decides; a word that stands in another one alone can be denied there.
Reading reading_of(const AdviceRule& rule, const std::string& sentence,
                   const std::vector<Clause>& clauses,
                   const std::vector<std::vector<Stretch>>& groups) {
  const auto stands_in = [](const std::vector<Stretch>& group, const Clause& clause) {
    return std::any_of(group.begin(), group.end(),
                       [&](const Stretch& each) { return clause.at.holds(each.begin); });
  };
  std::vector<Stretch> recognised;
  for (const auto& group : groups) recognised.insert(recognised.end(), group.begin(), group.end());
  const Clause* main = nullptr;
  std::ptrdiff_t most = 0;
  for (const Clause& clause : clauses) {
    const auto count = std::count_if(groups.begin(), groups.end(),
                                     [&](const auto& group) { return stands_in(group, clause); });
    if (count <= most) continue;
    most = count;
    main = &clause;
  }
  Reading reading{.asked = {.quantity = rule.number}};
  if (main == nullptr) return reading;
  const Heard heard{.switches = rule.is_action, .fit = rule.claims_fit};
  reading.is_denied = is_denied(*main, recognised, heard);
  reading.is_of_effect = reading.is_denied && has_effect_cue(*main);
  for (const auto& group : groups) {
    if (stands_in(group, *main)) continue;
    for (const Clause& clause : clauses)
      if (stands_in(group, clause)) {
        reading.is_denied = reading.is_denied || is_denied(clause, recognised, heard);
        break;
      }
  }
  for (const Clause& clause : clauses)
    if (clause.at.begin >= main->at.end && rejects(sentence, clause) &&
        std::none_of(groups.begin(), groups.end(),
                     [&](const auto& group) { return stands_in(group, clause); }))
      reading.is_denied = !reading.is_denied;
  if (const auto has_more = first_has_more(sentence, rule.sides, rule.scale); has_more == false)
    reading.is_denied = !reading.is_denied;
  if (rule.claims_fit || !rule.amount_of.empty()) reading.asked.machine = machine_said(sentence);
  // "10 GB" may be a word of the advice itself.
  reading.asked.amount =
      amount_said(sentence, rule.amount_of.empty() ? recognised : std::vector<Stretch>{});
  Stretch subject = groups.front().front();
  for (const Stretch& each : groups.front())
    if (main->at.holds(each.begin)) {
      subject = each;
      break;
    }
  reading.asked.said = number_said(sentence, main->at, subject, rule.number);
  if (!reading.asked.said)  // "batch size: in my case, 2"
    reading.asked.said = number_said(sentence, {0, sentence.size()}, subject, rule.number);
  return reading;
}

/// The words of all rules, read once for a sentence.
AdviceWords words_of(const std::vector<AdviceRule>& rules) {
  std::vector<std::string_view> patterns;
  patterns.reserve(rules.size());
  for (const AdviceRule& rule : rules) patterns.push_back(rule.words);
  return AdviceWords(patterns);
}

/// The first bytes of a sentence of others, to find it by.
std::string beginning_of(std::string_view sentence) {
  constexpr std::size_t most_bytes = 80;
  std::string shown;
  bool is_whole = true;
  for (std::size_t at = 0; at < sentence.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(sentence.substr(at)));
    is_whole = at + length <= most_bytes;
    if (!is_whole) break;
    const std::string_view letter = sentence.substr(at, length);
    shown += letter == "`" ? "'" : letter;
    at += length;
  }
  while (!shown.empty() && shown.back() == ' ') shown.pop_back();
  return is_whole ? shown : shown + "...";
}

class AdviceReader {
 public:
  AdviceReader(const Question& question, const Inputs& inputs, Diagnosis& diagnosis)
      : question_(question), inputs_(inputs), diagnosis_(diagnosis), rules_(all_advice()) {}

  void read_config() {
    const spec::Value& config = inputs_.deepspeed->root;
    for (const AdviceRule& rule : rules_) {
      // At stage 0 what stands in zero_optimization does nothing, whoever recommends it.
      const bool acts = !rule.key.starts_with("zero_optimization") || stage_in(config) > 0;
      if (acts && follows(config, rule))
        tell(rule, {}, inputs_.deepspeed->file, line_of(config, rule.key));
    }
  }

  void read_text(const Document& document) {
    AdviceWords sought = words_of(rules_);
    std::vector<Told> told;
    std::size_t passed_over = 0, sentences = 0;
    Sentence first;
    for (const Sentence& sentence : sentences_of(document.text)) {
      if (!has_content(sentence.text)) continue;
      ++sentences;
      if (!sentence.is_question && read_sentence(sentence, document, sought, told)) continue;
      if (++passed_over == 1) first = sentence;
    }
    if (passed_over == sentences)
      diagnosis_.findings.push_back({.id = "advice-not-recognised",
                                     .severity = Severity::warning,
                                     .certainty = Certainty::folklore,
                                     .engine = Engine::deepspeed,
                                     .file = document.file,
                                     .slots = {{"sentences", fmt::format("{}", sentences)},
                                               {"first", beginning_of(first.text)}}});
    else if (passed_over > 0)
      diagnosis_.findings.push_back({.id = "advice-passed-over",
                                     .severity = Severity::info,
                                     .certainty = Certainty::folklore,
                                     .engine = Engine::deepspeed,
                                     .file = document.file,
                                     .line = first.line,
                                     .slots = {{"count", fmt::format("{}", passed_over)},
                                               {"sentences", fmt::format("{}", sentences)},
                                               {"first", beginning_of(first.text)}}});
  }

 private:
  struct Told {
    std::string_view id;
    Reading reading;
  };
  // Of one piece of advice with ever other numbers.
  static constexpr std::ptrdiff_t most_of_a_kind = 4;

  /// Whether any of it was recognised.
  bool read_sentence(const Sentence& sentence, const Document& document, AdviceWords& sought,
                     std::vector<Told>& told) {
    const std::string plain = normalised(sentence.text);
    sought.read(plain);
    std::vector<std::string_view> here;  // a rule may have several patterns
    std::vector<Clause> clauses;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (!sought.has(i)) continue;
      const AdviceRule& rule = of_this_run(rules_[i]);
      if (!rules_[i].unless.empty() &&
          std::find(here.begin(), here.end(), rules_[i].unless) != here.end())
        continue;
      if (std::find(here.begin(), here.end(), rule.id) != here.end()) continue;
      here.push_back(rule.id);
      const auto same_kind = [&](const Told& each) { return each.id == rule.id; };
      if (std::count_if(told.begin(), told.end(), same_kind) >= most_of_a_kind) continue;
      if (clauses.empty()) clauses = clauses_of(plain);
      const Reading reading = reading_of(rules_[i], plain, clauses, sought.places(i));
      const bool is_told = std::any_of(told.begin(), told.end(), [&](const Told& each) {
        return same_kind(each) && each.reading.is_denied == reading.is_denied &&
               each.reading.asked == reading.asked;
      });
      if (is_told) continue;
      told.push_back({rule.id, reading});
      tell(rule, reading, document.file, sentence.line);
    }
    // Where the number is a rule's own, the rule has answered for it.
    const bool has_number = std::any_of(rules_.begin(), rules_.end(), [&](const AdviceRule& rule) {
      return rule.number != Quantity::none &&
             std::find(here.begin(), here.end(), rule.id) != here.end();
    });
    const auto key = has_number ? std::nullopt : key_said(plain);
    if (key) tell_key(*key, plain, document.file, sentence.line);
    return key || !here.empty();
  }

  /// Of a key that a sentence names with a value: the run with it.
  void tell_key(const SaidKey& key, const std::string& sentence, const std::string& file,
                int line) {
    const bool is_told = std::find(told_keys_.begin(), told_keys_.end(), key) != told_keys_.end();
    if (is_told || std::ssize(told_keys_) >= most_of_a_kind * most_of_a_kind) return;
    told_keys_.push_back(key);
    figures_of({}, file);  // the case at hand
    KeyAnswer answer = answer_to_key(key, memory_, inputs_);
    bool is_against = false;
    for (const Clause& clause : clauses_of(sentence))
      if (clause.at.holds(key.words.front().begin))
        is_against = is_denied(clause, key.words, {.switches = true});
    const std::string_view verdict = answer.truth;
    answer.slots.push_back({"truth", is_against
                                         ? fmt::format("@advice.against-{}", verdict.substr(8))
                                         : std::string(verdict)});
    const bool is_false = verdict == phrase_of(Truth::is_false);
    diagnosis_.findings.push_back(
        {.id = answer.id,
         .severity = is_false && !is_against ? Severity::warning : Severity::info,
         .certainty = Certainty::folklore,
         .engine = Engine::deepspeed,
         .file = file,
         .line = line,
         .slots = std::move(answer.slots)});
  }

  const AdviceRule& of_this_run(const AdviceRule& rule) const {
    if (!inputs_.run) return rule;
    const std::string_view id =
        run_facts(inputs_.run->root).is_lora ? rule.on_lora_run : rule.on_full_run;
    if (id.empty()) return rule;
    const auto other = std::find_if(rules_.begin(), rules_.end(),
                                    [&](const AdviceRule& each) { return each.id == id; });
    UK_CHECK(other != rules_.end(), fmt::format("no advice `{}`", id));
    return *other;
  }

  const std::map<std::string, std::string>& figures_of(const AskedNumber& asked,
                                                       const std::string& file) {
    if (figures_.empty()) {
      memory_ = case_of_advice(question_, inputs_);
      figures_ = advice_figures(memory_, inputs_.deepspeed ? &inputs_.deepspeed->root : nullptr);
      add_run_figures(memory_, inputs_, AskedNumber{}, figures_);
      if (!memory_ || !memory_->limits.device)
        diagnosis_.findings.push_back(
            {.id = memory_ ? "advice-without-machine" : "advice-without-model",
             .engine = Engine::deepspeed,
             .file = file,
             .slots = {{"ranks", figures_.at("ranks")}, {"card", figures_.at("card")}}});
    }
    if (asked == AskedNumber{.quantity = asked.quantity}) return figures_;
    figures_of_number_ = figures_;
    std::optional<MemoryCase> memory = memory_;
    if (asked.machine != SaidMachine{} || asked.amount) {
      if (!memory) memory = case_of_default();
      suppose(asked.machine, *memory);
      figures_of_number_ =
          advice_figures(memory, inputs_.deepspeed ? &inputs_.deepspeed->root : nullptr);
      add_run_figures(memory, inputs_, {.quantity = Quantity::none, .amount = asked.amount},
                      figures_of_number_);
    }
    if (asked.said) add_run_figures(memory, inputs_, asked, figures_of_number_);
    return figures_of_number_;
  }

  void tell(const AdviceRule& rule, const Reading& reading, const std::string& file, int line) {
    const auto& figures = figures_of(reading.asked, file);
    const Truth of_rule =
        reading.asked.amount && !rule.amount_of.empty()
            ? truth_named(figures.at(fmt::format("{}_amount_truth", rule.amount_of)))
            : truth_of(rule, figures);
    const bool is_against =
        reading.is_denied && rule.is_action && !reading.is_of_effect && !reading.asked.amount;
    const Truth truth = reading.is_denied && !is_against ? contrary_of(of_rule) : of_rule;
    // What is true of something without its number may be wrong of that number.
    const bool is_unanswered =
        reading.asked.amount && rule.amount_of.empty() && truth != Truth::is_false;
    const std::string verdict = is_unanswered ? "@advice.not-this-number"
                                : is_against
                                    ? fmt::format("@advice.against-{}", phrase_of(truth).substr(8))
                                    : std::string(phrase_of(truth));
    diagnosis_.findings.push_back(
        {.id = std::string(rule.id),
         .severity = truth == Truth::is_false && !is_against ? Severity::warning : Severity::info,
         .certainty = Certainty::folklore,
         .engine = Engine::deepspeed,
         .file = file,
         .key = std::string(rule.key),
         .line = line,
         .slots = slots_for(*find_wording(rule.id), figures, verdict)});
  }

  const Question& question_;
  const Inputs& inputs_;
  Diagnosis& diagnosis_;
  std::vector<AdviceRule> rules_;
  std::vector<SaidKey> told_keys_;
  std::optional<MemoryCase> memory_;
  std::map<std::string, std::string> figures_;
  std::map<std::string, std::string>
      figures_of_number_;  // likewise, as a number of the text makes them
};

}  // namespace

std::vector<AdviceRule> all_advice() {
  std::vector<AdviceRule> rules;
  for (const auto& table : {config_advice(), run_advice(), method_advice()})
    rules.insert(rules.end(), table.begin(), table.end());
  return rules;
}

void look_at_advice(const Question& question, const Inputs& inputs, Diagnosis& diagnosis) {
  AdviceReader reader(question, inputs, diagnosis);
  if (inputs.deepspeed) reader.read_config();
  for (const Document& document : inputs.others)
    if (document.kind == FileKind::advice) reader.read_text(document);
}

}  // namespace underkeel::doctor
