// A DeepSpeed config beside a run file: the batch equation, and values that both give.

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "doctor/config_rules.h"
#include "doctor/run_facts.h"

namespace underkeel::doctor {
namespace {

using spec::Value;

struct Batch {
  std::optional<std::int64_t> train, micro, steps;  // as the config gives them
};

Batch batch_in(const Value& root) {
  return {.train = lax_whole_at(root, "train_batch_size"),
          .micro = lax_whole_at(root, "train_micro_batch_size_per_gpu"),
          .steps = whole_at(root, "gradient_accumulation_steps")};
}

Finding finding(const Inputs& inputs, std::string_view id, Severity severity, std::string_view key,
                std::vector<Slot> slots) {
  return {.id = std::string(id),
          .severity = severity,
          .engine = Engine::deepspeed,
          .file = inputs.deepspeed->file,
          .key = std::string(key),
          .line = line_of(inputs.deepspeed->root, key),
          .slots = std::move(slots)};
}

std::string number(double value) {
  return fmt::format("{}", value);
}
std::string number(std::int64_t value) {
  return fmt::format("{}", value);
}

/// A key that both files have. The Trainer compares them and refuses a difference.
struct Pair {
  std::string_view config_key;
  std::string_view run_key;
  double (*run_value)(const RunFacts&);
};

constexpr std::array pairs = {
    Pair{"train_micro_batch_size_per_gpu", "per_device_train_batch_size",
         [](const RunFacts& r) { return static_cast<double>(r.micro_batch); }},
    Pair{"gradient_clipping", "max_grad_norm", [](const RunFacts& r) { return r.max_grad_norm; }},
    Pair{"optimizer.params.lr", "learning_rate", [](const RunFacts& r) { return r.learning_rate; }},
    Pair{"optimizer.params.eps", "adam_epsilon", [](const RunFacts& r) { return r.epsilon; }},
    Pair{"optimizer.params.weight_decay", "weight_decay",
         [](const RunFacts& r) { return r.weight_decay; }},
    Pair{"scheduler.params.warmup_max_lr", "learning_rate",
         [](const RunFacts& r) { return r.learning_rate; }},
    Pair{"scheduler.params.warmup_num_steps", "warmup_steps",
         [](const RunFacts& r) { return r.warmup_steps; }},
};

/// DeepSpeed's own default, where the config has an optimizer and leaves the key out.
struct Default {
  std::string_view config_key;
  std::string_view run_key;
  double value;
  double (*run_value)(const RunFacts&);
};
constexpr std::array defaults = {
    Default{"optimizer.params.lr", "learning_rate", 1e-3,
            [](const RunFacts& r) { return r.learning_rate; }},
    Default{"optimizer.params.eps", "adam_epsilon", 1e-8,
            [](const RunFacts& r) { return r.epsilon; }},
    Default{"optimizer.params.weight_decay", "weight_decay", 0,
            [](const RunFacts& r) { return r.weight_decay; }},
};

void check_flag(const Inputs& inputs, std::string_view section, std::string_view run_key,
                bool run_value, std::vector<Finding>& findings) {
  const std::string key = fmt::format("{}.enabled", section);
  const Value& root = inputs.deepspeed->root;
  if (value_at(root, section) == nullptr || is_auto_at(root, key)) return;
  const bool enabled = truth_at(root, key).value_or(false);
  if (enabled == run_value) return;
  findings.push_back(finding(inputs, "run-value-differs", Severity::error, key,
                             {{"key", key},
                              {"value", enabled ? "true" : "false"},
                              {"file", inputs.deepspeed->file},
                              {"run_key", std::string(run_key)},
                              {"run_value", run_value ? "true" : "false"},
                              {"run_file", inputs.run->file}}));
}

void check_betas(const Inputs& inputs, const RunFacts& run, std::vector<Finding>& findings) {
  const Value* betas = value_at(inputs.deepspeed->root, "optimizer.params.betas");
  if (betas == nullptr || betas->kind != spec::ValueKind::list || betas->items.size() != 2) return;
  const auto first = spec::to_double(betas->items[0]), second = spec::to_double(betas->items[1]);
  if (!first || !second || (*first == run.beta1 && *second == run.beta2)) return;
  findings.push_back(finding(inputs, "run-value-differs", Severity::error, "optimizer.params.betas",
                             {{"key", "optimizer.params.betas"},
                              {"value", fmt::format("[{}, {}]", *first, *second)},
                              {"file", inputs.deepspeed->file},
                              {"run_key", "adam_beta1, adam_beta2"},
                              {"run_value", fmt::format("[{}, {}]", run.beta1, run.beta2)},
                              {"run_file", inputs.run->file}}));
}

}  // namespace

namespace {

/// nullopt when it is beyond 64 bits.
std::optional<std::int64_t> product_of(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t product = 0;
  const bool is_beyond =
      __builtin_mul_overflow(a, b, &product) || __builtin_mul_overflow(product, c, &product);
  return is_beyond ? std::nullopt : std::optional(product);
}

std::string number(const std::optional<std::int64_t>& value) {
  return value ? fmt::format("{}", *value) : "> 2^63";
}

/// DeepSpeed's own check of the three sizes. The Trainer and accelerate fill in "auto"; of keys that are left out accelerate
/// adds gradient_accumulation_steps alone, as 1, unless the two other sizes make it.
void check_equation(const Inputs& inputs, const Batch& batch, const std::vector<Slot>& counts,
                    std::vector<Finding>& findings) {
  const Value& root = inputs.deepspeed->root;
  if (truth_at(root, "elasticity.enabled").value_or(false)) return;  // it gives all three
  const auto is_there = [&](std::string_view key) {
    const Value* value = value_at(root, key);
    return value != nullptr && value->kind != spec::ValueKind::null;
  };
  if (!is_there("train_batch_size") && !is_there("train_micro_batch_size_per_gpu")) {
    findings.push_back(
        finding(inputs, "batch-is-missing", Severity::error, "train_batch_size", {}));
    return;
  }
  const std::int64_t ranks = inputs.ranks.count;
  const auto run = inputs.run ? std::optional(run_facts(inputs.run->root)) : std::nullopt;
  const bool is_put = (run || inputs.accelerate) && steps_are_left_out(root);
  const auto tell = [&](std::string_view id, Severity severity, std::vector<Slot> slots) {
    slots.insert(slots.end(), counts.begin(), counts.end());
    findings.push_back(finding(inputs, id, severity, "train_batch_size", std::move(slots)));
  };
  const auto steps = is_put ? std::optional<std::int64_t>(1) : batch.steps;
  if (batch.train && batch.micro && steps) {
    const auto product = product_of(*batch.micro, *steps, ranks);
    if (product != *batch.train)
      tell("batch-equation", Severity::error,
           {{"value", number(*batch.train)},
            {"micro", number(*batch.micro)},
            {"steps", number(*steps)},
            {"product", number(product)}});
  } else if (batch.train && steps && *steps > 0 && !is_there("train_micro_batch_size_per_gpu")) {
    const std::int64_t micro = *batch.train / ranks / *steps;
    const auto product = product_of(micro, *steps, ranks);
    if (product != *batch.train)
      tell("batch-micro-cannot-be-made", Severity::error,
           {{"value", number(*batch.train)},
            {"micro", number(micro)},
            {"steps", number(*steps)},
            {"product", number(product)}});
  } else if (batch.train && !run) {
    const std::int64_t micro = std::max<std::int64_t>(1, batch.micro.value_or(1));
    const auto one = product_of(micro, 1, ranks);
    if (!one || *batch.train % *one != 0)
      tell("batch-no-multiple", Severity::error,
           {{"value", number(*batch.train)}, {"micro", number(micro)}});
  }
  if (!run || !is_put || run->accumulation_steps == 1) return;
  tell("accumulation-left-out", Severity::warning,
       {{"file", inputs.deepspeed->file},
        {"run_file", inputs.run->file},
        {"micro", number(run->micro_batch)},
        {"steps", number(run->accumulation_steps)},
        {"product", number(product_of(run->micro_batch, 1, ranks))},
        {"run_product", number(product_of(run->micro_batch, run->accumulation_steps, ranks))}});
}

}  // namespace

bool steps_are_left_out(const Value& config) {
  const Batch batch = batch_in(config);
  return value_at(config, "gradient_accumulation_steps") == nullptr &&
         !(batch.train && batch.micro);
}

ConfigBatch batch_of_config(const Value& config, std::int64_t ranks) {
  const Batch batch = batch_in(config);
  const auto at_least_one = [](std::int64_t size) { return std::max<std::int64_t>(1, size); };
  ConfigBatch filled{.micro_batch = at_least_one(batch.micro.value_or(1)),
                     .accumulation_steps = at_least_one(batch.steps.value_or(1))};
  if (!batch.train || (batch.micro && batch.steps)) return filled;
  const std::int64_t of_rank = at_least_one(*batch.train / at_least_one(ranks));
  if (batch.micro)
    filled.accumulation_steps = at_least_one(of_rank / filled.micro_batch);
  else
    filled.micro_batch = at_least_one(of_rank / filled.accumulation_steps);
  return filled;
}

void check_batch(const Inputs& inputs, std::vector<Finding>& findings) {
  const Batch batch = batch_in(inputs.deepspeed->root);
  const std::int64_t ranks = inputs.ranks.count;
  const auto run = inputs.run ? std::optional(run_facts(inputs.run->root)) : std::nullopt;
  const std::vector<Slot> counts = {{"ranks", number(ranks)}, {"source", inputs.ranks.source}};
  const auto with = [&](std::vector<Slot> slots) {
    slots.insert(slots.end(), counts.begin(), counts.end());
    return slots;
  };

  // Beside a run file the Trainer compares first, with its own product.
  if (run && batch.steps && *batch.steps != run->accumulation_steps)
    findings.push_back(
        finding(inputs, "accumulation-differs", Severity::error, "gradient_accumulation_steps",
                with({{"value", number(*batch.steps)},
                      {"run_value", number(run->accumulation_steps)},
                      {"file", inputs.deepspeed->file},
                      {"run_file", inputs.run->file},
                      {"micro", number(run->micro_batch)},
                      {"product", number(product_of(run->micro_batch, *batch.steps, ranks))},
                      {"run_product",
                       number(product_of(run->micro_batch, run->accumulation_steps, ranks))}})));
  if (run && batch.train) {
    const auto product = product_of(run->micro_batch, run->accumulation_steps, ranks);
    if (product != *batch.train) {
      const std::int64_t one = run->micro_batch * ranks;
      const bool divides = one > 0 && *batch.train % one == 0;
      findings.push_back(
          finding(inputs, divides ? "batch-differs-from-run" : "batch-cannot-be-made",
                  Severity::error, "train_batch_size",
                  with({{"value", number(*batch.train)},
                        {"file", inputs.deepspeed->file},
                        {"run_file", inputs.run->file},
                        {"micro", number(run->micro_batch)},
                        {"steps", number(run->accumulation_steps)},
                        {"product", number(product)},
                        {"needed_steps", divides ? number(*batch.train / one) : std::string()}})));
    }
  }
  check_equation(inputs, batch, counts, findings);
}

void check_against_run_file(const Inputs& inputs, std::vector<Finding>& findings) {
  if (!inputs.run) return;
  const RunFacts run = run_facts(inputs.run->root);
  const Value& root = inputs.deepspeed->root;
  for (const Pair& pair : pairs) {
    const auto value = number_at(root, pair.config_key);
    if (!value || *value == pair.run_value(run)) continue;
    findings.push_back(finding(inputs, "run-value-differs", Severity::error, pair.config_key,
                               {{"key", std::string(pair.config_key)},
                                {"value", number(*value)},
                                {"file", inputs.deepspeed->file},
                                {"run_key", std::string(pair.run_key)},
                                {"run_value", number(pair.run_value(run))},
                                {"run_file", inputs.run->file}}));
  }
  check_betas(inputs, run, findings);
  check_flag(inputs, "fp16", "fp16", run.fp16, findings);
  check_flag(inputs, value_at(root, "bfloat16") != nullptr ? "bfloat16" : "bf16", "bf16", run.bf16,
             findings);
  if (value_at(root, "optimizer") != nullptr)
    for (const Default& each : defaults)
      if (value_at(root, each.config_key) == nullptr && each.run_value(run) != each.value)
        findings.push_back(finding(inputs, "run-value-lost", Severity::warning, each.config_key,
                                   {{"key", std::string(each.config_key)},
                                    {"value", number(each.value)},
                                    {"run_key", std::string(each.run_key)},
                                    {"run_value", number(each.run_value(run))},
                                    {"run_file", inputs.run->file}}));
  const bool warmup_is_auto = is_auto_at(root, "scheduler.params.warmup_num_steps");
  if (warmup_is_auto && run.warmup_steps == 0 && run.warmup_ratio == 0)
    findings.push_back(finding(inputs, "warmup-becomes-zero", Severity::warning,
                               "scheduler.params.warmup_num_steps",
                               {{"run_file", inputs.run->file}}));
  if (run.pure_bf16 && stage_in(root) == 3)
    findings.push_back(finding(inputs, "pure-bf16-at-stage-3", Severity::error,
                               "zero_optimization.stage", {{"run_file", inputs.run->file}}));
}

void check_quantisation(const Inputs& inputs, std::vector<Finding>& findings) {
  if (!inputs.run) return;
  constexpr std::string_view key = "quantization_bit";
  const RunFacts run = run_facts(inputs.run->root);
  const std::string method =
      text_at(inputs.run->root, "quantization_method").value_or("bitsandbytes");
  if (run.quantization_bits == 0 || (method != "bnb" && method != "bitsandbytes")) return;
  const auto tell = [&](std::string_view id) {
    findings.push_back({.id = std::string(id),
                        .severity = Severity::error,
                        .engine = Engine::deepspeed,
                        .file = inputs.run->file,
                        .key = std::string(key),
                        .line = line_of(inputs.run->root, key),
                        .slots = {{"bits", number(run.quantization_bits)}}});
  };
  if (run.quantization_bits != 4 && run.quantization_bits != 8) return tell("quantisation-bits");
  if (run.quantization_bits == 8 && inputs.deepspeed && stage_in(inputs.deepspeed->root) == 3)
    tell("eight-bits-at-stage-3");
}

}  // namespace underkeel::doctor
