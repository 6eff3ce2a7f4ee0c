#include "io/checkpoint_space.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"

namespace underkeel::io {

namespace {

std::string size_text(std::int64_t size_bytes) {
  return fmt::format("{} bytes ({})", format_count(size_bytes), format_bytes(size_bytes));
}

/// The newest and the best one stay, whatever the limit.
std::int64_t kept_by_limit(const SpaceNeed& need) {
  return std::max(need.save_total_limit, 1 + need.spared_count);
}

/// With the largest limit that fits; nothing where none does.
std::optional<SpaceChange> limited(SpaceChange change, std::int64_t free_bytes) {
  if (needed_bytes(change.need) <= free_bytes) return change;
  change.need.save_total_limit = largest_limit_that_fits(change.need, free_bytes);
  if (change.need.save_total_limit == 0) return std::nullopt;
  change.words.push_back(fmt::format("save_total_limit={}", change.need.save_total_limit));
  return change;
}

/// As lines of a run file: `save_only_model: true (nothing to resume from) and save_total_limit: 2`.
std::string text_of(const SpaceChange& change) {
  std::string text;
  for (const std::string& word : change.words) {
    const std::size_t sign = word.find('=');
    const std::string value = word.substr(sign + 1);
    if (!text.empty()) text += " and ";
    text += fmt::format("{}: {}", word.substr(0, sign), value == "no" ? "\"no\"" : value);
    if (&word == &change.words.front() && !change.remark.empty())
      text += fmt::format(" ({})", change.remark);
  }
  return text;
}

/// One a line; `need` itself does not fit.
std::string cures_text(const SpaceNeed& need, std::int64_t free_bytes) {
  std::string text;
  for (const SpaceChange& change : changes_that_fit(need, free_bytes))
    text += fmt::format("{} -> {}\n       ", text_of(change), size_text(needed_bytes(change.need)));
  return text;
}

}  // namespace

std::int64_t most_at_once(const SpaceNeed& need) {
  return need.save_total_limit > 0 ? kept_by_limit(need) + 1 : 1;
}

std::int64_t checkpoints_at_once(const SpaceNeed& need) {
  const std::int64_t all = need.standing_count + need.save_count;
  if (need.save_total_limit <= 0 || need.save_count == 0) return all;
  // More may stand there now than the limit allows; they go after the first save.
  return std::min(all, std::max(need.standing_count, kept_by_limit(need)) + 1);
}

std::int64_t checkpoints_at_end(const SpaceNeed& need) {
  const std::int64_t all = need.standing_count + need.save_count;
  if (need.save_total_limit <= 0 || need.save_count == 0) return all;
  return std::min(all, kept_by_limit(need));
}

std::int64_t needed_bytes(const SpaceNeed& need) {
  const std::int64_t saving =
      (checkpoints_at_once(need) - need.standing_count) * need.checkpoint_bytes;
  // What goes of those that stand now is not counted on: they may be smaller ones, of weights alone.
  const std::int64_t more =
      std::max<std::int64_t>(0, checkpoints_at_end(need) - need.standing_count);
  return std::max(saving, more * need.checkpoint_bytes + need.export_bytes + need.afterwards_bytes);
}

std::int64_t largest_limit_that_fits(SpaceNeed need, std::int64_t free_bytes) {
  const std::int64_t at_once = checkpoints_at_once(need);
  for (need.save_total_limit = at_once - 1; need.save_total_limit > 0; --need.save_total_limit)
    if (needed_bytes(need) <= free_bytes) return need.save_total_limit;
  return 0;
}

std::vector<SpaceChange> changes_that_fit(const SpaceNeed& need, std::int64_t free_bytes) {
  std::vector<SpaceChange> changes;
  if (auto fewer = limited({.words = {}, .remark = {}, .need = need}, free_bytes))
    changes.push_back(*fewer);
  // A checkpoint of weights alone is as large as the final folder.
  SpaceChange narrower{
      .words = {"save_only_model=true"}, .remark = "nothing to resume from", .need = need};
  narrower.need.checkpoint_bytes = need.export_bytes;
  if (need.save_count > 0 && need.export_bytes > 0 && need.export_bytes < need.checkpoint_bytes)
    if (auto fewer = limited(narrower, free_bytes)) changes.push_back(*fewer);
  SpaceChange none{.words = {"save_strategy=no"}, .remark = "the final model alone", .need = need};
  none.need.save_count = 0;
  if (need.save_count > 0 && need.export_bytes > 0 && needed_bytes(none.need) <= free_bytes)
    changes.push_back(none);
  return changes;
}

Result<void> check_space(const SpaceNeed& need, std::int64_t free_bytes,
                         const std::string& output) {
  const std::int64_t needed = needed_bytes(need);
  if (needed <= free_bytes) return {};
  const std::int64_t at_once = checkpoints_at_once(need);
  std::string what =
      fmt::format("the {} not fit the disk: {} needed, {} free; ",
                  need.save_count > 0 ? "checkpoints do" : "model that is saved at the end does",
                  size_text(needed), size_text(free_bytes));
  if (at_once > 0)
    what += fmt::format(
        "{} checkpoint{} of {} stand{} there at once{}{}", at_once, at_once == 1 ? "" : "s",
        size_text(need.checkpoint_bytes), at_once == 1 ? "s" : "",
        need.save_total_limit > 0
            ? fmt::format(" (save_total_limit {}{} and the one being written)",
                          need.save_total_limit,
                          need.save_total_limit < 1 + need.spared_count ? ", the best one" : "")
            : " (no save_total_limit)",
        need.standing_count > 0 ? fmt::format(", {} of them now", need.standing_count) : "");
  if (need.export_bytes > 0)
    what += at_once > 0 ? fmt::format(", then {} and the final model of {}",
                                      checkpoints_at_end(need), size_text(need.export_bytes))
                        : fmt::format("the final model takes {}", size_text(need.export_bytes));
  return fail(
      ErrorCode::does_not_fit, what, output,
      cures_text(need, free_bytes) + fmt::format("free {}", size_text(needed - free_bytes)));
}

}  // namespace underkeel::io
