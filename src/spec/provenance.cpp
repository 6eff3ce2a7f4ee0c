// Where the values of a run come from, and the batch equation that spans several files.

#include <algorithm>

#include "base/check.h"
#include "spec/run_sections.h"

namespace underkeel::spec {

std::string source_of(const RunConfig& run, std::string_view key) {
  for (const Provenance& entry : run.provenance)
    if (entry.key == key) return entry.source;
  return "default";
}

namespace {

std::string table_of(const std::vector<Provenance>& entries) {
  std::size_t key_width = 0, value_width = 0;
  for (const Provenance& entry : entries) {
    key_width = std::max(key_width, entry.key.size());
    value_width = std::max(value_width, std::min<std::size_t>(entry.value.size(), 40));
  }
  std::string table;
  for (const Provenance& entry : entries)
    table += fmt::format("{:<{}}  {:<{}}  {}\n", entry.key, key_width, entry.value, value_width,
                         entry.source);
  return table;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20)
      out += fmt::format("\\u{:04x}", byte);
    else
      out += c;
  }
  return out + "\"";
}

bool is_json_number(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!parse_double(text) || !is_digit(text.back())) return false;
  if (text[0] == '-') text.remove_prefix(1);
  return is_digit(text[0]) && (text.size() == 1 || text[0] != '0' || !is_digit(text[1]));
}

}  // namespace

std::string provenance_table(const RunConfig& run) {
  return table_of(run.provenance);
}

std::string values_json(const RunConfig& run) {
  std::string text = "{";
  for (const Provenance& entry : run.provenance) {
    const bool is_literal =
        is_json_number(entry.value) || entry.value == "true" || entry.value == "false";
    text += fmt::format("{}\n  {}: {{\"value\": {}, \"source\": {}}}", text.size() == 1 ? "" : ",",
                        json_text(entry.key), is_literal ? entry.value : json_text(entry.value),
                        json_text(entry.source));
  }
  return text + "\n}\n";
}

std::string chosen_values_table(const RunConfig& run) {
  std::vector<Provenance> chosen = run.provenance;
  std::erase_if(chosen, [](const Provenance& entry) { return entry.source == "default"; });
  return table_of(chosen);
}

DType export_type(const RunConfig& run) {
  switch (run.precision) {
    case Precision::f32:
      return DType::f32;
    case Precision::bf16:
      return run.has_deepspeed ? DType::bf16 : DType::f32;
    case Precision::pure_bf16:
      return DType::bf16;
    case Precision::f16:
      return run.has_deepspeed ? DType::f16 : DType::f32;
  }
  UK_CHECK(false, "a precision that is none");
}

void resolve_auto(RunConfig& run, std::int64_t width) {
  const auto resolve = [&](bool& is_auto, std::optional<std::int64_t>& bound, std::string key,
                           std::int64_t elements, std::string_view rule) {
    if (!is_auto) return;
    is_auto = false;
    bound = elements;
    run.provenance.push_back({"deepspeed.zero_optimization." + std::move(key),
                              fmt::format("{}", elements),
                              fmt::format("derived: \"auto\" is {}", rule)});
  };
  ZeroConfig& zero = run.zero;
  resolve(zero.auto_reduce_bucket, zero.reduce_bucket_elements, "reduce_bucket_size", width * width,
          "hidden_size^2");
  resolve(zero.auto_prefetch_bucket, zero.prefetch_bucket_elements, "stage3_prefetch_bucket_size",
          static_cast<std::int64_t>(0.9 * static_cast<double>(width) * static_cast<double>(width)),
          "0.9 hidden_size^2");
  resolve(zero.auto_param_persistence, zero.param_persistence_elements,
          "stage3_param_persistence_threshold", 10 * width, "10 hidden_size");
}

std::optional<Problem> batch_problem(const RunConfig& run, const WorldSize& world) {
  if (!run.global_batch_sequences) return std::nullopt;
  const std::int64_t micro = run.sequences_per_micro_batch;
  const std::int64_t wanted = *run.global_batch_sequences;
  const std::int64_t given = micro * run.accumulation_steps * world.ranks;
  if (given == wanted) return std::nullopt;
  Problem problem;
  problem.key = "deepspeed.train_batch_size";
  problem.what = fmt::format(
      "{} ({}) is not per_device_train_batch_size {} ({}) x gradient_accumulation_steps {} ({}) x "
      "ranks {} ({}) = {}",
      wanted, source_of(run, "deepspeed.train_batch_size"), micro,
      source_of(run, "per_device_train_batch_size"), run.accumulation_steps,
      source_of(run, "gradient_accumulation_steps"), world.ranks, world.source, given);
  if (wanted % (micro * world.ranks) == 0)
    problem.fix = fmt::format("gradient_accumulation_steps: {} makes {}",
                              wanted / (micro * world.ranks), wanted);
  else
    problem.fix = fmt::format("train_batch_size: {} or \"auto\" is what the run file gives", given);
  return problem;
}

Result<void> check_world_size(const RunConfig& run, const WorldSize& world) {
  const auto problem = batch_problem(run, world);
  if (!problem) return {};
  return fail(problem->code, problem->what, problem->key, problem->fix);
}

}  // namespace underkeel::spec
