// The run file: a flat LLaMA-Factory YAML, its DeepSpeed config and `key=value` overrides.
// Keys that are honoured are read by name in run_*.cpp; run_keys.cpp says what becomes of the others.

#include <algorithm>
#include <array>

#include "spec/examine_run.h"
#include "spec/json_reader.h"
#include "spec/named_file.h"
#include "spec/run_keys.h"
#include "spec/run_overrides.h"
#include "spec/run_sections.h"
#include "spec/text_file.h"
#include "spec/yaml_reader.h"

namespace underkeel::spec {
namespace {

/// Our name of a key that other trainers know under another one; empty for others.
std::string_view name_here(std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"lr", "learning_rate"},
      {"epochs", "num_train_epochs"},
      {"num_epochs", "num_train_epochs"},
      {"batch_size", "per_device_train_batch_size"},
      {"micro_batch_size", "per_device_train_batch_size"},
      {"grad_accum", "gradient_accumulation_steps"},
      {"gradient_accumulation", "gradient_accumulation_steps"},
      {"max_seq_length", "cutoff_len"},
      {"max_length", "cutoff_len"},
      {"sequence_len", "cutoff_len"},
      {"model_max_length", "cutoff_len"},
      {"base_model", "model_name_or_path"},
      {"model", "model_name_or_path"},
      {"model_path", "model_name_or_path"},
      {"datasets", "dataset"},
      {"data_path", "dataset"},
      {"scheduler", "lr_scheduler_type"},
      {"gradient_clipping", "max_grad_norm"},
      {"clip_grad", "max_grad_norm"},
      {"precision", "bf16"},
      {"dtype", "bf16"},
      {"eval_steps_per_epoch", "eval_steps"}};
  for (const auto& [other, ours] : names)
    if (key == other) return ours;
  return {};
}

/// Many keys are one of a pair, for training and for evaluation: both are named where the word does not say which.
std::string nearest_of_pair(std::string_view key, const std::string& nearest,
                            const std::vector<std::string>& known) {
  const std::size_t at = nearest.find("_eval_");
  if (at != std::string::npos && key.find("eval") == std::string_view::npos) {
    std::string other = nearest;
    other.replace(at, 6, "_train_");
    if (std::find(known.begin(), known.end(), other) != known.end())
      return fmt::format("the nearest are `{}` and `{}`", other, nearest);
  }
  return fmt::format("the nearest is `{}`", nearest);
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
  constexpr std::array<std::string_view, 11> underkeel_keys = {"ranks",
                                                               "threads",
                                                               "device",
                                                               "memory",
                                                               "recompute",
                                                               "guard",
                                                               "matmul_timing",
                                                               "collective_time_limit",
                                                               "packing_attention",
                                                               "skip_broken_records",
                                                               "token_cache"};
  fields.refuse_unread([&](const Entry& entry) -> Fields::Refusal {
    const std::string_view key = entry.key;
    std::string fix;
    if (std::find(underkeel_keys.begin(), underkeel_keys.end(), key) != underkeel_keys.end())
      fix = fmt::format("it belongs under `underkeel:`, as underkeel.{}", key);
    else if (key == "zero_optimization" || is_in(key, deepspeed_keys()))
      fix = "it belongs in the DeepSpeed config that `deepspeed:` names";
    else if (const std::string_view name = name_here(key); !name.empty())
      fix = fmt::format("here it is `{}`", name);
    else if (const std::string nearest = nearest_word(key, known); !nearest.empty())
      fix = nearest_of_pair(key, nearest, known);
    else
      fix = "docs/guide/run-files.md lists the keys";
    return {"unknown key", fix};
  });
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
      const bool is_lost = text.error().code == ErrorCode::not_found && path.is_relative();
      reading.fields.problem("deepspeed", fmt::format("{}: {}", value->text, text.error().what),
                             is_lost ? "paths count from the working folder" : text.error().fix,
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
    if (document->root.kind == ValueKind::null) {  // DeepSpeed looks keys up in it
      reading.problems.add({.key = source.name, .what = "a JSON object is wanted, null was found"});
      return std::nullopt;
    }
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

Result<RunReadout> examine_run_text(std::string_view text, const std::filesystem::path& file,
                                    const std::vector<std::string>& overrides,
                                    const std::optional<WorldSize>& world) {
  UK_TRY(root, read_yaml(text, file.string()));
  if (root.kind != ValueKind::mapping)
    return fail(ErrorCode::bad_file,
                fmt::format("a run file is a mapping of keys, {} was found", shown(root)),
                file.string());

  RunReadout readout;
  Problems& problems = readout.problems;
  std::vector<Override> deepspeed_overrides;
  std::vector<Override> changes = take_dotted_keys(root);
  for (Override& change : parse_overrides(overrides, problems))
    changes.push_back(std::move(change));
  for (Override& change : changes) {
    if (change.path.front() == "deepspeed" && change.path.size() > 1)
      deepspeed_overrides.push_back(std::move(change));
    else
      apply_override(change, 0, root, problems);
  }

  RunConfig& run = readout.run;
  run.run_file = file;
  run.changes = overrides;
  const Value* own = root.find("underkeel");
  const Value* own_ranks = own != nullptr ? own->find("ranks") : nullptr;
  const bool names_ranks = own_ranks != nullptr && own_ranks->kind != ValueKind::null;
  if (world && world->yields && !names_ranks) {
    run.changes.push_back(fmt::format("underkeel.ranks={}", world->ranks));
    for (const Override& change : parse_overrides({run.changes.back()}, problems))
      apply_override(change, 0, root, problems);
  }
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
  if (world && world->yields && !names_ranks)
    for (Provenance& entry : run.provenance)
      if (entry.key == "underkeel.ranks") entry.source = world->source;
  const auto source = find_deepspeed(reading, deepspeed_overrides);
  sort_other_keys(reading);
  for (const std::string& note : fields.notes()) run.notes.push_back(note);

  std::optional<WorldSize> ranks = world;
  if (names_ranks && (!world || world->yields)) ranks = WorldSize{run.ranks, "underkeel.ranks"};
  if (source) read_deepspeed(*source, ranks, problems, run);
  check_conflicts(reading);
  if (run.precision == Precision::bf16 && !run.has_deepspeed)
    run.notes.push_back(
        "bf16: true without a DeepSpeed config is bf16 weights and gradients with f32 masters "
        "here, where LLaMA-Factory keeps f32 weights under autocast; saved weights are f32, as "
        "there");
  if (run.precision == Precision::f16 && !run.has_deepspeed)
    run.notes.push_back(
        "fp16: true without a DeepSpeed config is fp16 weights and gradients with f32 masters "
        "and DeepSpeed's loss-scale rule here, where LLaMA-Factory keeps f32 weights under "
        "autocast and torch's gradient scaler; saved weights are f32, as there");
  return readout;
}

Result<RunConfig> read_run_file(const std::filesystem::path& file,
                                const std::vector<std::string>& overrides,
                                const std::optional<WorldSize>& world) {
  UK_TRY(text, read_named_file(file));
  UK_TRY(readout, examine_run_text(text, file, overrides, world));
  if (!readout.problems.empty()) return tl::unexpected(readout.problems.to_error(file.string()));
  return std::move(readout.run);
}

}  // namespace underkeel::spec
