#include "disk_outlook.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "base/units.h"
#include "disk_need.h"
#include "io/faults.h"
#include "run_length.h"
#include "train/resume.h"

namespace underkeel::apps {

namespace {

/// Of a run that goes on; one whose checkpoint cannot be read is refused by `train` for that, and is noted.
void look_at_standing(io::FileSystem& files, Asked& asked, OutputDisk& disk) {
  io::CheckpointList standing;
  const auto resume = train::find_resume(files, asked.config, standing);
  if (!resume) {
    asked.config.notes.push_back(
        fmt::format("train would stop: {} ({})", resume.error().what, resume.error().where));
    return;
  }
  if (!*resume) return;
  disk.standing_count = static_cast<std::int64_t>(standing.complete.size());
  disk.done_steps = (*resume)->progress.step;
}

/// The words of a change as they are read: "--ranks N" is a flag.
struct Reread {
  std::vector<std::string> words;
  std::optional<std::int64_t> ranks;
};
Reread words_in(const std::string& text) {
  Reread read;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    if (word != "--ranks") {
      read.words.push_back(word);
    } else if (std::int64_t ranks = 0; stream >> ranks) {
      read.ranks = ranks;
    }
  }
  return read;
}

std::optional<spec::RunConfig> run_with(const spec::RunConfig& run, const Reread& reread) {
  std::vector<std::string> changes = run.changes;
  if (reread.ranks) changes.push_back(fmt::format("underkeel.ranks={}", *reread.ranks));
  changes.insert(changes.end(), reread.words.begin(), reread.words.end());
  const std::int64_t ranks = reread.ranks.value_or(run.ranks);
  auto read = spec::read_run_file(run.run_file, changes, spec::WorldSize{ranks, "--ranks"});
  if (!read) return std::nullopt;
  read->data.samples = run.data.samples;
  return std::move(*read);
}

/// The words behind `reread` with which the disk suffices, and what is needed then; none where nothing helps.
std::optional<std::pair<std::vector<std::string>, std::int64_t>> words_for_disk(
    const Asked& asked, const OutputDisk& disk, const Reread& reread) {
  const auto changed = run_with(asked.config, reread);
  if (!changed) return std::nullopt;
  const auto need = need_on(disk, asked, *changed);
  if (!need) return std::nullopt;
  if (io::needed_bytes(*need) <= *disk.free_bytes)
    return std::pair(std::vector<std::string>{}, io::needed_bytes(*need));
  for (const io::SpaceChange& change : io::changes_that_fit(*need, *disk.free_bytes)) {
    Reread more = reread;
    more.words.insert(more.words.end(), change.words.begin(), change.words.end());
    const auto run = run_with(asked.config, more);
    if (!run) continue;
    const auto then = need_on(disk, asked, *run);
    if (then && io::needed_bytes(*then) <= *disk.free_bytes)
      return std::pair(change.words, io::needed_bytes(*then));
  }
  return std::nullopt;
}

}  // namespace

Result<OutputDisk> output_disk(const PlanWords& words, Asked& asked) {
  OutputDisk disk{.free_bytes = asked.machine.out_free_bytes, .source = disk_source(words)};
  if (!words.hardware.empty() || !words.asks_disk_here) return disk;
  UK_TRY(files, io::file_system_from_environment());
  const std::string output = asked.config.output.string();
  disk.source = output;
  UK_TRY(free, files->free_bytes(output));
  disk.free_bytes = free;
  look_at_standing(*files, asked, disk);
  return disk;
}

Result<io::SpaceNeed> need_on(const OutputDisk& disk, const Asked& asked,
                              const spec::RunConfig& run) {
  auto length = length_of(run, run.ranks, asked.data);
  if (length) length->done = disk.done_steps;
  return disk_need(asked.model, run, length, disk.standing_count);
}

std::vector<render::Suggestion> cures_of_both(const Asked& asked, const OutputDisk& disk,
                                              const std::vector<planner::Shortage>& shortages,
                                              const planner::Advice& advice) {
  std::vector<render::Suggestion> cures;
  for (const planner::Change& change : advice.changes) {
    const auto besides = words_for_disk(asked, disk, words_in(change.words));
    if (!besides) continue;
    render::Suggestion cure{.change = change.words};
    for (const std::string& word : besides->first) cure.change += " " + word;
    for (std::size_t i = 0; i < shortages.size(); ++i)
      cure.needs.push_back({short_name(shortages[i].space), change.needed_bytes[i]});
    cure.needs.push_back({"disk", besides->second});
    cures.push_back(std::move(cure));
  }
  return cures;
}

Error refuse_both(Error memory, const Error& disk, const std::vector<render::Suggestion>& cures) {
  memory.what += "; " + disk.what;
  memory.where += "\ndisk: " + printable(disk.where, any_length);
  if (cures.empty()) {
    memory.fix = fmt::format(
        "no change that was tried cures both; for the memory: {}\n       for the disk: {}",
        memory.fix, disk.fix);
    return memory;
  }
  std::size_t widest = 0;
  for (const render::Suggestion& cure : cures) widest = std::max(widest, cure.change.size());
  std::vector<std::string> lines;
  for (const render::Suggestion& cure : cures) {
    std::vector<std::string> needs;
    for (const render::SpaceBytes& need : cure.needs)
      needs.push_back(fmt::format("{} {}", need.space, format_bytes(need.size_bytes)));
    lines.push_back(fmt::format("{:{}}  -> {}", cure.change, widest, fmt::join(needs, ", ")));
  }
  memory.fix = fmt::format("{}", fmt::join(lines, "\n       "));
  return memory;
}

}  // namespace underkeel::apps
