#include "doctor/disk_cures.h"

#include <utility>

#include <fmt/format.h>

#include "doctor/model_sizes.h"

namespace underkeel::doctor {
namespace {

std::string part(std::string_view phrase, std::int64_t bytes) {
  return bytes > 0 ? fmt::format("@[{}] {}", phrase, size_text(bytes)) : std::string();
}

/// What stands there once the last checkpoint has been written: ", then 3 of them and the final folder of 13.5 GB".
std::string afterwards(const io::SpaceNeed& need) {
  const std::string tail = disk_tail(need);
  if (tail.empty()) return "";
  return fmt::format("@[disk.then] {}@[disk.of-them]{}", io::checkpoints_at_end(need), tail);
}

bool fails_by_export(const io::SpaceNeed& need, std::int64_t free_bytes) {
  io::SpaceNeed alone = need;
  alone.afterwards_bytes = 0;
  return io::needed_bytes(need) > free_bytes && io::needed_bytes(alone) <= free_bytes;
}

/// What fits, each with what it then needs: changes that leave a state to resume from, fewer checkpoints, the others; each
/// with fewer checkpoints where it takes that. "" where nothing does.
class Cures {
 public:
  Cures(const io::SpaceNeed& need, std::int64_t free_bytes) : need_(need), free_(free_bytes) {}

  std::string of(const std::vector<DiskChange>& changes) {
    for (const DiskChange& change : changes)
      if (change.leaves_state && fits(change.need)) add(change, change.need);
    io::SpaceNeed fewer = need_;
    fewer.save_total_limit = io::largest_limit_that_fits(need_, free_);
    if (fewer.save_total_limit > 0) add({}, fewer);
    for (const DiskChange& change : changes) {
      if (change.leaves_state && fits(change.need)) continue;
      io::SpaceNeed need = change.need;
      if (!fits(need)) need.save_total_limit = io::largest_limit_that_fits(need, free_);
      // With a limit alone as many are kept.
      const bool keeps_no_more =
          change.leaves_state && need.save_total_limit <= fewer.save_total_limit;
      if (fits(need) && !keeps_no_more) add(change, need);
    }
    return std::move(text_);
  }

 private:
  bool fits(const io::SpaceNeed& need) const { return io::needed_bytes(need) <= free_; }
  void add(const DiskChange& change, const io::SpaceNeed& need) {
    std::string words = change.words;
    if (need.save_total_limit != change.need.save_total_limit || words.empty())
      words +=
          fmt::format("{}save_total_limit: {}", words.empty() ? "" : ", ", need.save_total_limit);
    text_ += fmt::format("{}{} ({}{})", text_.empty() ? "" : "; ", words,
                         size_text(io::needed_bytes(need)),
                         change.leaves_state ? "" : ", @[disk.nothing-to-resume]");
  }

  const io::SpaceNeed& need_;
  std::int64_t free_;
  std::string text_;
};

}  // namespace

DiskChange final_model_alone(io::SpaceNeed need) {
  need.save_count = 0;
  need.is_least = false;
  return {.need = need, .words = "save_strategy: \"no\"", .leaves_state = false};
}

std::int64_t exported_bytes(const Inputs& inputs) {
  if (!inputs.model || !inputs.exporting) return 0;
  const auto whole = static_cast<std::int64_t>(2 * sizes_of(*inputs.model).total());
  const bool is_alone_too_large =
      inputs.machine && inputs.machine->out_free_bytes && whole > *inputs.machine->out_free_bytes;
  return is_alone_too_large ? 0 : whole;
}

std::string disk_tail(const io::SpaceNeed& need) {
  return part("disk.and-final", need.export_bytes) + part("disk.and-export", need.afterwards_bytes);
}

DiskAnswer judge_disk(std::string_view engine, const io::SpaceNeed& need,
                      std::optional<std::int64_t> free_bytes,
                      const std::vector<DiskChange>& changes) {
  const std::int64_t needed = io::needed_bytes(need);
  DiskAnswer answer{.fits = !free_bytes || needed <= *free_bytes};
  const bool by_export = free_bytes && fails_by_export(need, *free_bytes);
  const std::string subject =
      need.save_count > 0 ? fmt::format("{}-disk", engine) : std::string("final-folder");
  answer.id = !free_bytes   ? subject
              : answer.fits ? subject + "-fits"
              : by_export   ? "disk-fails-by-export"
                            : subject + "-does-not-fit";
  answer.severity = answer.fits ? Severity::info : Severity::error;
  const std::string cures = answer.fits ? std::string() : Cures(need, *free_bytes).of(changes);
  const std::string otherwise = by_export     ? "@export.elsewhere"
                                : answer.fits ? std::string()
                                              : fmt::format("@[disk.free] {}@[disk.or-elsewhere]",
                                                            size_text(needed - *free_bytes));
  answer.slots = {
      {"needed", size_text(needed)},
      {"free", free_bytes ? capacity(*free_bytes) : "@unknown"},
      {"count", fmt::format("{}", io::checkpoints_at_once(need))},
      {"each", size_text(need.checkpoint_bytes)},
      {"final", size_text(need.export_bytes)},
      {"then", afterwards(need)},
      {"export", part("disk.and-export", need.afterwards_bytes)},
      {"bound", need.is_least ? "@bound.least" : "@bound.most"},
      {"least", need.is_least ? "@disk.all-kept" : ""},
      {"cure",
       cures.empty() ? otherwise : (by_export ? "@[export.elsewhere]; " : std::string()) + cures}};
  return answer;
}

}  // namespace underkeel::doctor
