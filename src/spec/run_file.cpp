// The run file: a flat LLaMA-Factory YAML, its DeepSpeed config and `key=value` overrides.
// Keys that are honoured are read here by name; run_keys.cpp says what becomes of all others.

#include <algorithm>
#include <array>
#include <cmath>

#include "spec/json_reader.h"
#include "spec/run_keys.h"
#include "spec/run_overrides.h"
#include "spec/run_sections.h"
#include "spec/text_file.h"
#include "spec/yaml_reader.h"

namespace underkeel::spec {
namespace {

constexpr std::int64_t most_sequences = 1 << 24;
constexpr std::int64_t most_steps = std::int64_t{1} << 40;

void read_stage(RunReading& reading) {
  Fields& fields = reading.fields;
  const std::string now = "supported so far is stage: pt (plain text) with finetuning_type: full";
  const auto stage = fields.text("stage");
  if (!stage)
    fields.problem("stage",
                   "not given, which LLaMA-Factory takes as sft; that is not supported yet", now,
                   ErrorCode::unsupported);
  else if (*stage != "pt")
    fields.problem("stage", fmt::format("stage `{}` is not supported yet", *stage), now,
                   ErrorCode::unsupported);
  const auto type = fields.text("finetuning_type");
  if (!type)
    fields.problem("finetuning_type",
                   "not given, which LLaMA-Factory takes as lora; that is not supported yet", now,
                   ErrorCode::unsupported);
  else if (*type != "full")
    fields.problem("finetuning_type", fmt::format("type `{}` is not supported yet", *type), now,
                   ErrorCode::unsupported);
  reading.keep<std::string>("stage", stage, "sft");
  reading.keep<std::string>("finetuning_type", type, "lora");

  const auto train = fields.boolean("do_train");
  if (train == false)
    fields.problem("do_train", "false leaves nothing to do for this run", "write do_train: true");
  if (!train && !fields.has("do_train"))
    reading.run.notes.push_back(
        "do_train is not given: this run trains, where LLaMA-Factory would not");
}

void read_model(RunReading& reading) {
  Fields& fields = reading.fields;
  RunConfig& run = reading.run;
  const auto required = [&](std::string_view key, std::string_view what) {
    const auto text = fields.text(key);
    if (!text || text->empty()) {
      if (!fields.has(key) || fields.is_null(key) || text)
        fields.problem(key, fmt::format("the key is missing: {}", what));
      return std::string();
    }
    reading.keep(key, text, std::string());
    return *text;
  };
  run.model = required("model_name_or_path", "a model folder or hub name is wanted");
  run.output = required("output_dir", "the folder for checkpoints and results is wanted");
  run.train_from_scratch =
      reading.keep("train_from_scratch", fields.boolean("train_from_scratch"), false);
  run.overwrite_output =
      reading.keep("overwrite_output_dir", fields.boolean("overwrite_output_dir"), false);

  const Value* resume = fields.take("resume_from_checkpoint");
  const bool says_flag = resume != nullptr && resume->kind == ValueKind::boolean;
  if (resume != nullptr && !says_flag) {
    const auto path = fields.text("resume_from_checkpoint");
    if (path) run.resume_from = *path;
  }
  // LLaMA-Factory goes on from the newest checkpoint by itself, unless it may overwrite.
  if (run.resume_from.empty() && run.overwrite_output && !(says_flag && resume->boolean))
    run.resume_from = "none";
  reading.note_source("resume_from_checkpoint",
                      run.resume_from.empty() ? "newest, if any" : run.resume_from,
                      resume != nullptr && resume->kind != ValueKind::null);

  const auto attention = fields.text("flash_attn");
  constexpr std::array<std::string_view, 5> kinds = {"auto", "disabled", "sdpa", "fa2", "fa3"};
  if (attention && std::find(kinds.begin(), kinds.end(), *attention) == kinds.end())
    fields.problem("flash_attn", fmt::format("`{}` is no kind of attention", *attention),
                   "write auto, disabled, sdpa, fa2 or fa3");
}

void read_precision(RunReading& reading) {
  Fields& fields = reading.fields;
  const bool bf16 = reading.keep("bf16", fields.boolean("bf16"), false);
  const bool fp16 = reading.keep("fp16", fields.boolean("fp16"), false);
  const bool pure = reading.keep("pure_bf16", fields.boolean("pure_bf16"), false);
  if (bf16 && fp16) fields.problem("fp16", "bf16 and fp16 exclude each other");
  if (fp16)
    fields.problem("fp16", "training in fp16 with loss scaling is not supported yet",
                   "write bf16: true", ErrorCode::unsupported);
  if (pure)
    fields.problem("pure_bf16", "training without f32 master weights is not supported yet",
                   "write bf16: true", ErrorCode::unsupported);
  reading.run.precision = bf16 ? Precision::bf16 : fp16 ? Precision::f16 : Precision::f32;
}

void read_recomputation(RunReading& reading) {
  Fields& fields = reading.fields;
  const bool disabled = reading.keep("disable_gradient_checkpointing",
                                     fields.boolean("disable_gradient_checkpointing"), false);
  const auto other = fields.boolean("gradient_checkpointing");
  if (other == true && disabled)
    fields.problem("gradient_checkpointing",
                   "true here, while disable_gradient_checkpointing turns it off",
                   "keep one of the two");
  reading.run.recompute = disabled ? Recompute::none : Recompute::block;
}

void read_data(RunReading& reading) {
  Fields& fields = reading.fields;
  DataConfig& data = reading.run.data;
  EvaluationConfig& evaluation = reading.run.evaluation;
  data.folder = reading.keep<std::string>("dataset_dir", fields.text("dataset_dir"), "data");
  data.datasets = fields.words("dataset").value_or(std::vector<std::string>());
  data.evaluation_datasets = fields.words("eval_dataset").value_or(std::vector<std::string>());
  if (data.datasets.empty())
    fields.problem("dataset", "the key is missing: names of dataset_info.json are wanted");
  else
    reading.note_source("dataset", fmt::format("{}", fmt::join(data.datasets, ", ")), true);
  if (!data.evaluation_datasets.empty())
    reading.note_source("eval_dataset",
                        fmt::format("{}", fmt::join(data.evaluation_datasets, ", ")), true);
  data.cutoff_tokens = reading.keep<std::int64_t>(
      "cutoff_len", fields.integer("cutoff_len", {2, most_sequences}), 2048);
  const auto packing = fields.boolean("packing");
  data.packing = reading.keep("packing", packing, true);
  if (packing == true) {
    --data.cutoff_tokens;
    reading.run.notes.push_back(fmt::format(
        "packing: true makes blocks of cutoff_len - 1 = {} tokens, as in LLaMA-Factory; leave the "
        "key out (stage pt packs anyway) for blocks of cutoff_len",
        data.cutoff_tokens));
  }
  const auto samples = fields.integer("max_samples", {1, INT64_MAX});
  data.max_samples = samples;
  if (samples) reading.keep<std::int64_t>("max_samples", samples, 0);
  data.packing_batch_records = reading.keep<std::int64_t>(
      "preprocessing_batch_size", fields.integer("preprocessing_batch_size", {1, INT32_MAX}), 1000);
  const auto workers = fields.integer("preprocessing_num_workers", {1, 100000});
  if (workers.value_or(1) > 1)
    reading.run.notes.push_back(fmt::format(
        "preprocessing_num_workers: {} is passed over; LLaMA-Factory cuts the data in as many "
        "parts before it packs, so that blocks at the ends of parts can differ",
        *workers));
  data.template_name = fields.text("template").value_or("");
  data.shuffle = !reading.keep("disable_shuffling", fields.boolean("disable_shuffling"), false);
  data.drop_last =
      reading.keep("dataloader_drop_last", fields.boolean("dataloader_drop_last"), false);

  evaluation.validation_size = reading.keep("val_size", fields.number("val_size", {}), 0.0);
  if (evaluation.validation_size == 1)
    fields.problem("val_size", "1 is neither a share below 1 nor a number of records above 1");
  if (evaluation.validation_size > 1 &&
      std::trunc(evaluation.validation_size) != evaluation.validation_size)
    fields.problem("val_size", "a number of records must be whole");
  if (evaluation.validation_size > 1e-6 && !data.evaluation_datasets.empty())
    fields.problem("val_size", "eval_dataset and val_size exclude each other");
}

void read_optimizer(RunReading& reading) {
  Fields& fields = reading.fields;
  OptimizerConfig& optimizer = reading.run.optimizer;
  constexpr NumberRange positive = {.least = 0, .most = 1e6, .least_is_allowed = false};
  constexpr NumberRange not_negative = {.least = 0, .most = 1e6};
  optimizer.learning_rate =
      reading.keep("learning_rate", fields.number("learning_rate", not_negative), 5e-5);
  constexpr NumberRange beta = {.least = 0, .most = 0.9999999};
  optimizer.beta1 = reading.keep("adam_beta1", fields.number("adam_beta1", beta), 0.9);
  optimizer.beta2 = reading.keep("adam_beta2", fields.number("adam_beta2", beta), 0.999);
  optimizer.epsilon = reading.keep("adam_epsilon", fields.number("adam_epsilon", positive), 1e-8);
  optimizer.weight_decay =
      reading.keep("weight_decay", fields.number("weight_decay", not_negative), 0.0);
  const auto clip = fields.number("max_grad_norm", {.least = -1e300});
  optimizer.max_grad_norm = fields.is_null("max_grad_norm")
                                ? 0.0
                                : std::max(0.0, reading.keep("max_grad_norm", clip, 1.0));
  if (fields.is_null("max_grad_norm")) reading.note_source("max_grad_norm", "off", true);

  const auto name = fields.text("optim");
  constexpr std::array<std::string_view, 3> adamw = {"adamw_torch", "adamw_torch_fused",
                                                     "adamw_hf"};
  if (name && std::find(adamw.begin(), adamw.end(), *name) == adamw.end())
    fields.problem("optim", fmt::format("optimizer `{}` is not supported", *name),
                   "supported is adamw_torch", ErrorCode::unsupported);

  struct Schedule {
    std::string_view name;
    LearningRateSchedule schedule;
  };
  constexpr std::array schedules = {
      Schedule{"linear", LearningRateSchedule::linear},
      Schedule{"cosine", LearningRateSchedule::cosine},
      Schedule{"constant", LearningRateSchedule::constant},
      Schedule{"constant_with_warmup", LearningRateSchedule::constant_with_warmup}};
  const std::string wanted =
      reading.keep<std::string>("lr_scheduler_type", fields.text("lr_scheduler_type"), "linear");
  const auto found = std::find_if(schedules.begin(), schedules.end(),
                                  [&](const Schedule& known) { return known.name == wanted; });
  if (found != schedules.end())
    optimizer.schedule = found->schedule;
  else
    fields.problem("lr_scheduler_type", fmt::format("schedule `{}` is not supported yet", wanted),
                   "supported are linear, cosine, constant and constant_with_warmup",
                   ErrorCode::unsupported);
  const Value* options = fields.take("lr_scheduler_kwargs");
  if (options != nullptr && !is_neutral(*options, "null"))
    fields.problem("lr_scheduler_kwargs", "options of the schedule are not supported yet", {},
                   ErrorCode::unsupported);

  optimizer.warmup_ratio =
      reading.keep("warmup_ratio", fields.number("warmup_ratio", {.most = 1}), 0.0);
  // transformers 5 reads a number between 0 and 1 here as a share of all steps.
  const double warmup = reading.keep(
      "warmup_steps", fields.number("warmup_steps", {.most = double(most_steps)}), 0.0);
  if (warmup > 0 && warmup < 1) {
    optimizer.warmup_ratio = warmup;
  } else if (std::trunc(warmup) != warmup) {
    fields.problem("warmup_steps", fmt::format("{} is neither whole nor a share below 1", warmup));
  } else {
    optimizer.warmup_steps = static_cast<std::int64_t>(warmup);
    if (warmup > 0 && optimizer.warmup_ratio > 0) {
      reading.run.notes.push_back("warmup_steps is given, so warmup_ratio has no effect");
      optimizer.warmup_ratio = 0;
    }
  }
}

void read_steps(RunReading& reading) {
  Fields& fields = reading.fields;
  RunConfig& run = reading.run;
  run.sequences_per_micro_batch = reading.keep<std::int64_t>(
      "per_device_train_batch_size",
      fields.integer("per_device_train_batch_size", {1, most_sequences}), 8);
  run.evaluation.batch_size = reading.keep<std::int64_t>(
      "per_device_eval_batch_size",
      fields.integer("per_device_eval_batch_size", {1, most_sequences}), 8);
  run.accumulation_steps = reading.keep<std::int64_t>(
      "gradient_accumulation_steps",
      fields.integer("gradient_accumulation_steps", {1, most_sequences}), 1);
  run.epochs = reading.keep(
      "num_train_epochs",
      fields.number("num_train_epochs", {.least = 0, .most = 1e9, .least_is_allowed = false}), 3.0);
  run.max_steps =
      reading.keep<std::int64_t>("max_steps", fields.integer("max_steps", {-1, most_steps}), -1);
  if (run.max_steps == 0) run.max_steps = -1;  // as the Trainer has it
  constexpr std::int64_t most_seed = UINT32_MAX;
  const auto seed = reading.keep<std::int64_t>("seed", fields.integer("seed", {0, most_seed}), 42);
  run.seed = static_cast<std::uint64_t>(seed);
  const auto data_seed = fields.integer("data_seed", {0, most_seed});
  if (data_seed) reading.keep<std::int64_t>("data_seed", data_seed, 0);
  run.data.seed = static_cast<std::uint64_t>(data_seed.value_or(seed));
}

/// The time that a collective may take. LLaMA-Factory's examples write 180000000, five years, where
/// they mean "never mind"; a run that never notices a lost rank helps nobody.
void read_time_limit(RunReading& reading) {
  constexpr double longest_s = 86400;
  const auto given =
      reading.fields.number("ddp_timeout", {.least = 0, .most = 1e12, .least_is_allowed = false});
  if (!given) return;
  if (*given > longest_s) {
    reading.run.notes.push_back(fmt::format(
        "ddp_timeout: {} s is longer than a day: {} s holds; underkeel.collective_time_limit sets "
        "it to more",
        *given, reading.run.collective_time_limit_s));
    return;
  }
  reading.run.collective_time_limit_s = reading.keep("ddp_timeout", given, 0.0);
}

struct Interval {
  std::int64_t steps = 0;
  double fraction = 0;
};

/// A number of steps, or below 1 a share of all steps. Both 0 when the key is absent.
Interval read_interval(RunReading& reading, std::string_view key) {
  const auto number = reading.fields.number(
      key, {.least = 0, .most = double(most_steps), .least_is_allowed = false});
  if (!number) return {};
  reading.keep(key, number, 0.0);
  if (*number < 1) return {.fraction = *number};
  if (std::trunc(*number) != *number) {
    reading.fields.problem(key, fmt::format("{} is neither whole nor a share below 1", *number));
    return {};
  }
  return {.steps = static_cast<std::int64_t>(*number)};
}

Cadence read_cadence(RunReading& reading, std::string_view key, Cadence fallback) {
  const Value* value = reading.fields.take(key);
  if (value == nullptr || value->kind == ValueKind::null) {
    reading.note_source(key, fallback == Cadence::no ? "no" : "steps", false);
    return fallback;
  }
  // A bare `no` is a truth value in YAML.
  const std::string name = value->kind == ValueKind::boolean && !value->boolean ? "no"
                           : value->kind == ValueKind::text                     ? value->text
                                                                                : shown(*value);
  reading.note_source(key, name, true);
  if (name == "no") return Cadence::no;
  if (name == "steps") return Cadence::steps;
  if (name == "epoch") return Cadence::epoch;
  reading.fields.problem(key, fmt::format("`{}` is not supported", name),
                         "supported are no, steps and epoch", ErrorCode::unsupported);
  return fallback;
}

void read_events(RunReading& reading) {
  Fields& fields = reading.fields;
  RunConfig& run = reading.run;
  const Interval logging = read_interval(reading, "logging_steps");
  if (logging.steps > 0) run.logging_steps = logging.steps;
  run.logging_fraction = logging.fraction;
  run.log_first_step =
      reading.keep("logging_first_step", fields.boolean("logging_first_step"), false);
  run.plot_loss = reading.keep("plot_loss", fields.boolean("plot_loss"), false);

  run.save.strategy = read_cadence(reading, "save_strategy", Cadence::steps);
  const Interval save = read_interval(reading, "save_steps");
  if (save.steps > 0) run.save.steps = save.steps;
  run.save.steps_fraction = save.fraction;
  const auto limit = fields.integer("save_total_limit", {-1, INT32_MAX});
  if (limit) reading.keep<std::int64_t>("save_total_limit", limit, 0);
  if (limit && *limit > 0) run.save.total_limit = limit;
  run.save.weights_only = reading.keep("save_only_model", fields.boolean("save_only_model"), false);

  EvaluationConfig& evaluation = run.evaluation;
  const bool old_name = fields.has("evaluation_strategy");
  if (old_name && fields.has("eval_strategy"))
    fields.problem("evaluation_strategy", "this is the old name of eval_strategy, also given",
                   "keep one of the two");
  evaluation.strategy =
      read_cadence(reading, old_name ? "evaluation_strategy" : "eval_strategy", Cadence::no);
  const Interval interval = read_interval(reading, "eval_steps");
  const bool own_interval = interval.steps > 0 || interval.fraction > 0;
  evaluation.steps = interval.steps > 0 ? interval.steps : run.logging_steps;
  evaluation.steps_fraction = own_interval ? interval.fraction : run.logging_fraction;
  const bool asked = reading.keep("do_eval", fields.boolean("do_eval"), false);
  evaluation.at_end = asked || evaluation.strategy != Cadence::no;
  if (evaluation.at_end && run.data.evaluation_datasets.empty() &&
      evaluation.validation_size <= 1e-6)
    fields.problem(asked ? "do_eval" : "eval_strategy",
                   "there is nothing to evaluate on: neither eval_dataset nor val_size is given");
}

/// Keys of the tables: those without effect become notes, others must be neutral; what is in no
/// table is unknown.
void sort_other_keys(RunReading& reading) {
  Fields& fields = reading.fields;
  std::vector<std::string> silent;
  for (const RunKey& key : run_keys()) {
    const Value* value = fields.take(key.key);
    if (value == nullptr) continue;
    if (key.use == KeyUse::refused) {
      if (!is_neutral(*value, key.neutral))
        fields.problem(key.key, fmt::format("{} is not honoured: {}", shown(*value), key.what), {},
                       ErrorCode::unsupported);
    } else if (key.what.empty()) {
      silent.emplace_back(key.key);
    } else {
      reading.run.notes.push_back(fmt::format("{} has no effect: {}", key.key, key.what));
    }
  }
  if (!silent.empty())
    reading.run.notes.push_back(
        fmt::format("accepted without effect: {}", fmt::join(silent, ", ")));

  const std::vector<std::string> known = fields.asked();
  const auto is_in = [](std::string_view key, std::span<const RunKey> table) {
    return std::any_of(table.begin(), table.end(),
                       [&](const RunKey& candidate) { return candidate.key == key; });
  };
  constexpr std::array<std::string_view, 6> underkeel_keys = {
      "ranks", "threads", "device", "memory", "recompute", "collective_time_limit"};
  for (const Entry* entry : fields.unread()) {
    const std::string_view key = entry->key;
    std::string fix;
    if (std::find(underkeel_keys.begin(), underkeel_keys.end(), key) != underkeel_keys.end())
      fix = fmt::format("it belongs under `underkeel:`, as underkeel.{}", key);
    else if (key == "zero_optimization" || is_in(key, deepspeed_keys()))
      fix = "it belongs in the DeepSpeed config that `deepspeed:` names";
    else if (const std::string nearest = nearest_word(key, known); !nearest.empty())
      fix = fmt::format("the nearest is `{}`", nearest);
    fields.problem(key, "unknown key", fix);
  }
}

/// The DeepSpeed config that `deepspeed:` names or holds, with its overrides; nullopt when there
/// is none, and after a problem.
std::optional<DeepspeedSource> find_deepspeed(RunReading& reading,
                                              const std::vector<Override>& overrides) {
  DeepspeedSource source;
  source.root.kind = ValueKind::null;
  source.name = reading.file_name;
  const Value* value = reading.fields.take("deepspeed");
  if (value != nullptr && value->kind == ValueKind::mapping) {
    source.root = *value;
  } else if (value != nullptr && value->kind == ValueKind::text) {
    const std::filesystem::path path = value->text;
    source.name = path.filename().string();
    const auto text = read_text_file(path);
    if (!text) {
      reading.fields.problem("deepspeed", fmt::format("{}: {}", value->text, text.error().what),
                             path.is_relative() ? "paths count from the working folder" : "",
                             text.error().code);
      return std::nullopt;
    }
    auto document = read_json(*text, path.string(), JsonDialect::relaxed);
    if (!document) {
      reading.problems.add({document.error().code, document.error().where, document.error().what,
                            document.error().fix});
      return std::nullopt;
    }
    for (const std::string& departure : document->departures)
      reading.run.notes.push_back(
          fmt::format("{}, {}: DeepSpeed reads this, the strict JSON loader behind the Hugging "
                      "Face Trainer refuses the file",
                      source.name, departure));
    source.root = std::move(document->root);
    reading.note_source("deepspeed", value->text, true);
  } else if (value != nullptr && value->kind != ValueKind::null) {
    reading.fields.problem(
        "deepspeed", fmt::format("a path or a mapping is wanted, {} was found", shown(*value)));
    return std::nullopt;
  }
  for (const Override& change : overrides) apply_override(change, 1, source.root, reading.problems);
  if (source.root.kind == ValueKind::null) return std::nullopt;
  if (source.root.kind != ValueKind::mapping) {
    reading.problems.add(
        {.key = source.name,
         .what = fmt::format("a JSON object is wanted, {} was found", shown(source.root))});
    return std::nullopt;
  }
  return source;
}

}  // namespace

Result<RunConfig> read_run_file(const std::filesystem::path& file,
                                const std::vector<std::string>& overrides,
                                const std::optional<WorldSize>& world) {
  UK_TRY(text, read_text_file(file));
  UK_TRY(root, read_yaml(text, file.string()));
  if (root.kind != ValueKind::mapping)
    return fail(ErrorCode::bad_file,
                fmt::format("a run file is a mapping of keys, {} was found", shown(root)),
                file.string());

  Problems problems;
  std::vector<Override> deepspeed_overrides;
  for (Override& change : parse_overrides(overrides, problems)) {
    if (change.path.front() == "deepspeed" && change.path.size() > 1)
      deepspeed_overrides.push_back(std::move(change));
    else
      apply_override(change, 0, root, problems);
  }

  RunConfig run;
  run.run_file = file;
  run.changes = overrides;
  Fields fields(root, "", problems, QuotedValues::accept);
  RunReading reading{fields, problems, run, root, file.filename().string()};
  read_stage(reading);
  read_model(reading);
  read_precision(reading);
  read_recomputation(reading);
  read_data(reading);
  read_optimizer(reading);
  read_steps(reading);
  read_events(reading);
  read_time_limit(reading);
  read_underkeel(reading);
  const auto source = find_deepspeed(reading, deepspeed_overrides);
  sort_other_keys(reading);
  for (const std::string& note : fields.notes()) run.notes.push_back(note);

  std::optional<WorldSize> ranks = world;
  if (const Value* own = root.find("underkeel"); !ranks && own != nullptr && own->find("ranks"))
    ranks = WorldSize{run.ranks, "underkeel.ranks"};
  if (source) read_deepspeed(*source, ranks, problems, run);
  if (!problems.empty()) return tl::unexpected(problems.to_error(file.string()));
  return run;
}

}  // namespace underkeel::spec
