#include "doctor/own_disk.h"

#include "doctor/disk_cures.h"

namespace underkeel::doctor {
namespace {

std::optional<io::SpaceNeed> need_of(const Inputs& inputs, const spec::RunConfig& run,
                                     const DiskNeed& disk_need) {
  auto need = disk_need(*inputs.model, run);
  if (!need) return std::nullopt;  // a model whose files cannot be laid out is told of elsewhere
  need->afterwards_bytes = exported_bytes(inputs);
  return *need;
}

}  // namespace

void tell_own_disk(const Inputs& inputs, const spec::RunConfig& run, const std::string& file,
                   const DiskNeed& disk_need, Diagnosis& diagnosis) {
  if (!disk_need) return;
  const auto need = need_of(inputs, run, disk_need);
  if (!need || io::needed_bytes(*need) == 0) return;
  std::optional<WeightsOnly> weights_only;
  if (!run.save.weights_only && need->save_count > 0) {
    spec::RunConfig narrow = run;
    narrow.save.weights_only = true;
    if (const auto other = need_of(inputs, narrow, disk_need))
      weights_only = WeightsOnly{.need = *other, .words = "save_only_model: true"};
  }
  DiskAnswer answer =
      judge_disk("underkeel", *need, inputs.machine ? inputs.machine->out_free_bytes : std::nullopt,
                 weights_only);
  if (!answer.fits) diagnosis.underkeel.verdict = Verdict::fails;
  diagnosis.findings.push_back({.id = std::move(answer.id),
                                .severity = answer.severity,
                                .engine = Engine::underkeel,
                                .file = file,
                                .key = need->save_count > 0 ? "save_total_limit" : "output_dir",
                                .slots = std::move(answer.slots)});
}

}  // namespace underkeel::doctor
