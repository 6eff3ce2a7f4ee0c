// What is said of a plan that does not fit, of one space or of several.

#include "planner/fit_of_tiny_model.h"

namespace underkeel::planner {
namespace {

/// Budgets under which the device of a rank and the memory of its node are both short.
class FitOfTwoSpaces : public Fit {
 protected:
  Command command(std::int64_t percent) const {
    const std::vector<std::string> words{"bf16=true", "underkeel.recompute=none",
                                         "per_device_train_batch_size=8", "--ranks", "2"};
    const Command whole = read(words);
    const plan::Plan plan = plan_of(whole);
    const Room room = room_of(whole.run, machine_, question(whole).placement);
    std::vector<std::string> all = words;
    const std::int64_t device = needed_bytes(plan, room, MemorySpace::device);
    const std::int64_t node = needed_bytes(plan, room, std::nullopt);
    const std::int64_t outside = node - 2 * device;
    all.push_back(fmt::format("underkeel.memory.device={}B", device * percent / 100));
    all.push_back(
        fmt::format("underkeel.memory.host={}B", outside + 2 * device * percent / 100 - 1));
    return read(all);
  }
};

TEST_F(FitOfTwoSpaces, EachIsNamedWithWhatItNeedsAndMay) {
  const Command asked = command(90);
  const std::vector<Shortage> found = shortages(asked);
  ASSERT_EQ(found.size(), 2u);

  const auto fits = check_fit(plan_of(asked), question(asked));

  ASSERT_FALSE(fits);
  EXPECT_EQ(found[0].space, MemorySpace::device);
  EXPECT_EQ(found[1].space, std::nullopt);
  // Of the node the figures are close, so that the bytes are told.
  EXPECT_THAT(fits.error().what,
              HasSubstr(fmt::format("device peak {}, allowed {} (underkeel.memory.device)",
                                    format_bytes(found[0].needed_bytes),
                                    format_bytes(found[0].allowed_bytes))));
  EXPECT_THAT(fits.error().what,
              HasSubstr(fmt::format("host memory of a node with 2 ranks: peak {} bytes, allowed {} "
                                    "bytes (underkeel.memory.host)",
                                    format_count(found[1].needed_bytes),
                                    format_count(found[1].allowed_bytes))));
  EXPECT_THAT(fits.error().where, HasSubstr("\nnode:  arenas"));
}

TEST_F(FitOfTwoSpaces, EveryChangeCuresBoth) {
  const Command asked = command(90);
  const std::vector<Shortage> found = shortages(asked);

  const Advice advice = advise(question(asked), found);

  ASSERT_FALSE(advice.changes.empty());
  for (const Change& change : advice.changes) {
    SCOPED_TRACE(change.words);
    ASSERT_EQ(change.needed_bytes.size(), found.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_LE(change.needed_bytes[i], found[i].allowed_bytes);
  }
}

TEST_F(FitOfTwoSpaces, WhatComesClosestIsNamedWithAllThatItLacks) {
  const Command asked = command(1);

  const auto fits = check_fit(plan_of(asked), question(asked));

  ASSERT_FALSE(fits);
  EXPECT_THAT(fits.error().fix, HasSubstr("what comes closest needs"));
  EXPECT_THAT(fits.error().fix, HasSubstr(" of device, allowed "));
  EXPECT_THAT(fits.error().fix, HasSubstr(" of host memory of a node, allowed "));
}

TEST_F(Fit, HostMemoryThatIsShortOnGpusIsNotHeldAgainstTheirState) {
  // The state of all ranks is larger than the host's budget, and lies elsewhere.
  machine_ = {
      .gpus_per_node = 8, .gpu_mem_bytes = 80 * gibibyte, .host_ram_bytes = gibibyte, .cores = 8};
  const Command asked = read({"--ranks", "8", "gradient_accumulation_steps=8"});
  const std::vector<Shortage> found = shortages(asked);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].space);

  EXPECT_FALSE(advise(question(asked), found).changes.empty());
}

TEST_F(Fit, ALargeMicroBatchMakesNoLongList) {
  const auto operations = [&](const std::string& size) {
    const plan::Plan plan = plan_of(read({"per_device_train_batch_size=" + size}));
    std::size_t count = 0;
    for (const plan::Segment& segment : plan.schedule.segments) count += segment.ops.size();
    return count;
  };

  EXPECT_EQ(operations("8000000"), operations("16000000"));
}

TEST_F(Fit, ABudgetIsNamedAsItWasGiven) {
  Command command = read({"underkeel.memory.device=100KiB"});
  EXPECT_EQ(shortages(command).at(0).reason, "underkeel.memory.device");

  for (spec::Provenance& entry : command.run.provenance)
    if (entry.key == "underkeel.memory.device") entry.source = "--memory";

  EXPECT_EQ(shortages(command).at(0).reason, "--memory device");
}

TEST_F(Fit, ABudgetThatADriverTakesWholeIsRefused) {
  const spec::HardwareSpec gpus{.gpus_per_node = 1, .gpu_mem_bytes = 80 * gibibyte};
  const auto refused = check_budgets(read({"underkeel.memory.device=1GiB"}).run, gpus);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what,
            "a budget of 1.0 GiB leaves nothing of a GPU: its driver takes 1.0 GiB");
  EXPECT_EQ(refused.error().where, "underkeel.memory.device");
  EXPECT_TRUE(check_budgets(read({"underkeel.memory.device=2GiB"}).run, gpus));
  EXPECT_TRUE(check_budgets(read({"underkeel.memory.device=1MiB"}).run, machine_));
}

}  // namespace
}  // namespace underkeel::planner
