// What an export or a merge of adapters holds in memory and on the disk.

#include <algorithm>

#include <fmt/format.h>

#include "doctor/memory_rules.h"

namespace underkeel::doctor {
namespace {

constexpr double export_shard_bytes = 5e9;

/// Adapters alone are there to be merged; an export file may also copy a model that is whole.
bool is_merge(const Inputs& inputs) {
  if (!inputs.exporting) return true;
  const spec::Value& root = inputs.exporting->root;
  const std::string type = text_at(root, "finetuning_type").value_or("");
  return value_at(root, "adapter_name_or_path") != nullptr || type == "lora" || type == "oft";
}

}  // namespace

void tell_exports(const Question& question, const Inputs& inputs, Diagnosis& diagnosis) {
  if (!inputs.model || (!inputs.exporting && !inputs.adapter)) return;
  if (!inputs.exporting && (inputs.run || inputs.deepspeed)) return;
  // That adapters are to be merged is taken from a machine that is described for it.
  if (!inputs.exporting && !inputs.machine) return;
  const Limits limits = limits_of(question, inputs);
  const ModelSizes sizes = sizes_of(*inputs.model);
  const double whole = 2 * sizes.total();
  std::optional<std::int64_t> free;
  if (inputs.machine) free = inputs.machine->out_free_bytes;
  const Document& document = inputs.exporting ? *inputs.exporting : *inputs.adapter;
  double shard = export_shard_bytes;
  if (inputs.exporting)
    if (const auto size = number_at(inputs.exporting->root, "export_size"); size && *size > 0)
      shard = *size * 1e9;
  const bool is_full = free && whole > static_cast<double>(*free);
  const bool merges = is_merge(inputs);
  const std::vector<Slot> slots = {
      {"whole", amount(whole)},
      {"who", merges ? "@export.by-tensor" : "@export.ours"},
      {"way", merges ? fmt::format("@[merge.elsewhere] {}", amount(whole)) : "@export.with-ours"},
      {"free", free ? capacity(*free) : "@unknown"},
      {"shard", amount(std::min(shard, whole))},
      {"tensor", amount(2 * sizes.largest_tensor)},
      {"limit", limits.host ? capacity(static_cast<std::int64_t>(*limits.host)) : "@unknown"}};
  const auto tell = [&](std::string_view id, Severity severity, Engine engine) {
    diagnosis.findings.push_back({.id = std::string(id),
                                  .severity = severity,
                                  .certainty = Certainty::exact,
                                  .engine = engine,
                                  .file = document.file,
                                  .slots = slots});
  };
  tell(is_full ? "export-fills-the-disk" : "export-sizes",
       is_full ? Severity::error : Severity::info, Engine::both);
  if (merges) tell("merge-not-built", Severity::error, Engine::underkeel);
  if (!limits.host) return;
  const bool whole_fails = whole > *limits.host;
  tell(whole_fails ? "merge-holds-the-whole-model" : "merge-fits-whole",
       whole_fails ? Severity::error : Severity::info, Engine::deepspeed);
  if (inputs.run || inputs.deepspeed) return;
  diagnosis.underkeel.verdict = is_full || merges ? Verdict::fails : Verdict::runs;
  diagnosis.deepspeed.verdict = is_full || whole_fails ? Verdict::fails : Verdict::runs;
}

}  // namespace underkeel::doctor
