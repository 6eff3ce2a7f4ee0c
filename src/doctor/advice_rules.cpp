#include "doctor/advice_rules.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "doctor/config_rules.h"

namespace underkeel::doctor {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Calls `use` with the parts between separators, blanks stripped.
template <class Use>
void for_parts(std::string_view text, char separator, Use use) {
  while (true) {
    const std::size_t at = text.find(separator);
    use(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return;
    text.remove_prefix(at + 1);
  }
}

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool has_word(std::string_view sentence, std::string_view word) {
  const bool begins = word.starts_with('~'), ends = word.ends_with('~');
  if (begins) word.remove_prefix(1);
  if (ends && !word.empty()) word.remove_suffix(1);
  if (word.empty()) return false;
  for (std::size_t at = sentence.find(word); at != std::string_view::npos;
       at = sentence.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool is_inside = (begins && at > 0 && is_of_word(sentence[at - 1])) ||
                           (ends && end < sentence.size() && is_of_word(sentence[end]));
    if (!is_inside) return true;
  }
  return false;
}

bool has_one_of(std::string_view sentence, std::string_view alternatives) {
  bool found = false;
  for_parts(alternatives, '|',
            [&](std::string_view word) { found = found || has_word(sentence, word); });
  return found;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Sentences and lines of a text.
std::vector<std::string> sentences_of(std::string_view text) {
  std::vector<std::string> sentences;
  std::string sentence;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_end =
        (c == '.' || c == '!' || c == '?' || c == ';') &&
        (i + 1 == text.size() || std::isspace(static_cast<unsigned char>(text[i + 1])));
    if (c != '\n' && !is_end) {
      sentence += c;
      continue;
    }
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
    sentence.clear();
  }
  if (!sentence.empty()) sentences.push_back(std::move(sentence));
  return sentences;
}

struct Situation {
  const spec::ModelSpec& model;
  ModelSizes sizes;
  double ranks;
  Limits limits;
};

Forecast state_of(const Situation& situation, int stage, Offload optimizer, Offload parameters,
                  double accumulation = 1) {
  DeepspeedSettings settings;
  settings.stage = stage;
  settings.optimizer = optimizer;
  settings.parameters = parameters;
  settings.overlap_comm = stage == 3;
  return deepspeed_memory({.sizes = situation.sizes,
                           .settings = settings,
                           .ranks = situation.ranks,
                           .ranks_on_node = situation.ranks,
                           .accumulation_steps = accumulation,
                           .has_process = false});
}

/// The sizes of buckets in the config at hand.
DeepspeedSettings bucket_settings(const std::optional<MemoryCase>& memory,
                                  const spec::Value* config) {
  if (memory) return memory->settings;
  if (config == nullptr) return {};
  DeepspeedSettings settings = settings_of(*config, std::nullopt, default_model().width);
  settings.is_16_bit = true;  // what the advice is about; "auto" is nobody's yet
  settings.gradient_bytes = 2;
  return settings;
}

std::string_view bucket_source(const spec::Value* config, bool has_model) {
  constexpr std::string_view key = "zero_optimization.reduce_bucket_size";
  if (config != nullptr && is_auto_at(*config, key))
    return has_model ? "@bucket.auto" : "@bucket.auto-of-7b";
  return config != nullptr && number_at(*config, key) ? "@bucket.given" : "@bucket.default";
}

struct BucketBytes {
  double buckets, copy;
};

/// At `stage`, in a backward pass. With `assume_overlap`, as overlap_comm makes it.
BucketBytes buckets_at(const Situation& situation, DeepspeedSettings settings, int stage,
                       bool assume_overlap) {
  settings.stage = stage;
  settings.overlap_comm = settings.overlap_comm || assume_overlap;
  settings.uses_bf16_optimizer = false;
  const Forecast forecast = deepspeed_memory({.sizes = situation.sizes,
                                              .settings = settings,
                                              .ranks = situation.ranks,
                                              .ranks_on_node = situation.ranks,
                                              .accumulation_steps = 1,
                                              .has_process = false});
  return {term_bytes(forecast, Phase::step, Space::device, "bucket"),
          term_bytes(forecast, Phase::step, Space::device, "bucket_copy")};
}

double device_peak(const Forecast& forecast) {
  double most = 0;
  for (const Phase phase : {Phase::first_step, Phase::step, Phase::update})
    most = std::max(most, forecast.at(phase, Space::device)->low());
  return most;
}

}  // namespace

spec::ModelSpec default_model() {
  return {.vocabulary = 32000,
          .width = 4096,
          .feed_forward = 11008,
          .layers = 32,
          .query_heads = 32,
          .key_heads = 32,
          .head_width = 128};
}

std::map<std::string, std::string> advice_figures(const std::optional<MemoryCase>& memory,
                                                  const spec::Value* config) {
  const spec::ModelSpec fallback = default_model();
  RunFacts full;
  full.is_lora = false;
  const Situation situation{.model = memory ? *memory->model : fallback,
                            .sizes = sizes_of(memory ? *memory->model : fallback, full),
                            .ranks = memory ? memory->ranks : 1,
                            .limits = memory ? memory->limits : Limits{.device = 80 * gib}};
  const double psi = situation.sizes.trainable;
  const double width = static_cast<double>(situation.model.width);
  const double card = situation.limits.device.value_or(80 * gib);
  std::map<std::string, std::string> figures;
  const auto size = [&](std::string_view name, double bytes) {
    figures[std::string(name)] = amount(bytes);
  };
  const auto fits = [&](std::string_view name, double bytes) {
    size(name, bytes);
    figures[fmt::format("{}_fits", name)] = bytes <= card ? "@fits.yes" : "@fits.no";
  };
  const auto gathered = [&](double threshold) {
    DeepspeedSettings settings;
    settings.param_persistence = threshold;
    return 2 * persistent_elements(situation.sizes, settings);
  };
  figures["model"] = memory ? "@model.here" : "@model.of-7b";
  figures["parameters"] = fmt::format("{:.0f}", psi);
  figures["ranks"] = fmt::format("{:.0f}", situation.ranks);
  figures["card"] = capacity(static_cast<std::int64_t>(card));
  figures["host_limit"] = situation.limits.host
                              ? capacity(static_cast<std::int64_t>(*situation.limits.host))
                              : std::string("@unknown");
  size("weights_16", 2 * psi);
  size("weights_32", 4 * psi);
  size("module", 2 * situation.sizes.largest_tensor);
  const DeepspeedSettings here = bucket_settings(memory, config);
  const double element = here.is_16_bit ? 2 : 4;
  const DeepspeedSettings defaults;
  size("bucket", element * here.reduce_bucket);
  figures["bucket_elements"] = fmt::format("{:.0f}", here.reduce_bucket);
  figures["bucket_source"] = bucket_source(config, memory.has_value());
  size("bucket_default", element * defaults.reduce_bucket);
  size("bucket_auto", element * width * width);
  // A config of stage 1 or 2 without overlap has one bucket; of others the advice supposes two.
  const bool supposes_overlap = config == nullptr || (here.stage != 1 && here.stage != 2);
  const BucketBytes at_3 = buckets_at(situation, here, 3, false);
  const BucketBytes at_2 = buckets_at(situation, here, 2, supposes_overlap);
  size("bucket_saving_3", at_3.buckets + at_3.copy);
  size("bucket_saving_12", at_2.buckets + at_2.copy);
  figures["bucket_share"] = fmt::format(
      "{:.2g}%", 100 * std::max(at_3.buckets + at_3.copy, at_2.buckets + at_2.copy) / card);
  size("bucket_copy_12", at_2.copy);
  size("bucket_copy_3", situation.ranks > 1 ? 0 : at_3.copy);
  size("prefetch", element * defaults.prefetch_bucket);
  figures["threshold_auto"] = fmt::format("{:.0f}", 10 * width);
  size("gathered_auto", gathered(10 * width));
  size("gathered_1e5", gathered(1e5));
  size("gathered_1e9", gathered(1e9));
  const Forecast stage2 = state_of(situation, 2, Offload::none, Offload::none);
  const Forecast stage3 = state_of(situation, 3, Offload::none, Offload::none);
  const Forecast offload2 = state_of(situation, 2, Offload::cpu, Offload::none);
  const Forecast offload2_accumulating = state_of(situation, 2, Offload::cpu, Offload::none, 2);
  const Forecast offload3 = state_of(situation, 3, Offload::cpu, Offload::cpu);
  const Forecast parameters_only = state_of(situation, 3, Offload::none, Offload::cpu);
  fits("stage2", device_peak(stage2));
  fits("stage3", device_peak(stage3));
  fits("stage2_offload", offload2.at(Phase::step, Space::device)->high());
  fits("parameters_only", device_peak(parameters_only));
  // Whether people are right who say that stage 3 takes more, or that offload at stage 2 takes 60 to 70 GB.
  const auto is_so = [&](std::string_view name, bool holds) {
    figures[fmt::format("{}_fits", name)] = holds ? "@fits.yes" : "@fits.no";
  };
  is_so("stage3_larger", stage3.at(Phase::step, Space::device)->high() >
                             stage2.at(Phase::step, Space::device)->high());
  const double offload2_device = offload2.at(Phase::step, Space::device)->high();
  is_so("stage2_offload_60", offload2_device >= 55e9 && offload2_device <= 75e9);
  size("stage3_offload", offload3.at(Phase::step, Space::device)->high());
  size("stage2_offload_host", offload2.at(Phase::step, Space::host)->low());
  size("stage2_offload_host_more", offload2_accumulating.at(Phase::step, Space::host)->low());
  size("stage3_offload_host", offload3.at(Phase::step, Space::host)->low());
  // Of the run at hand where it offloads, else of stage 2 with the optimizer on the host.
  const bool offloads = memory && memory->settings.optimizer != Offload::none;
  const Forecast offloading = offloads ? forecast_of(*memory) : offload2;
  const auto& own_pinned = offloading.at(Phase::step, Space::pinned_host);
  const Holding& pinned = own_pinned ? *own_pinned : *offload2.at(Phase::step, Space::pinned_host);
  size("pinned", pinned.low());
  size("pinned_rounded", pinned.high());
  const double share = psi / situation.ranks;
  size("moments", 8 * share);
  size("moments_host", 8 * psi);
  size("state", 12 * share);
  size("freed_by_offload", 12 * share + 2 * share);
  size("extra_of_stage3", at_3.buckets + at_3.copy +
                              term_bytes(state_of(situation, 3, Offload::none, Offload::none),
                                         Phase::step, Space::device, "live"));
  // Of the run at hand where it gathers, as the finding on its window; else of stage 3 with the defaults.
  const bool gathers_here = memory && memory->settings.stage == 3;
  size("live", term_bytes(gathers_here ? state_forecast_of(*memory) : offload3, Phase::step,
                          Space::device, "live"));
  // NF4 with doubly quantised scales on all linear layers but the head.
  RunFacts qlora;
  qlora.quantization_bits = 4;
  const ModelSizes four_bit = sizes_of(situation.model, qlora);
  fits("base_4bit",
       four_bit.quantised * (0.5 + 0.127 / 8) + 2 * (four_bit.frozen - four_bit.quantised));
  MemoryCase batch;
  if (memory) batch = *memory;
  const ActivationQuestion activations{.model = situation.model,
                                       .sequences = static_cast<double>(batch.run.micro_batch),
                                       .tokens = batch.tokens,
                                       .recomputes = false,
                                       .element_bytes = element};
  figures["batch"] = fmt::format("{} x {:.0f}", batch.run.micro_batch, batch.tokens);
  ActivationQuestion recomputing = activations;
  recomputing.recomputes = true;
  size("recompute_saves", activation_peak(activations).low - activation_peak(recomputing).low);
  return figures;
}

std::string normalised(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const char lower = byte < 0x80 ? static_cast<char>(std::tolower(byte)) : c;
    if (std::isspace(byte) && byte < 0x80) {
      if (!plain.empty() && plain.back() != ' ') plain += ' ';
    } else {
      plain += lower;
    }
  }
  for (const char digit : {'2', '3'})
    for (const char* spelling : {"deepspeed-zero-", "zero-", "zero stage ", "zero stage", "zero ",
                                 "zero", "stage-", "stage "})
      replace_all(plain, spelling + std::string(1, digit), std::string("z") + digit);
  return plain;
}

bool matches(std::string_view sentence, std::string_view words) {
  if (words.empty()) return false;
  bool all = true;
  for_parts(words, '&', [&](std::string_view group) {
    const bool is_forbidden = group.starts_with('!');
    if (is_forbidden) group.remove_prefix(1);
    all = all && has_one_of(sentence, group) != is_forbidden;
  });
  return all;
}

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
  constexpr std::string_view names[] = {"@advice.true", "@advice.half", "@advice.false"};
  return names[static_cast<std::size_t>(truth)];
}

/// Of the rule itself, or of the figures of the run at hand that decide it.
Truth truth_of(const AdviceRule& rule, const std::map<std::string, std::string>& figures) {
  if (rule.decided_by.empty()) return rule.truth;
  const auto judged = figures.find(fmt::format("{}_truth", rule.decided_by));
  if (judged == figures.end())
    return figures.at(fmt::format("{}_fits", rule.decided_by)) == "@fits.yes" ? Truth::is_true
                                                                              : Truth::is_false;
  for (const Truth truth : {Truth::is_true, Truth::is_half})
    if (judged->second == phrase_of(truth)) return truth;
  return Truth::is_false;
}

std::vector<Slot> slots_for(const Wording& wording,
                            const std::map<std::string, std::string>& figures, Truth truth) {
  std::vector<Slot> slots = {{"truth", std::string(phrase_of(truth))}};
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

}  // namespace

void look_at_advice(const Question& question, const Inputs& inputs, Diagnosis& diagnosis) {
  const bool has_text = std::any_of(inputs.others.begin(), inputs.others.end(),
                                    [](const Document& d) { return d.kind == FileKind::advice; });
  if (!inputs.deepspeed && !has_text) return;
  std::map<std::string, std::string> figures;
  const auto tell = [&](const AdviceRule& rule, const std::string& file, int line) {
    if (figures.empty()) {
      const auto memory = case_of_advice(question, inputs);
      figures = advice_figures(memory, inputs.deepspeed ? &inputs.deepspeed->root : nullptr);
      add_run_figures(memory, inputs, figures);
      if (!memory || !memory->limits.device)
        diagnosis.findings.push_back(
            {.id = memory ? "advice-without-machine" : "advice-without-model",
             .engine = Engine::deepspeed,
             .file = file,
             .slots = {{"ranks", figures.at("ranks")}, {"card", figures.at("card")}}});
    }
    const Truth truth = truth_of(rule, figures);
    diagnosis.findings.push_back(
        {.id = std::string(rule.id),
         .severity = truth == Truth::is_false ? Severity::warning : Severity::info,
         .certainty = Certainty::folklore,
         .engine = Engine::deepspeed,
         .file = file,
         .key = std::string(rule.key),
         .line = line,
         .slots = slots_for(*find_wording(rule.id), figures, truth)});
  };
  // At stage 0 what stands in zero_optimization does nothing, whoever recommends it.
  const auto acts = [&](const AdviceRule& rule) {
    return !rule.key.starts_with("zero_optimization") || stage_in(inputs.deepspeed->root) > 0;
  };
  const std::span<const AdviceRule> tables[] = {config_advice(), run_advice()};
  if (inputs.deepspeed)
    for (const auto& table : tables)
      for (const AdviceRule& rule : table)
        if (acts(rule) && follows(inputs.deepspeed->root, rule))
          tell(rule, inputs.deepspeed->file, line_of(inputs.deepspeed->root, rule.key));
  for (const Document& document : inputs.others) {
    if (document.kind != FileKind::advice) continue;
    std::vector<std::string_view> told;
    for (const std::string& sentence : sentences_of(document.text)) {
      const std::string plain = normalised(sentence);
      for (const auto& table : tables)
        for (const AdviceRule& rule : table) {
          const bool is_new = std::find(told.begin(), told.end(), rule.id) == told.end();
          if (!is_new || !matches(plain, rule.words)) continue;
          told.push_back(rule.id);
          tell(rule, document.file, 0);
        }
    }
    if (told.empty())
      diagnosis.findings.push_back({.id = "advice-not-recognised", .file = document.file});
  }
}

}  // namespace underkeel::doctor
