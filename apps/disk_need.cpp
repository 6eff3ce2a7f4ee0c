#include "disk_need.h"

#include "planner/planner.h"
#include "train/checkpoint_files.h"

namespace underkeel::apps {

Result<io::SpaceNeed> disk_need(const spec::ModelSpec& model, const spec::RunConfig& run,
                                const std::optional<train::RunLength>& length,
                                std::int64_t standing_count) {
  const planner::Request request = planner::request_of(model, run, run.ranks);
  UK_TRY(checkpoint, train::lay_out_checkpoint(model, train::checkpoint_content(run, request),
                                               train::default_shard_bytes));
  UK_TRY(final,
         train::lay_out_checkpoint(model, train::final_content(run), train::default_shard_bytes));
  return train::space_need(run,
                           {.checkpoint = checkpoint,
                            .final = final,
                            .save_count = length ? train::save_count(run, *length) : std::nullopt,
                            .standing_count = standing_count});
}

}  // namespace underkeel::apps
