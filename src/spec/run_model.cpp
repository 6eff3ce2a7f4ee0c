// What is trained, from where to where, in which precision, and the size of a step.

#include <algorithm>
#include <array>

#include "spec/run_sections.h"

namespace underkeel::spec {

void read_stage(RunReading& reading) {
  Fields& fields = reading.fields;
  const auto stage = fields.text("stage");
  if (stage == "pt") {
    reading.run.stage = Stage::pt;
  } else if (stage && *stage != "sft") {
    fields.problem("stage", fmt::format("stage `{}` is not supported", *stage),
                   "supported are sft (instructions and answers) and pt (plain text)",
                   ErrorCode::unsupported);
  }
  const std::string now = "supported so far is finetuning_type: full";
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
  if (pure && fp16) fields.problem("pure_bf16", "fp16 and pure_bf16 exclude each other");
  // LLaMA-Factory's users write bf16 beside it or not; what is trained is the same.
  reading.run.precision = pure   ? Precision::pure_bf16
                          : bf16 ? Precision::bf16
                          : fp16 ? Precision::f16
                                 : Precision::f32;
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

}  // namespace underkeel::spec
