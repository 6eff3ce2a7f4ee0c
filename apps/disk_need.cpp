#include "disk_need.h"

#include "planner/planner.h"
#include "train/checkpoint_files.h"

namespace underkeel::apps {

Result<io::SpaceNeed> disk_need(const spec::ModelSpec& model, const spec::RunConfig& run,
                                const std::optional<RunLength>& length) {
  const planner::Request request = planner::request_of(model, run, run.ranks);
  UK_TRY(checkpoint, train::lay_out_checkpoint(model, train::checkpoint_content(run, request),
                                               train::default_shard_bytes));
  UK_TRY(final,
         train::lay_out_checkpoint(model, train::final_content(run), train::default_shard_bytes));
  const std::int64_t limit = run.save.total_limit.value_or(0);
  const std::optional<std::int64_t> known = length ? save_count(run, *length) : std::nullopt;
  const bool saves = run.save.strategy != spec::Cadence::no;
  return io::SpaceNeed{.checkpoint_bytes = checkpoint.size_bytes(),
                       .save_count = saves ? known.value_or(limit + 1) : 0,
                       .save_total_limit = limit,
                       .export_bytes = final.size_bytes()};
}

}  // namespace underkeel::apps
