// Every key of the tables with a right, a wrong-typed and a misplaced value; then what is particular.

#include "doctor/key_rules.h"

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/key_tables.h"
#include "spec/json_reader.h"
#include "spec/run_keys.h"

namespace underkeel::doctor {
namespace {

Document config_of(const std::string& json) {
  auto read = spec::read_json(json, "ds_config.json", spec::JsonDialect::relaxed);
  EXPECT_TRUE(read.has_value()) << json;
  Document config{
      .path = "ds_config.json", .file = "ds_config.json", .kind = FileKind::deepspeed_config};
  if (read) config.root = std::move(read->root);
  return config;
}

std::vector<Finding> check(const std::string& json, bool auto_is_filled_in = true) {
  const Document config = config_of(json);
  return check_keys({.config = config, .auto_is_filled_in = auto_is_filled_in});
}

/// `{"a": {"b": INNER}}` for section "a.b".
std::string nested(std::string_view section, const std::string& inner) {
  if (section.empty()) return inner;
  const std::size_t dot = section.find('.');
  const std::string rest =
      dot == std::string_view::npos ? inner : nested(section.substr(dot + 1), inner);
  return "{\"" + std::string(section.substr(0, dot)) + "\": " + rest + "}";
}

std::string with_stage(std::string_view section, std::string_view key, const std::string& value,
                       char stage) {
  const std::string entry = "\"" + std::string(key) + "\": " + value;
  if (section.starts_with("zero_optimization")) {
    const std::string_view rest =
        section == "zero_optimization" ? std::string_view() : section.substr(18);
    const std::string inner = nested(rest, "{" + entry + "}");
    const std::string body = inner.substr(1, inner.size() - 2);
    const bool is_stage = rest.empty() && key == "stage";
    return "{\"zero_optimization\": {" +
           (is_stage ? body : "\"stage\": " + std::string(1, stage) + ", " + body) + "}}";
  }
  const std::string inner = nested(section, "{" + entry + "}");
  return "{\"zero_optimization\": {\"stage\": " + std::string(1, stage) + "}, " + inner.substr(1);
}

std::string right_value(const KeyRule& rule) {
  switch (rule.type) {
    case ValueType::boolean:
      return "true";
    case ValueType::whole:
      return rule.least > 1 ? std::to_string(static_cast<long>(rule.least)) : "1";
    case ValueType::number:
      return "0.5";
    case ValueType::text:
      return "\"word\"";
    case ValueType::choice:
      return "\"" + std::string(rule.choices.substr(0, rule.choices.find('|'))) + "\"";
    case ValueType::list:
      return "[]";
    default:
      return "{}";
  }
}

std::string wrong_value(const KeyRule& rule) {
  switch (rule.type) {
    case ValueType::boolean:
      return "[1, 2]";
    case ValueType::whole:
      return "1.5";
    case ValueType::number:
      return "\"many\"";
    case ValueType::text:
    case ValueType::choice:
      return "{}";
    case ValueType::list:
      return "3";
    default:
      return "[1]";
  }
}

bool is_value_finding(const Finding& finding) {
  return finding.id.starts_with("value-") || finding.id == "key-unknown" ||
         finding.id == "key-misplaced" || finding.id == "key-misspelt";
}

char stage_for(const KeyRule& rule) {
  return rule.stages.empty() ? '3' : rule.stages.back();
}

std::string join(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : std::string(section) + "." + std::string(key);
}

TEST(KeyRules, TakeARightValueOfEveryKeyWithoutComplaint) {
  int count = 0;
  for (const SectionTable& table : section_tables())
    for (const KeyRule& rule : table.keys) {
      if (rule.key == "zero_optimization") continue;
      const auto findings =
          check(with_stage(table.section.name, rule.key, right_value(rule), stage_for(rule)));
      for (const Finding& finding : findings)
        EXPECT_FALSE(is_value_finding(finding))
            << join(table.section.name, rule.key) << ": " << message_of(finding, Language::english);
      ++count;
    }
  EXPECT_GT(count, 200);
}

TEST(KeyRules, NameAWrongTypeOfEveryKeyAndWhatDeepspeedMakesOfIt) {
  for (const SectionTable& table : section_tables())
    for (const KeyRule& rule : table.keys) {
      if (rule.key == "zero_optimization") continue;
      const std::string key = join(table.section.name, rule.key);
      const auto findings =
          check(with_stage(table.section.name, rule.key, wrong_value(rule), stage_for(rule)));
      const auto wrong = std::find_if(findings.begin(), findings.end(), [&](const Finding& each) {
        return each.id == "value-wrong-type" && each.key == key;
      });
      ASSERT_NE(wrong, findings.end()) << key;
      const std::string message = message_of(*wrong, Language::english);
      const bool is_refused = message.find("ValidationError") != std::string::npos;
      EXPECT_EQ(is_refused, table.section.reader == Reader::pydantic) << message;
      EXPECT_NE(message.find("DeepSpeed"), std::string::npos) << message;
    }
}

TEST(KeyRules, SendEveryMisplacedKeyHome) {
  for (const SectionTable& table : section_tables())
    for (const KeyRule& rule : table.keys) {
      const std::string_view key = rule.key;
      if (key == "enabled" || key == "type" || key == "params" || key == "profile" ||
          key == "version" || key == "names" || key == "classes" || key == "dtype")
        continue;  // say nothing about where they belong
      // Keys of zero_optimization and below at the top level; all others in zero_optimization.
      const bool to_top = table.section.name.starts_with("zero_optimization");
      const std::string place = to_top ? "" : "zero_optimization";
      if (find_key(*find_section(place), key) != nullptr) continue;
      const std::string entry = "{\"" + std::string(key) + "\": " + right_value(rule) + "}";
      const auto findings = check(nested(place, entry));
      const auto misplaced =
          std::find_if(findings.begin(), findings.end(),
                       [&](const Finding& each) { return each.id == "key-misplaced"; });
      ASSERT_NE(misplaced, findings.end()) << join(table.section.name, key);
      EXPECT_NE(fix_of(*misplaced, Language::english).find(join(table.section.name, key)),
                std::string::npos)
          << fix_of(*misplaced, Language::english);
      // Below zero_optimization pydantic refuses, at the top level nobody looks.
      EXPECT_EQ(misplaced->severity, to_top ? Severity::warning : Severity::error);
    }
}

struct Example {
  const char* json;
  const char* id;
  const char* key;
  Severity severity;
  const char* says;  // part of message and fix
};

void expect_example(const Example& example, bool auto_is_filled_in = true) {
  const auto findings = check(example.json, auto_is_filled_in);
  const auto it = std::find_if(findings.begin(), findings.end(), [&](const Finding& each) {
    return each.id == example.id && each.key == example.key;
  });
  std::string all;
  for (const Finding& each : findings)
    all += each.id + " " + each.key + ": " + message_of(each, Language::english) + "\n";
  ASSERT_NE(it, findings.end()) << example.json << "\n" << all;
  EXPECT_EQ(it->severity, example.severity) << example.json;
  const std::string text =
      message_of(*it, Language::english) + " / " + fix_of(*it, Language::english);
  EXPECT_NE(text.find(example.says), std::string::npos) << text;
}

TEST(KeyRules, ExplainWhatIsParticular) {
  const Example examples[] = {
      {R"({"gradient_cliping": 1.0})", "key-misspelt", "gradient_cliping", Severity::warning,
       "`gradient_clipping`"},
      {R"({"zero_optimisation": {"stage": 2}})", "key-misspelt", "zero_optimisation",
       Severity::warning, "without a word"},
      {R"({"zero_optimization": {"stage ": 3}})", "key-misspelt", "zero_optimization.stage ",
       Severity::error, "ValidationError"},
      {R"({"offload_optimizer": {"device": "cpu"}})", "key-misplaced", "offload_optimizer",
       Severity::warning, "zero_optimization.offload_optimizer"},
      {R"({"bf16": {"enabled": true, "loss_scale": 0}})", "key-loss-scale-in-bf16",
       "bf16.loss_scale", Severity::error, "bf16 has no loss scale"},
      {R"({"zero_optimization": {"stage": 2, "cpu_offload": true}})", "key-deprecated",
       "zero_optimization.cpu_offload", Severity::warning,
       R"(offload_optimizer: {"device": "cpu"})"},
      {R"({"zero_optimization": {"stage": 2, "cpu_offload": true, "offload_optimizer": {}}})",
       "key-two-spellings", "zero_optimization.cpu_offload", Severity::error, "AssertionError"},
      {R"({"zero_optimization": {"stage": 3, "max_live_parameters": 5, "stage3_max_live_parameters": 5}})",
       "key-two-spellings", "zero_optimization.stage3_max_live_parameters", Severity::error,
       "ValidationError"},
      {R"({"zero_optimization": {"stage": 3, "stage3_gather_fp16_weights_on_model_save": true}})",
       "key-deprecated", "zero_optimization.stage3_gather_fp16_weights_on_model_save",
       Severity::warning, "stage3_gather_16bit_weights_on_model_save"},
      {R"({"zero_optimization": {"grad_hooks": true}})", "key-in-docs-only",
       "zero_optimization.grad_hooks", Severity::error, "ValidationError"},
      {R"({"zero_optimization": {"cpu_offload_use_pin_memory": true}})", "key-deprecated-dead",
       "zero_optimization.cpu_offload_use_pin_memory", Severity::warning, "no effect"},
      {R"({"zero_optimization": {"allgather_partitions": true}})", "key-dead",
       "zero_optimization.allgather_partitions", Severity::info, "nowhere"},
      {R"({"zero_optimization": {"stage": 2, "allgather_bucket_size": 2e8}})",
       "key-practically-dead", "zero_optimization.allgather_bucket_size", Severity::info,
       "no effect"},
      {R"({"aio": {"thread_count": 4}})", "key-thread-count", "aio.thread_count", Severity::warning,
       "intra_op_parallelism"},
      {R"({"aio": {"enabled": true}})", "key-unknown", "aio.enabled", Severity::warning,
       "without a word"},
      {R"({"optimizer": {"type": "AdamW", "params": {"max_grad_norm": 1}}})", "key-max-grad-norm",
       "optimizer.params.max_grad_norm", Severity::error, "gradient_clipping"},
      {R"({"optimizer": {"type": "AdamW", "params": {"momentum": 0.9}}})", "key-unknown",
       "optimizer.params.momentum", Severity::error, "TypeError"},
      {R"({"zero_optimization": {"stage": 2, "stage3_max_live_parameters": 1e8}})",
       "key-without-effect-at-stage", "zero_optimization.stage3_max_live_parameters",
       Severity::info, "acts at stage 3"},
      {R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})",
       "offload-without-effect", "zero_optimization.offload_param", Severity::warning,
       "no effect at stage 2"},
      {R"({"zero_optimization": true})", "zero-as-boolean", "zero_optimization", Severity::warning,
       "stage 1"},
      {R"({"zero_optimization": {"stage": 4}})", "value-out-of-range", "zero_optimization.stage",
       Severity::error, "0 - 3"},
      {R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "gpu"}}})",
       "value-not-a-choice", "zero_optimization.offload_param.device", Severity::error, "`nvme`"},
      {R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": "5e8"}})", "value-wrong-type",
       "zero_optimization.reduce_bucket_size", Severity::error, "a whole number"},
      {R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": "500"}})", "value-quoted",
       "zero_optimization.reduce_bucket_size", Severity::warning, "without quotes"},
      {R"({"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 15099494.4}})",
       "value-wrong-type", "zero_optimization.stage3_prefetch_bucket_size", Severity::error,
       "15099494.4"},
      {R"({"bf16": {"enabled": "true"}})", "value-quoted", "bf16.enabled", Severity::warning,
       "\"true\""},
      {R"({"gradient_accumulation_steps": "8"})", "value-wrong-type", "gradient_accumulation_steps",
       Severity::error, "the text \"8\""},
      {R"({"gradient_clipping": "much"})", "value-wrong-type", "gradient_clipping", Severity::error,
       "step 1"},
      {R"({"prescale_gradients": "false"})", "value-wrong-type", "prescale_gradients",
       Severity::warning, "for true"},
      {R"({"gradient_clipping": true})", "value-boolean", "gradient_clipping", Severity::warning,
       "taken for 1"},
      {R"({"fp16": {"enabled": true, "loss_scale": true}})", "value-wrong-type", "fp16.loss_scale",
       Severity::error, "ValidationError"},
      {R"({"fp16": {"enabled": true, "loss_scale": "inf"}})", "value-out-of-range",
       "fp16.loss_scale", Severity::error, "ValidationError"},
      {R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"ratio": "nan"}}})",
       "value-out-of-range", "zero_optimization.offload_optimizer.ratio", Severity::error, "0 - 1"},
      {R"({"zero_optimization": {"stage": " 4 "}})", "value-out-of-range",
       "zero_optimization.stage", Severity::error, "0 - 3"},
      {R"({"gradient_clipping": 1e400})", "value-wrong-type", "gradient_clipping", Severity::error,
       "OverflowError"},
      {R"({"zero_optimization": {"reduce_bucket_size": 123456789012345678901234567890}})",
       "value-wrong-type", "zero_optimization.reduce_bucket_size", Severity::error,
       "where it is first used"},
      {R"({"optimizer": null})", "value-wrong-type", "optimizer", Severity::error,
       "looks for keys in it"},
      {R"({"fp16": "auto"})", "value-wrong-type", "fp16", Severity::error, "looks for keys in it"},
      {R"({"wall_clock_breakdown": "true"})", "value-wrong-type", "wall_clock_breakdown",
       Severity::error, "at start"},
      {R"({"steps_per_print": "10"})", "value-wrong-type", "steps_per_print", Severity::error,
       "step 1"},
      {R"({"communication_data_type": "fp8"})", "value-not-a-choice", "communication_data_type",
       Severity::error, "ValueError"},
      {R"({"checkpoint": {"tag_validation": "Never"}})", "value-not-a-choice",
       "checkpoint.tag_validation", Severity::error, "DeepSpeedConfigError"},
      {R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_type": "cosine"}}})",
       "value-not-a-choice", "scheduler.params.warmup_type", Severity::warning, "takes log"},
      {R"({"optimizer": {"type": "AdamW", "params": {"lr": -1e-4}}})", "value-out-of-range",
       "optimizer.params.lr", Severity::error, "torch's stops with a ValueError"},
      {R"({"zero_optimization": {"stage": 3, "sub_group_size": "auto"}})", "auto-nobody-fills",
       "zero_optimization.sub_group_size", Severity::error, "ValueError"},
      {R"({"activation_checkpointing": {"partition_activations": true}})",
       "key-activation-checkpointing", "activation_checkpointing", Severity::info,
       "disable_gradient_checkpointing"},
  };
  for (const Example& example : examples) expect_example(example);
}

// What pydantic 2 takes in its lax mode, tried out: each of these is let through, with at most a warning.
TEST(KeyRules, LetThroughWhatDeepspeedTakes) {
  for (const char* json :
       {R"({"zero_optimization": {"reduce_bucket_size": "1_000"}})",
        R"({"zero_optimization": {"reduce_bucket_size": " 12 "}})",
        R"({"zero_optimization": {"reduce_bucket_size": "12.0"}})",
        R"({"zero_optimization": {"reduce_bucket_size": "+0012"}})",
        R"({"zero_optimization": {"reduce_bucket_size": true}})",
        R"({"zero_optimization": {"reduce_scatter": "T", "contiguous_gradients": "off"}})",
        R"({"zero_optimization": {"stage": 3, "module_granularity_threshold": -1}})",
        R"({"zero_optimization": {"offload_param": null, "offload_optimizer": null}})",
        R"({"zero_optimization": {"zenflow": null, "zeropp_loco_param": null}})",
        R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"ratio": " .5 "}}})",
        R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"ratio": true}}})",
        R"({"bf16": null})", R"({"gradient_allreduce_op": "SUM"})",
        R"({"communication_data_type": "Fp16"})", R"({"checkpoint": {"tag_validation": "wArN"}})"})
    for (const Finding& finding : check(json))
      EXPECT_NE(finding.severity, Severity::error)
          << json << ": " << message_of(finding, Language::english);
}

TEST(KeyRules, RefuseTextsThatSpellNoNumber) {
  for (const char* text : {"5e8", "1__0", "_1", "1_", "12.", "12.5", "0x10", "1,000", "--1", ".0"})
    EXPECT_EQ(
        check(R"({"zero_optimization": {"reduce_bucket_size": ")" + std::string(text) + "\"}}")
            .at(0)
            .id,
        "value-wrong-type")
        << text;
  for (const char* text : {" true ", "1.0", "2", ""})
    EXPECT_EQ(check(R"({"zero_optimization": {"reduce_scatter": ")" + std::string(text) + "\"}}")
                  .at(0)
                  .id,
              "value-wrong-type")
        << text;
}

TEST(KeyRules, KnowThatAccelerateSetsStepsPerPrint) {
  Files files;
  files.write("ds_config.json",
              R"({"train_micro_batch_size_per_gpu": "auto", "steps_per_print": "auto"})");
  files.write("train.yaml", "stage: sft\nfinetuning_type: full\ndataset: data\n");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_TRUE(found(diagnosis, "auto-nobody-fills", "steps_per_print").empty())
      << messages(diagnosis);
}

TEST(KeyRules, TellOnceWhatFillsInAutoWhereNoRunIsGiven) {
  Files files;
  files.write("ds_config.json", R"({"train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto", "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
    "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}})");

  const Diagnosis diagnosis = files.diagnose();

  for (const Finding& finding : diagnosis.findings)
    EXPECT_NE(finding.severity, Severity::error) << message_of(finding, Language::english);
  const auto told = found(diagnosis, "auto-waits-for-trainer");
  ASSERT_EQ(told.size(), 1u) << messages(diagnosis);
  EXPECT_EQ(told[0].severity, Severity::info);
  EXPECT_EQ(told[0].line, 1);
  for (const Language language : {Language::english, Language::chinese}) {
    const std::string text = message_of(told[0], language);
    EXPECT_NE(text.find("7"), std::string::npos) << text;
    for (const char* part : {"gradient_clipping <- max_grad_norm", "bf16.enabled <- bf16",
                             "optimizer.params.lr <- learning_rate",
                             "zero_optimization.reduce_bucket_size <- hidden_size^2"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(exit_code_of(diagnosis, Engine::deepspeed), 0);
}

TEST(KeyRules, WarnOfAutoThatNeitherTrainerNorDeepspeedFillsIn) {
  expect_example({R"({"prescale_gradients": "auto"})", "auto-nobody-fills", "prescale_gradients",
                  Severity::warning, "neither the HF Trainer nor accelerate"},
                 false);
}

TEST(KeyTables, KnowEveryKeyThatTheEnginesOwnReaderKnows) {
  const SectionTable* top = find_section("");
  const SectionTable* zero = find_section("zero_optimization");
  for (const spec::RunKey& key : spec::deepspeed_keys())
    EXPECT_NE(find_key(*top, key.key), nullptr) << key.key;
  for (const spec::RunKey& key : spec::deepspeed_zero_keys())
    EXPECT_NE(find_key(*zero, key.key), nullptr) << key.key;
}

TEST(KeyRules, SayNothingOfAConfigThatIsRight) {
  const auto findings = check(R"({"train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto", "train_batch_size": "auto", "gradient_clipping": "auto",
    "zero_allow_untested_optimizer": true, "bf16": {"enabled": "auto"},
    "fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000,
             "initial_scale_power": 16, "hysteresis": 2, "min_loss_scale": 1},
    "zero_optimization": {"stage": 3, "overlap_comm": true, "contiguous_gradients": true,
      "sub_group_size": 1e9, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
      "stage3_param_persistence_threshold": "auto", "stage3_max_live_parameters": 1e9,
      "stage3_max_reuse_distance": 1e9, "stage3_gather_16bit_weights_on_model_save": true}})");

  for (const Finding& finding : findings)
    ADD_FAILURE() << finding.id << " " << message_of(finding, Language::english);
}

/// DeepSpeed 0.19.8 knows these; "auto" is the default of one and nobody has to fill it in.
TEST(KeyRules, KnowKeysOfTheNewestRelease) {
  Files files;
  files.write("ds_config.json",
              R"({"train_micro_batch_size_per_gpu": 1, "use_data_before_expert_parallelism": false,
    "data_types": {"keep_in_fp32_modules": "auto"},
    "zero_optimization": {"stage": 2, "compute_grad_norm": true, "parameter_alignment": true}})");

  const Diagnosis diagnosis = files.diagnose();

  for (const Finding& finding : diagnosis.findings)
    EXPECT_NE(finding.severity, Severity::error) << message_of(finding, Language::english);
  EXPECT_TRUE(found(diagnosis, "auto-nobody-fills").empty());
}

}  // namespace
}  // namespace underkeel::doctor
