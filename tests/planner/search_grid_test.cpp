#include "planner/search_grid.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/model_folder.h"
#include "support/temporary_folder.h"
#include "support/text_files.h"
#include "support/value_of.h"

namespace underkeel::planner {
namespace {

using test::value_of;
using ::testing::Contains;
using ::testing::ElementsAre;

/// The micro-batches of a run of `batch` sequences a rank, cut as `micro_batch` says.
MicroBatches tried_of(std::int64_t batch, std::int64_t micro_batch) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "model" / "config.json",
                   test::complete_config(test::tiny_model_json()));
  const spec::ModelSpec model = value_of(spec::read_model_config(folder / "model"));
  test::write_text(
      folder / "run.yaml",
      fmt::format("model_name_or_path: {}\nstage: pt\ndo_train: true\nfinetuning_type: "
                  "full\ndataset: text\ncutoff_len: 64\noutput_dir: out\n"
                  "per_device_train_batch_size: {}\ngradient_accumulation_steps: {}\n",
                  (folder / "model").string(), micro_batch, batch / micro_batch));
  const spec::RunConfig run = value_of(spec::read_run_file(folder / "run.yaml", {}));
  const spec::HardwareSpec machine{.host_ram_bytes = std::int64_t{1} << 36};
  return micro_batches_to_search({.model = model,
                                  .run = run,
                                  .machine = machine,
                                  .placement = spread_evenly(machine, 1, false)});
}

TEST(SearchGrid, TriesEveryMicroBatchOfTheSameGlobalBatch) {
  const MicroBatches batches = tried_of(12, 4);

  EXPECT_THAT(batches.tried, ElementsAre(1, 2, 3, 4, 6, 12));
  EXPECT_EQ(batches.passed_over, 0);
}

TEST(SearchGrid, TriesMicroBatchesThatLieApartWhereThereAreMany) {
  const MicroBatches batches = tried_of(5040, 84);  // 60 divisors

  EXPECT_LE(batches.tried.size(), 17u);
  EXPECT_GE(batches.tried.size(), 10u);
  EXPECT_EQ(batches.tried.front(), 1);
  EXPECT_THAT(batches.tried, Contains(84)) << "as the run is";
  EXPECT_EQ(
      batches.passed_over + static_cast<std::int64_t>(batches.tried.size()),
      static_cast<std::int64_t>(tried_of(5040, 1).passed_over + tried_of(5040, 1).tried.size()));
  for (std::size_t i = 1; i < batches.tried.size(); ++i) {
    EXPECT_EQ(5040 % batches.tried[i], 0);
    EXPECT_LE(batches.tried[i], 3 * batches.tried[i - 1]) << "no gap is left";
  }
}

}  // namespace
}  // namespace underkeel::planner
