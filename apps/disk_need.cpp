#include "disk_need.h"

#include "base/units.h"
#include "train/checkpoint_files.h"

namespace underkeel::apps {

Result<io::SpaceNeed> disk_need(const spec::ModelSpec& model, const spec::RunConfig& run,
                                const plan::Plan& plan) {
  UK_TRY(checkpoint, train::lay_out_checkpoint(model, train::checkpoint_content(run, plan),
                                               train::default_shard_bytes));
  UK_TRY(final,
         train::lay_out_checkpoint(model, train::final_content(run), train::default_shard_bytes));
  const bool counts_steps = run.save.strategy == spec::Cadence::steps && run.max_steps > 0 &&
                            run.save.steps > 0 && run.save.steps_fraction == 0;
  const bool saves = run.save.strategy != spec::Cadence::no;
  const std::int64_t limit = run.save.total_limit.value_or(0);
  return io::SpaceNeed{.checkpoint_bytes = checkpoint.size_bytes(),
                       .save_count = !saves         ? 0
                                     : counts_steps ? ceil_div(run.max_steps, run.save.steps)
                                                    : limit + 1,
                       .save_total_limit = limit,
                       .export_bytes = final.size_bytes()};
}

}  // namespace underkeel::apps
