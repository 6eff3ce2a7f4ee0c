#include "doctor/own_disk.h"

#include <fmt/format.h>

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

/// The same run with weights alone, and with the final model alone.
std::vector<DiskChange> changes_of(const Inputs& inputs, const spec::RunConfig& run,
                                   const io::SpaceNeed& need, const DiskNeed& disk_need) {
  std::vector<DiskChange> changes;
  if (need.save_count == 0) return changes;
  if (!run.save.weights_only) {
    spec::RunConfig narrow = run;
    narrow.save.weights_only = true;
    if (const auto other = need_of(inputs, narrow, disk_need))
      changes.push_back({.need = *other, .words = "save_only_model: true", .leaves_state = false});
  }
  // The best checkpoint is read at the end.
  if (need.spared_count == 0) changes.push_back(final_model_alone(need));
  return changes;
}

/// Takes it where it fits, with fewer checkpoints if need be.
bool take_cure(const io::SpaceNeed& given, std::string_view word, Saving saving, OwnDisk& disk) {
  io::SpaceNeed need = given;
  const auto fits = [&] { return io::needed_bytes(need) <= disk.free_bytes; };
  if (!fits()) need.save_total_limit = io::largest_limit_that_fits(need, disk.free_bytes);
  if (!fits()) return false;
  if (!word.empty()) disk.words.emplace_back(word);
  if (need.save_total_limit != given.save_total_limit) {
    disk.save_total_limit = need.save_total_limit;
    disk.words.push_back(fmt::format("save_total_limit={}", need.save_total_limit));
  }
  disk.saving = saving;
  disk.needed_bytes = io::needed_bytes(need);
  return true;
}

}  // namespace

std::optional<OwnDisk> own_disk(const Inputs& inputs, const spec::RunConfig& run,
                                const DiskNeed& disk_need) {
  if (!disk_need || !inputs.run || !inputs.machine || !inputs.machine->out_free_bytes)
    return std::nullopt;
  const auto need = need_of(inputs, run, disk_need);
  if (!need) return std::nullopt;
  OwnDisk disk{.needed_bytes = io::needed_bytes(*need),
               .free_bytes = *inputs.machine->out_free_bytes};
  if (disk.fits() || take_cure(*need, "", Saving::as_it_is, disk)) return disk;
  for (const DiskChange& change : changes_of(inputs, run, *need, disk_need)) {
    const bool saves = change.need.save_count > 0;
    if (take_cure(change.need, saves ? "save_only_model=true" : "save_strategy=no",
                  saves ? Saving::weights_only : Saving::nothing, disk))
      break;
  }
  return disk;
}

void take_disk(const OwnDisk& disk, Alternative& row) {
  row.disk_bytes = static_cast<double>(disk.needed_bytes);
  row.disk_margin_bytes = static_cast<double>(disk.free_bytes - disk.needed_bytes);
  if (!disk.fits()) row.verdict = Verdict::fails;
  row.save_total_limit = disk.save_total_limit;
  row.saving = disk.saving;
  row.changes += static_cast<int>(disk.words.size());
  for (const std::string& word : disk.words) row.words += (row.words.empty() ? "" : " ") + word;
}

void tell_own_disk(const Inputs& inputs, const spec::RunConfig& run, const std::string& file,
                   const DiskNeed& disk_need, Diagnosis& diagnosis) {
  if (!disk_need) return;
  const auto need = need_of(inputs, run, disk_need);
  if (!need || io::needed_bytes(*need) == 0) return;
  DiskAnswer answer =
      judge_disk("underkeel", *need, inputs.machine ? inputs.machine->out_free_bytes : std::nullopt,
                 changes_of(inputs, run, *need, disk_need));
  if (!answer.fits) diagnosis.underkeel.verdict = Verdict::fails;
  diagnosis.findings.push_back({.id = std::move(answer.id),
                                .severity = answer.severity,
                                .engine = Engine::underkeel,
                                .file = file,
                                .key = need->save_count > 0 ? "save_total_limit" : "output_dir",
                                .slots = std::move(answer.slots)});
}

}  // namespace underkeel::doctor
