#include "io/adapter_weights.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "io/model_files.h"

namespace underkeel::io {
namespace {

// Adapters are small; what is larger is not read.
constexpr std::int64_t most_adapter_bytes = 256 * mebibyte;

constexpr std::string_view first_mark = ".lora_A.", second_mark = ".lora_B.";

/// The name of the other matrix of a pair; empty for a tensor of another kind.
std::string partner_of(const std::string& name) {
  for (const auto& [mark, other] :
       {std::pair{first_mark, second_mark}, std::pair{second_mark, first_mark}})
    if (const std::size_t at = name.find(mark); at != std::string::npos)
      return std::string(name).replace(at, mark.size(), other);
  return {};
}

}  // namespace

std::vector<Error> check_adapter_pairs(const SafetensorsHeader& header, std::int64_t rank) {
  std::map<std::string_view, const TensorEntry*> found;
  for (const TensorEntry& entry : header.tensors) found[entry.name] = &entry;
  std::vector<std::string> alone, unlike;
  std::string first_unlike;
  for (const TensorEntry& entry : header.tensors) {
    const std::string partner = partner_of(entry.name);
    if (partner.empty()) continue;
    const auto at = found.find(partner);
    if (at == found.end()) {
      alone.push_back(entry.name);
      continue;
    }
    const std::vector<std::int64_t>& first = entry.shape;
    const std::vector<std::int64_t>& second = at->second->shape;
    if (entry.name.find(first_mark) == std::string::npos) continue;  // with its partner
    const bool fits = first.size() >= 2 && second.size() >= 2 && first[0] == second[1] &&
                      (rank == 0 || first[0] == rank);
    if (fits) continue;
    if (unlike.empty())
      first_unlike = fmt::format("`{}` has shape {} and its partner {}", entry.name,
                                 shape_text(first), shape_text(second));
    unlike.push_back(entry.name);
  }
  std::vector<Error> problems;
  if (!alone.empty())
    problems.push_back(
        {.code = ErrorCode::bad_file,
         .what = fmt::format("{} of the adapters' matrices {} without a partner; the first is `{}`",
                             alone.size(), alone.size() == 1 ? "stands" : "stand", alone.front()),
         .where = header.path,
         .fix = "copy the file again, or take the adapter of another checkpoint"});
  if (!unlike.empty())
    problems.push_back(
        {.code = ErrorCode::bad_file,
         .what = fmt::format(
             "{} {} of the adapters' matrices {} not go together{}; the first: {}", unlike.size(),
             unlike.size() == 1 ? "pair" : "pairs", unlike.size() == 1 ? "does" : "do",
             rank > 0 ? fmt::format(" at rank {}", rank) : std::string(), first_unlike),
         .where = header.path,
         .fix = "take the adapter_config.json that was saved with them"});
  return problems;
}

std::optional<bool> second_matrices_are_zero(FileSystem& files, const SafetensorsHeader& header) {
  auto file = files.open(header.path);
  if (!file) return std::nullopt;
  std::int64_t read = 0;
  bool any = false;
  for (const TensorEntry& entry : header.tensors) {
    if (entry.name.find(".lora_B") == std::string::npos || entry.size_bytes() == 0) continue;
    read += entry.size_bytes();
    if (read > most_adapter_bytes) return std::nullopt;
    std::vector<std::byte> bytes(static_cast<std::size_t>(entry.size_bytes()));
    if (!file->read(bytes, entry.begin)) return std::nullopt;
    any = true;
    const bool is_zero = std::all_of(bytes.begin(), bytes.end(),
                                     [](std::byte byte) { return byte == std::byte{0}; });
    if (!is_zero) return false;
  }
  return any ? std::optional(true) : std::nullopt;
}

}  // namespace underkeel::io
