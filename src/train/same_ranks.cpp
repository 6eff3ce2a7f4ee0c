#include "train/same_ranks.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "io/checksum.h"
#include "io/manifest.h"
#include "io/model_files.h"

namespace underkeel::train {

namespace {

using Json = nlohmann::json;

// Values that each node may have of its own: places, and what only this process does.
constexpr std::array own_values = {"output_dir",
                                   "model_name_or_path",
                                   "dataset_dir",
                                   "deepspeed",
                                   "resume_from_checkpoint",
                                   "overwrite_cache",
                                   "preprocessing_num_workers",
                                   "underkeel.threads",
                                   "underkeel.ranks",
                                   "tokenized_path",
                                   "underkeel.token_cache",
                                   "underkeel.memory.host",
                                   "underkeel.memory.device"};

std::string checksum_of_text(std::string_view text) {
  io::Checksum sum;
  sum.update(std::as_bytes(std::span(text)));
  return io::checksum_text(sum.value());
}

/// Header, size and a sample of each file: weights of another model or another training differ everywhere.
Result<std::string> weights_digest(io::FileSystem& files, const std::string& folder) {
  constexpr std::int64_t block_bytes = 4 * kibibyte;
  constexpr std::int64_t block_count = 64;
  UK_TRY(model, io::open_model_files(files, folder));
  io::Checksum sum;
  std::vector<std::byte> block(block_bytes);
  for (const io::SafetensorsHeader& header : model.files) {
    UK_TRY(file, files.open(header.path));
    const std::int64_t size_bytes = header.file_size_bytes;
    sum.update(std::as_bytes(std::span(&size_bytes, 1)));
    const std::int64_t step_bytes = std::max(block_bytes, size_bytes / block_count);
    for (std::int64_t at = 0; at < size_bytes; at += step_bytes) {
      const std::span piece =
          std::span(block).first(static_cast<std::size_t>(std::min(block_bytes, size_bytes - at)));
      UK_TRY_VOID(file.read(piece, at));
      sum.update(piece);
    }
  }
  return io::checksum_text(sum.value());
}

std::string plan_digest(const plan::Plan& plan) {
  std::string text = fmt::format("{} {}", plan.stage, fmt::join(plan.schedule.shape_classes, " "));
  for (const plan::Segment& segment : plan.schedule.segments)
    text += fmt::format(" {}:{}", name_of(segment.kind), segment.ops.size());
  return text;
}

Result<Json> what_is_run(io::FileSystem& files, const Job& job) {
  Json all = Json::parse(spec::values_json(job.run), nullptr, false);
  for (const char* key : own_values) all.erase(key);
  for (auto& [key, value] : all.items()) value = value.at("value");
  all["config.json of the model"] = checksum_of_text(job.model_config_text);
  all["number of training samples"] = job.datasets.training->count();
  all["training samples"] = job.datasets.training_identity;
  all["evaluation samples"] = job.datasets.evaluation_identity;
  all["operations of the plan"] = plan_digest(job.plan);
  if (job.resume) {
    UK_TRY(manifest, io::to_json(job.resume->checkpoint.manifest));
    all["step of the checkpoint"] = job.resume->progress.step;
    all["checkpoint"] = checksum_of_text(manifest);
  } else if (!job.run.train_from_scratch) {
    UK_TRY(weights, weights_digest(files, job.model_folder.string()));
    all["weights of the model"] = weights;
  }
  return all;
}

/// "learning_rate (0.0001 there, 0.0002 here)" for each difference; checksums have no figures to show.
std::vector<std::string> differences(const Json& first, const Json& other) {
  std::vector<std::string> found;
  std::vector<std::string> keys;
  for (const Json* one : {&first, &other})
    for (const auto& [key, value] : one->items()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const auto text = [](const Json& values, const std::string& key) {
    return values.contains(key) ? values[key].dump() : std::string("not given");
  };
  for (const std::string& key : keys) {
    if (first.contains(key) && other.contains(key) && first[key] == other[key]) continue;
    const bool is_digest = key.find(' ') != std::string::npos && !key.starts_with("number") &&
                           !key.starts_with("step");
    found.push_back(is_digest ? key
                              : fmt::format("{} ({} on rank 0, {} there)", key, text(first, key),
                                            text(other, key)));
  }
  return found;
}

}  // namespace

Result<void> check_ranks_agree(io::FileSystem& files, comm::Communicator& control, const Job& job) {
  auto own = what_is_run(files, job);
  UK_TRY_VOID(agree(control, own));
  const std::string text = own->dump(-1, ' ', false, Json::error_handler_t::replace);
  UK_TRY(digests, control.all_gather_text(checksum_of_text(text)));
  const auto other = std::find_if(digests.begin(), digests.end(), [&](const std::string& digest) {
    return digest != digests.front();
  });
  if (other == digests.end()) return {};
  UK_TRY(texts, control.all_gather_text(text));
  const auto rank = static_cast<std::size_t>(other - digests.begin());
  const auto found = differences(Json::parse(texts[0]), Json::parse(texts[rank]));
  return fail(
      ErrorCode::bad_config,
      fmt::format("rank {} was given another run than rank 0: {}", rank, fmt::join(found, "; ")),
      fmt::format("rank {}", rank),
      "start all ranks with the same words and the same files; copies on each node have to be "
      "equal");
}

}  // namespace underkeel::train
