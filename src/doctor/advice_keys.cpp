#include "doctor/advice_keys.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "doctor/advice_rules.h"
#include "doctor/advice_sheet.h"
#include "doctor/alternative_words.h"
#include "doctor/config_rules.h"
#include "doctor/key_tables.h"

namespace underkeel::doctor {
namespace {

constexpr std::string_view sections_of_memory[] = {"", "zero_optimization", "data_types"};
// Of these the numbers of a run decide, or what is saved, and they have answers of their own.
constexpr std::string_view answered_elsewhere[] = {"train_batch_size",
                                                   "train_micro_batch_size_per_gpu",
                                                   "gradient_accumulation_steps",
                                                   "zero_force_ds_cpu_optimizer",
                                                   "stage3_gather_16bit_weights_on_model_save",
                                                   "gather_16bit_weights_on_model_save",
                                                   "stage3_gather_fp16_weights_on_model_save",
                                                   "cpu_offload_use_pin_memory"};

struct NamedKey {
  const SectionTable* table = nullptr;
  const KeyRule* rule = nullptr;
  Stretch at;
};

bool is_bounded(std::string_view text, const Stretch& at) {
  return (at.begin == 0 || !is_of_name(text[at.begin - 1])) &&
         (at.end == text.size() || !is_of_name(text[at.end]));
}

/// The first key of a sentence.
std::optional<NamedKey> named_key(std::string_view sentence) {
  std::optional<NamedKey> first;
  for (const std::string_view section : sections_of_memory) {
    const SectionTable* table = find_section(section);
    if (table == nullptr) continue;
    for (const KeyRule& rule : table->keys) {
      const bool takes_a_value = rule.type == ValueType::boolean || rule.type == ValueType::whole ||
                                 rule.type == ValueType::number;
      if (!takes_a_value || rule.key.find('_') == std::string_view::npos ||
          std::find(std::begin(answered_elsewhere), std::end(answered_elsewhere), rule.key) !=
              std::end(answered_elsewhere))
        continue;
      for (std::size_t at = sentence.find(rule.key); at != std::string_view::npos;
           at = sentence.find(rule.key, at + 1)) {
        const Stretch place{at, at + rule.key.size()};
        if (!is_bounded(sentence, place)) continue;
        if (!first || at < first->at.begin)
          first = NamedKey{.table = table, .rule = &rule, .at = place};
        break;
      }
    }
  }
  return first;
}

struct Written {
  std::string text;
  Stretch at;
};

/// "100000000", "1e8", "200m", "1,000".
std::optional<Written> number_written(std::string_view sentence, std::size_t at) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!is_digit(sentence[at]) ||
      (at > 0 && (is_of_name(sentence[at - 1]) || sentence[at - 1] == '.')))
    return std::nullopt;
  std::string digits;
  std::size_t end = at;
  for (; end < sentence.size() && digits.size() < 20; ++end) {
    const char c = sentence[end];
    const bool goes_on = end + 1 < sentence.size() && is_digit(sentence[end + 1]);
    if (c == ',' && goes_on) continue;
    if (!is_digit(c) && !((c == '.' || c == 'e') && goes_on)) break;
    digits += c;
  }
  auto value = spec::parse_double(digits);
  if (!value) return std::nullopt;
  std::string_view rest = sentence.substr(end);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  constexpr std::string_view units[] = {"gb", "gib", "mb", "g ", "%", "x", "倍", "gpu", "b "};
  if (std::any_of(std::begin(units), std::end(units),
                  [&](std::string_view unit) { return rest.starts_with(unit); }))
    return std::nullopt;
  struct Scale {
    std::string_view word;
    double factor;
  };
  constexpr Scale scales[] = {{"million", 1e6}, {"m", 1e6}, {"亿", 1e8}, {"万", 1e4}};
  for (const Scale& scale : scales) {
    const std::size_t stop = end + (sentence.size() - end - rest.size()) + scale.word.size();
    if (!rest.starts_with(scale.word) || (stop < sentence.size() && is_of_name(sentence[stop])))
      continue;
    *value *= scale.factor;
    end = stop;
    break;
  }
  if (*value != std::floor(*value) || *value > 9e18) return std::nullopt;
  return Written{.text = fmt::format("{:.0f}", *value), .at = {at, end}};
}

/// What stands behind the key; of "from 5e8 to 1e8" the last.
std::optional<Written> number_behind(std::string_view sentence, std::size_t from) {
  std::optional<Written> found;
  for (std::size_t at = from; at < sentence.size();) {
    const auto number = number_written(sentence, at);
    if (number && !found) {
      found = number;
    } else if (number) {
      const std::string_view gap = sentence.substr(found->at.end, number->at.begin - found->at.end);
      constexpr std::string_view leads[] = {" to ", "->", "到", "成", "为"};
      const bool follows =
          gap.size() <= 18 &&
          std::any_of(std::begin(leads), std::end(leads), [&](std::string_view lead) {
            return gap.find(lead) != std::string_view::npos;
          });
      if (!follows) break;
      found = number;
    }
    at = number ? number->at.end : at + 1;
  }
  return found;
}

std::optional<Written> word_in(std::string_view sentence, const Stretch& part,
                               std::initializer_list<std::string_view> words,
                               std::string_view means) {
  const std::string_view text = sentence.substr(part.begin, part.end - part.begin);
  for (const std::string_view word : words) {
    const std::size_t found = text.find(word);
    if (found == std::string_view::npos) continue;
    const Stretch at{part.begin + found, part.begin + found + word.size()};
    const bool is_english = static_cast<unsigned char>(word[0]) < 0x80;
    if (is_english && !is_bounded(sentence, at)) continue;
    return Written{.text = std::string(means), .at = at};
  }
  return std::nullopt;
}

std::optional<Written> truth_said(std::string_view sentence, const Stretch& key) {
  constexpr std::size_t near = 24;
  const Stretch behind{key.end, std::min(sentence.size(), key.end + near)};
  const Stretch before{0, key.begin};
  if (auto no = word_in(sentence, behind, {"false", "off", "关"}, "false")) return no;
  if (auto yes = word_in(sentence, behind, {"true", "on"}, "true")) return yes;
  if (auto no = word_in(sentence, before,
                        {"disable", "disabling", "turn off", "switch off", "关闭", "关掉", "禁用"},
                        "false"))
    return no;
  return word_in(sentence, before,
                 {"enable", "enabling", "turn on", "switch on", "set", "打开", "开启", "启用"},
                 "true");
}

std::string listed_stages(std::string_view digits) {
  std::string text;
  for (const char digit : digits) text += fmt::format("{}{}", text.empty() ? "" : ", ", digit);
  return text;
}

double host_of(const Forecast& forecast) {
  double most = 0;
  for (const auto& spaces : forecast.memory)
    if (const auto& holding = spaces[static_cast<std::size_t>(Space::host)])
      most = std::max(most, holding->low());
  return most;
}

/// The key as the config spells it; DeepSpeed refuses two spellings side by side.
std::string spelled_in(const spec::Value& config, const SaidKey& said) {
  const SectionTable* table = find_section(said.section);
  const KeyRule* rule = table != nullptr ? find_key(*table, said.key) : nullptr;
  if (rule == nullptr || rule->other.empty()) return said.path();
  const std::string other = fmt::format("{}.{}", said.section, rule->other);
  return value_at(config, other) != nullptr ? other : said.path();
}

}  // namespace

std::optional<SaidKey> key_said(std::string_view sentence) {
  const auto named = named_key(sentence);
  if (!named) return std::nullopt;
  std::optional<Written> value;
  if (named->rule->type == ValueType::boolean) {
    value = truth_said(sentence, named->at);
  } else {
    value = number_behind(sentence, named->at.end);
    if (!value) value = word_in(sentence, {named->at.end, sentence.size()}, {"auto"}, "auto");
  }
  if (!value) return std::nullopt;
  return SaidKey{.section = std::string(named->table->section.name),
                 .key = std::string(named->rule->key),
                 .value = value->text,
                 .acts = named->rule->stages,
                 .words = {named->at, value->at}};
}

KeyAnswer answer_to_key(const SaidKey& said, const std::optional<MemoryCase>& memory,
                        const Inputs& inputs) {
  const spec::ModelSpec fallback = default_model();
  MemoryCase now;
  now.model = &fallback;
  if (memory) now = *memory;
  Inputs files = inputs;
  std::vector<std::string> words;
  if (!inputs.deepspeed && !inputs.run) {
    files.deepspeed = Document{.kind = FileKind::deepspeed_config};
    files.deepspeed->root.kind = spec::ValueKind::mapping;
    words = {"deepspeed.bf16.enabled=true", "deepspeed.zero_optimization.stage=3",
             "deepspeed.train_micro_batch_size_per_gpu=1"};
    now = WordedFiles(files).with(words, now).value_or(now);
  }
  const spec::Value no_config;
  const std::string path = spelled_in(files.deepspeed ? files.deepspeed->root : no_config, said);
  words.push_back(fmt::format("deepspeed.{}={}", path, said.value));
  const auto then = WordedFiles(files).with(words, now);
  std::vector<Slot> slots = {{"setting", fmt::format("{}={}", path, said.value)},
                             {"stage_now", fmt::format("{}", now.settings.stage)},
                             {"acts", said.acts.empty() ? "0, 1, 2, 3" : listed_stages(said.acts)}};
  if (!then)
    return {.id = "advice-set-key-refused", .truth = verdict_no, .slots = std::move(slots)};
  const Forecast before = forecast_of(now), after = forecast_of(*then);
  const Range device_now = on_device(before), device_then = on_device(after);
  const double host_now = host_of(before), host_then = host_of(after);
  const double card = now.limits.device.value_or(80.0 * (1 << 30));
  // What the figures do not show is no saving.
  const auto is_less = [](double one, double other) {
    return one < other && amount(one) != amount(other);
  };
  const bool saves =
      is_less(device_then.high, device_now.high) || is_less(device_then.low, device_now.low);
  const bool costs =
      is_less(device_now.high, device_then.high) || is_less(device_now.low, device_then.low);
  slots.push_back({"state_now", amount(state_on_device(now))});
  slots.push_back({"state_then", amount(state_on_device(*then))});
  slots.push_back({"low_now", amount(device_now.low)});
  slots.push_back({"high_now", amount(device_now.high)});
  slots.push_back({"low_then", amount(device_then.low)});
  slots.push_back({"high_then", amount(device_then.high)});
  slots.push_back({"host_now", amount(host_now)});
  slots.push_back({"host_then", amount(host_then)});
  const std::string_view truth = saves && !costs
                                     ? device_then.low > card ? verdict_half : verdict_yes
                                 // Less of the host, or in a phase that is not the highest.
                                 : !costs && (is_less(host_then, host_now) ||
                                              is_less(state_on_device(*then), state_on_device(now)))
                                     ? verdict_half
                                     : verdict_no;
  return {.id = "advice-set-key", .truth = truth, .slots = std::move(slots)};
}

}  // namespace underkeel::doctor
