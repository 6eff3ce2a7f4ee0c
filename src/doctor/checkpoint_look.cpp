#include "doctor/checkpoint_look.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "io/checkpoint.h"
#include "io/model_files.h"
#include "io/safetensors.h"
#include "spec/fields.h"
#include "spec/json_reader.h"
#include "spec/text_file.h"

namespace underkeel::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view step_prefix = "global_step";
constexpr std::string_view part_prefix = "zero_pp_rank_";
constexpr std::string_view whole_prefix = "mp_rank_";

bool is_part_file(std::string_view name) {
  return name.starts_with(part_prefix) || name.starts_with("bf16_zero_pp_rank_") ||
         name.starts_with(whole_prefix);
}

/// What `latest` says, without line ends; nothing where it is not there.
std::optional<std::string> latest_in(const fs::path& folder) {
  const auto latest = spec::read_text_file(folder / "latest");
  if (!latest) return std::nullopt;
  std::string name = *latest;
  while (!name.empty() && (name.back() == '\n' || name.back() == ' ')) name.pop_back();
  return name;
}

/// Our engine names its newest checkpoint in a file of that name too.
bool is_latest_of_ours(const fs::path& folder) {
  const auto name = latest_in(folder);
  std::error_code status;
  return name && !name->empty() && fs::exists(folder / *name / io::manifest_file, status);
}

/// Without `latest` the newest tag is meant; where there is none, the folder itself.
fs::path newest_tag(const fs::path& folder) {
  std::error_code status;
  std::int64_t newest = -1;
  fs::path tag = folder;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(step_prefix)) continue;
    const auto step = spec::parse_integer(name.substr(step_prefix.size()));
    if (!step || *step <= newest) continue;
    newest = *step;
    tag = entry.path();
  }
  return tag;
}

/// A zip archive ends with a record of 22 bytes; torch writes no comment behind it.
bool ends_as_archive(const fs::path& path, std::int64_t size_bytes) {
  constexpr std::int64_t record_bytes = 22;
  if (size_bytes < record_bytes) return false;
  std::ifstream stream(path, std::ios::binary);
  stream.seekg(size_bytes - record_bytes);
  char mark[4] = {};
  return stream.read(mark, 4) && std::string_view(mark, 4) == "PK\x05\x06";
}

std::vector<ShardLook::Part> parts_in(const fs::path& folder) {
  std::vector<ShardLook::Part> parts;
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    const std::string name = entry.path().filename().string();
    const bool is_optimizer = name.find("optim_states") != std::string::npos;
    if (!is_part_file(name) || (!is_optimizer && name.find("model_states") == std::string::npos))
      continue;
    ShardLook::Part part{.name = name, .is_optimizer = is_optimizer};
    if (const std::size_t at = name.find(part_prefix); at != std::string::npos) {
      const std::size_t begin = at + part_prefix.size();
      const auto rank = spec::parse_integer(name.substr(begin, name.find('_', begin) - begin));
      if (!rank || *rank < 0 || *rank > 1 << 20) continue;
      part.rank = *rank;
    }
    part.size_bytes = static_cast<std::int64_t>(entry.file_size(status));
    part.ends_as_archive = ends_as_archive(entry.path(), part.size_bytes);
    parts.push_back(std::move(part));
  }
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.name < b.name;
  });
  return parts;
}

std::string count_text(std::int64_t count) {
  return fmt::format("{}", count);
}

/// "2 of 4 ranks; the first without is rank 1"; nothing where none is missing.
std::optional<std::vector<Slot>> missing_ranks(const std::set<std::int64_t>& ranks,
                                               std::int64_t world) {
  if (std::ssize(ranks) == world) return std::nullopt;
  std::int64_t first = 0;
  while (ranks.contains(first)) ++first;
  return std::vector<Slot>{{"count", count_text(std::ssize(ranks))},
                           {"expected", count_text(world)},
                           {"rank", count_text(first)}};
}

/// Files that cannot be whole beside the others of their kind: every rank holds as much as the next.
void add_cut_parts(const ShardLook& look, bool of_optimizer, std::vector<Lack>& lacks) {
  std::int64_t most = 0;
  bool any_ends = false;
  for (const ShardLook::Part& part : look.parts)
    if (part.is_optimizer == of_optimizer && part.rank >= 0) {
      most = std::max(most, part.size_bytes);
      any_ends = any_ends || part.ends_as_archive;
    }
  std::int64_t count = 0;
  const ShardLook::Part* first = nullptr;
  for (const ShardLook::Part& part : look.parts) {
    if (part.is_optimizer != of_optimizer) continue;
    const bool is_cut =
        part.size_bytes == 0 || 2 * part.size_bytes < most || (any_ends && !part.ends_as_archive);
    if (!is_cut || (part.rank < 0 && part.size_bytes > 0)) continue;
    if (count++ == 0) first = &part;
  }
  if (first == nullptr) return;
  if (first->size_bytes == 0)
    lacks.push_back(
        {"checkpoint-file-empty", {{"file", first->name}, {"count", count_text(count)}}});
  else
    lacks.push_back({"checkpoint-file-cut",
                     {{"file", first->name},
                      {"count", count_text(count)},
                      {"size", size_text(first->size_bytes)},
                      {"most", size_text(most)}}});
}

}  // namespace

std::set<std::int64_t> ShardLook::ranks_of(bool optimizer) const {
  std::set<std::int64_t> ranks;
  for (const Part& part : parts)
    if (part.is_optimizer == optimizer && part.rank >= 0) ranks.insert(part.rank);
  return ranks;
}

bool ShardLook::has_one_model_file() const {
  return std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.rank < 0; });
}

std::int64_t ShardLook::world() const {
  std::int64_t highest = -1;
  for (const Part& part : parts) highest = std::max(highest, part.rank);
  return highest + 1;
}

bool holds_deepspeed_state(const std::string& folder) {
  std::error_code status;
  if (fs::exists(fs::path(folder) / "latest", status) && !is_latest_of_ours(folder)) return true;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(step_prefix) || is_part_file(name)) return true;
  }
  return false;
}

ShardLook look_at_shards(const std::string& folder) {
  ShardLook look{.folder = folder};
  std::error_code status;
  const auto name = latest_in(folder);
  look.has_latest = name.has_value();
  if (!name) {
    look.folder = newest_tag(folder);
    look.is_tag_itself = look.folder == fs::path(folder);
  } else if (name->empty() || name->find('/') != std::string::npos || *name == ".." ||
             !fs::is_directory(look.folder / *name, status)) {
    look.gone = name->empty() ? "\"\"" : name->substr(0, 80);
    return look;
  } else {
    look.folder /= *name;
  }
  look.is_universal = fs::is_directory(look.folder / "zero", status);
  look.parts = parts_in(look.folder);
  return look;
}

std::vector<Lack> lacks_of_shards(const ShardLook& look, bool is_stage_0) {
  const std::string tag = look.folder.filename().string();
  if (!look.gone.empty()) return {{"checkpoint-latest-is-gone", {{"tag", look.gone}}}};
  std::vector<Lack> lacks;
  if (!look.has_latest && !look.is_tag_itself)
    lacks.push_back({"checkpoint-without-latest", {{"tag", tag}}});
  if (look.is_universal) return lacks;
  if (look.parts.empty()) {
    lacks.push_back({"checkpoint-tag-empty", {{"tag", tag}}});
    return lacks;
  }
  const std::int64_t world = look.world();
  const std::set<std::int64_t> of_optimizer = look.ranks_of(true);
  const std::set<std::int64_t> of_model = look.ranks_of(false);
  if (of_optimizer.empty()) {
    if (!is_stage_0) lacks.push_back({"checkpoint-without-optimizer", {}, false});
  } else if (auto missing = missing_ranks(of_optimizer, world)) {
    lacks.push_back({"checkpoint-lacks-ranks", std::move(*missing)});
  }
  if (!look.has_one_model_file()) {
    if (of_model.empty())
      lacks.push_back({"checkpoint-without-model-states", {{"tag", tag}}});
    else if (auto missing = missing_ranks(of_model, world))
      lacks.push_back({"checkpoint-lacks-model-states", std::move(*missing)});
  }
  add_cut_parts(look, true, lacks);
  add_cut_parts(look, false, lacks);
  return lacks;
}

std::int64_t step_of_name(const std::string& name) {
  constexpr std::string_view prefix = "checkpoint-";
  if (!name.starts_with(prefix)) return -1;
  const auto step = spec::parse_integer(name.substr(prefix.size()));
  return step ? std::max<std::int64_t>(-1, *step) : -1;
}

namespace {

/// Whether the last sign that is no blank is `}`.
bool ends_with_brace(const fs::path& file, std::int64_t size_bytes) {
  constexpr std::int64_t tail_bytes = 64;
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(std::max<std::int64_t>(0, size_bytes - tail_bytes));
  std::string tail(tail_bytes, '\0');
  stream.read(tail.data(), tail_bytes);
  tail.resize(static_cast<std::size_t>(stream.gcount()));
  const std::size_t last = tail.find_last_not_of(" \t\r\n");
  return last != std::string::npos && tail[last] == '}';
}

/// trainer_state.json: there, whole, and of this step.
void check_state(const TrainerCheckpoint& checkpoint, std::vector<Lack>& lacks) {
  const fs::path file = fs::path(checkpoint.folder) / "trainer_state.json";
  std::error_code status;
  if (!fs::exists(file, status)) {
    lacks.push_back({"checkpoint-not-complete", {{"reason", "@no-state"}}});
    return;
  }
  const auto size_bytes = static_cast<std::int64_t>(fs::file_size(file, status));
  const auto text = spec::read_text_file(file);
  const auto root =
      text ? spec::read_json(*text, file.filename().string(), spec::JsonDialect::relaxed)
           : Result<spec::JsonDocument>(tl::unexpected(text.error()));
  if (!root) {
    // A long history, or a loss that is no number, stops no resume; an end that is missing does.
    if (!ends_with_brace(file, size_bytes))
      lacks.push_back({"checkpoint-state-broken",
                       {{"what", root.error().what}, {"size", size_text(size_bytes)}}});
    return;
  }
  const spec::Value* step = root->root.find("global_step");
  const auto number = step != nullptr ? spec::parse_integer(step->text) : std::nullopt;
  if (checkpoint.step >= 0 && number && *number != checkpoint.step)
    lacks.push_back({"checkpoint-step-differs",
                     {{"found", count_text(*number)}, {"step", count_text(checkpoint.step)}}});
}

/// The weights by their headers: a file that was cut short is shorter than its header says.
void check_weight_files(io::FileSystem& files, const std::string& folder, bool needs_weights,
                        std::int64_t& header_bytes, std::vector<Lack>& lacks) {
  std::error_code status;
  const auto has = [&](std::string_view name) {
    return fs::exists(fs::path(folder) / name, status);
  };
  const auto tell_broken = [&](const Error& error) {
    lacks.push_back({"checkpoint-weights-broken",
                     {{"what", error.what}, {"where", error.where}, {"fix", error.fix}}});
  };
  const bool is_model = has(io::single_weights_file) || has(io::weight_index_file);
  constexpr std::string_view adapter = "adapter_model.safetensors";
  constexpr std::string_view pickles[] = {"pytorch_model.bin", "adapter_model.bin",
                                          "pytorch_model.bin.index.json"};
  if (is_model || has(adapter)) {
    const std::int64_t bytes = io::scan_bytes(files, folder).value_or(0);
    if (bytes > header_bytes) return;
    header_bytes -= bytes;
    if (is_model) {
      const auto scan = io::scan_model_folder(files, folder);
      if (!scan && scan.error().code != ErrorCode::unsupported) tell_broken(scan.error());
      if (scan && !scan->problems.empty()) tell_broken(scan->problems.front());
    } else if (const auto header =
                   io::read_safetensors_header(files, io::join_path(folder, adapter));
               !header) {
      tell_broken(header.error());
    }
    return;
  }
  for (const std::string_view name : pickles)
    if (has(name)) {
      if (fs::file_size(fs::path(folder) / name, status) == 0)
        lacks.push_back({"checkpoint-file-empty", {{"file", std::string(name)}, {"count", "1"}}});
      return;
    }
  if (needs_weights) lacks.push_back({"checkpoint-not-complete", {{"reason", "@no-weights"}}});
}

/// The Trainer reads both files or, without a word, neither.
void check_optimizer_files(const std::string& folder, std::vector<Lack>& lacks) {
  std::error_code status;
  const auto has = [&](std::string_view name) {
    return fs::exists(fs::path(folder) / name, status);
  };
  // FSDP's optimizer has other names.
  if (has("optimizer.bin") || has("optimizer_0") || has("pytorch_model_fsdp_0")) return;
  for (const std::string_view name : {"optimizer.pt", "scheduler.pt"}) {
    if (!has(name)) {
      lacks.push_back(
          {"checkpoint-weights-alone", {{"file", std::string(name)}, {"folder", folder}}, false});
      return;
    }
    if (fs::file_size(fs::path(folder) / name, status) == 0) {
      lacks.push_back({"checkpoint-file-empty", {{"file", std::string(name)}, {"count", "1"}}});
      return;
    }
  }
}

}  // namespace

std::vector<Lack> lacks_of_checkpoint(io::FileSystem& files, const TrainerCheckpoint& checkpoint,
                                      std::int64_t& header_bytes) {
  std::vector<Lack> lacks;
  check_state(checkpoint, lacks);
  const bool is_sharded = holds_deepspeed_state(checkpoint.folder);
  if (is_sharded)
    for (Lack& lack : lacks_of_shards(look_at_shards(checkpoint.folder), checkpoint.is_stage_0))
      lacks.push_back(std::move(lack));
  check_weight_files(files, checkpoint.folder, !is_sharded, header_bytes, lacks);
  const bool has_weights =
      std::none_of(lacks.begin(), lacks.end(), [](const Lack& lack) { return lack.stops; });
  if (!is_sharded && has_weights) check_optimizer_files(checkpoint.folder, lacks);
  return lacks;
}

}  // namespace underkeel::doctor
