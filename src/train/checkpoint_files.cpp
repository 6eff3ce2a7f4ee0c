#include "train/checkpoint_files.h"

#include <algorithm>

#include "plan/stored_name.h"

namespace underkeel::train {

std::optional<CheckpointFiles::Place> CheckpointFiles::find(const std::string& name) const {
  for (std::size_t i = 0; i < files.size(); ++i)
    if (const io::TensorEntry* entry = files[i].layout.find(name)) return Place{i, entry};
  return std::nullopt;
}

std::int64_t CheckpointFiles::size_bytes() const {
  std::int64_t sum = 0;
  for (const LaidOutFile& file : files) sum += file.layout.file_size_bytes;
  return sum;
}

Result<CheckpointFiles> lay_out_checkpoint(const spec::ModelSpec& model,
                                           const CheckpointContent& content,
                                           std::int64_t max_shard_bytes) {
  const std::vector<spec::Parameter> parameters = spec::parameters_of(model);
  const auto specs = [&](plan::StatePart part, DType type) {
    std::vector<io::TensorSpec> tensors;
    for (const spec::Parameter& parameter : parameters)
      tensors.push_back({.name = plan::stored_name(part, parameter.name),
                         .type = type,
                         .shape = parameter.shape()});
    return tensors;
  };
  CheckpointFiles made;
  // A checkpoint without optimizer is nothing but its weights.
  const bool exports = content.exports_weights || !content.has_optimizer;
  if (exports) {
    const auto shards = io::split_into_shards(specs(plan::StatePart::weights, content.weight_type),
                                              max_shard_bytes);
    for (const io::WeightShard& shard : shards) {
      UK_TRY(layout, io::lay_out_safetensors(shard.tensors));
      made.files.push_back({shard.file, std::move(layout)});
    }
    UK_TRY(index, io::weight_index_json(shards));
    made.weight_index = std::move(index);
  }
  if (!content.has_optimizer) return made;
  for (const plan::StatePart part :
       {plan::StatePart::master, plan::StatePart::moment1, plan::StatePart::moment2}) {
    if (part == plan::StatePart::master && !content.has_master && exports) continue;
    UK_TRY(layout, io::lay_out_safetensors(specs(part, content.state_type)));
    made.files.push_back({std::string(plan::name_of(part)) + ".safetensors", std::move(layout)});
  }
  return made;
}

CheckpointContent checkpoint_content(const spec::RunConfig& run, const planner::Request& request) {
  const DType type = spec::export_type(run);
  // f32 weights of a narrower run are its master copies: they are written once.
  return {.weight_type = type,
          .state_type = planner::moment_type(request),
          .has_master = planner::has_masters(request) && type != DType::f32,
          .has_optimizer = !run.save.weights_only,
          .exports_weights = run.zero.gather_weights_on_save};
}

CheckpointContent final_content(const spec::RunConfig& run) {
  return {.weight_type = spec::export_type(run), .has_master = false, .has_optimizer = false};
}

io::SpaceNeed space_need(const spec::RunConfig& run, const SavesToCome& saves) {
  // With save_strategy: best the newest checkpoint is the best one.
  const bool spares = run.evaluation.tracks_best && run.evaluation.strategy != spec::Cadence::no &&
                      run.save.strategy != spec::Cadence::best;
  io::SpaceNeed need{
      .checkpoint_bytes = saves.checkpoint.size_bytes(),
      .save_total_limit = std::max<std::int64_t>(0, run.save.total_limit.value_or(0)),
      .spared_count = spares ? 1 : 0,
      .standing_count = saves.standing_count,
      .export_bytes = run.zero.gather_weights_on_save ? saves.final.size_bytes() : 0};
  if (run.save.strategy == spec::Cadence::no) return need;
  need.is_least = !saves.save_count && need.save_total_limit == 0;
  need.save_count = saves.save_count.value_or(io::most_at_once(need));
  return need;
}

}  // namespace underkeel::train
