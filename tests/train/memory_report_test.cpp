#include "train/memory_report.h"

#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/units.h"
#include "exec/arena.h"
#include "kernels/facts/facts.h"
#include "spec/model_spec.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/temporary_folder.h"
#include "support/value_of.h"

namespace underkeel::train {
namespace {

using nlohmann::json;
using plan::MemorySpace;
using plan::SegmentKind;
using test::value_of;

TEST(ProcessMemory, ReadsTheThreeFieldsOfStatus) {
  const auto memory = value_of(parse_process_status(
      "Name:\tVmRSS\nVmPeak:\t 999 kB\nVmHWM:\t     300 kB\nVmRSS:\t     200 kB\n"
      "RssAnon:\t     100 kB\nThreads:\t1\n"));

  EXPECT_EQ(memory.most_resident_bytes, 300 * kibibyte);
  EXPECT_EQ(memory.resident_bytes, 200 * kibibyte);
  EXPECT_EQ(memory.anonymous_resident_bytes, 100 * kibibyte);
}

TEST(ProcessMemory, NamesTheFieldThatIsMissing) {
  const auto memory = parse_process_status("VmRSS:\t 1 kB\n");

  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, ErrorCode::bad_file);
  EXPECT_THAT(memory.error().what, testing::HasSubstr("VmHWM"));
}

TEST(ProcessMemory, ReadsTheRollup) {
  const auto memory = value_of(parse_smaps_rollup(
      "5581-7ffd ---p 00000000 00:00 0    [rollup]\nRss:    40 kB\nPss:     30 kB\n"
      "Pss_Dirty:    5 kB\nAnonymous:    20 kB\nAnonHugePages:   0 kB\n"));

  EXPECT_EQ(memory.resident_bytes, 40 * kibibyte);
  EXPECT_EQ(memory.proportional_bytes, 30 * kibibyte);
  EXPECT_EQ(memory.anonymous_bytes, 20 * kibibyte);
}

TEST(ProcessMemory, TouchedBytesShowInBothFiles) {
  const auto before = value_of(read_process_memory());
  const auto rollup_before = value_of(read_memory_rollup());
  constexpr std::int64_t touched_bytes = 16 * mebibyte;

  const std::vector<char> touched(static_cast<std::size_t>(touched_bytes), 1);

  const auto after = value_of(read_process_memory());
  const auto rollup_after = value_of(read_memory_rollup());
  ASSERT_EQ(touched.back(), 1);
  constexpr std::int64_t slack = mebibyte;  // the kernel adds up per-thread counts now and then
  EXPECT_GE(after.anonymous_resident_bytes,
            before.anonymous_resident_bytes + touched_bytes - slack);
  EXPECT_GE(after.most_resident_bytes, after.resident_bytes - slack);
  EXPECT_GE(rollup_after.anonymous_bytes, rollup_before.anonymous_bytes + touched_bytes - slack);
}

TEST(ProcessMemory, ThePlanAddsWhatIsToComeAndNeverFallsBelowWhatWas) {
  const ProcessMemory now{.resident_bytes = 100 * mebibyte, .most_resident_bytes = 500 * mebibyte};

  EXPECT_EQ(planned_process_bytes(now, {.arena_bytes = mebibyte}), 500 * mebibyte);
  EXPECT_EQ(planned_process_bytes(now, {.arena_bytes = gibibyte,
                                        .thread_count = 2,
                                        .packing_bytes = 3,
                                        .log_bytes = 4,
                                        .transport_bytes = 5}),
            100 * mebibyte + gibibyte + 2 * thread_touched_bytes + 12 + unseen_bytes);
}

/// A plan with one arena and two segments, and figures that a test sets.
struct Made {
  plan::Plan plan;
  std::int64_t arena_bytes = 4096;
  ProcessMemory process{.most_resident_bytes = 9000, .anonymous_resident_bytes = 70};

  Made() {
    plan.layout.size_bytes[static_cast<std::size_t>(MemorySpace::device)] = 4000;
    plan.peaks = {{.segment = SegmentKind::micro_only, .size_bytes = 3900},
                  {.segment = SegmentKind::update, .size_bytes = 2000}};
  }
  MemorySource source() {
    return {.arena_resident_bytes = [this](MemorySpace) { return arena_bytes; },
            .live_peak_bytes = [](SegmentKind kind, MemorySpace) -> std::int64_t {
              return kind == SegmentKind::update ? 2000 : 3800;
            },
            .process = [this] { return process; }};
  }
};

TEST(MemoryReport, HasTheShapeThatTheDesignGives) {
  Made made;
  MemoryReport report(made.plan, made.source(),
                      {.rank = 3, .ranks_in_process = 4, .planned_process_bytes = 9500});
  value_of(report.begin(MemoryPhase::save, 20));
  made.arena_bytes = 8192;
  made.process.anonymous_resident_bytes = 95;
  value_of(report.sample());
  made.arena_bytes = 4096;
  made.process.anonymous_resident_bytes = 75;
  value_of(report.end());
  value_of(report.sample());  // no phase runs any more

  const json root = json::parse(join_memory_reports({value_of(report.to_lines())}));

  EXPECT_EQ(root.at("ranks"), json::parse(R"([{
      "rank": 3,
      "spaces": {"device": {"planned_peak_bytes": 4000, "measured_peak_bytes": 4096,
          "by_segment": {"micro.only": {"planned_peak_bytes": 3900, "measured_peak_bytes": 3800},
                         "update": {"planned_peak_bytes": 2000, "measured_peak_bytes": 2000}}}},
      "process": {"planned_total_bytes": 9500, "max_rss_bytes": 9000, "ranks_in_process": 4}}])"));
  EXPECT_EQ(root.at("events"), json::parse(R"([{
      "rank": 3, "step": 20, "what": "save", "space": "device", "before_bytes": 4096,
      "during_peak_bytes": 8192, "after_bytes": 4096, "anonymous_rss_before": 70,
      "anonymous_rss_during_peak": 95, "anonymous_rss_after": 75}])"));
}

TEST(MemoryReport, APhaseThatWasNotEndedIsEndedByTheNextOne) {
  Made made;
  MemoryReport report(made.plan, made.source(), {});
  value_of(report.begin(MemoryPhase::save, 1));
  made.arena_bytes = 5000;
  value_of(report.begin(MemoryPhase::evaluate, 2));
  made.arena_bytes = 6000;
  value_of(report.end());

  const json events = json::parse(join_memory_reports({value_of(report.to_lines())})).at("events");

  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("after_bytes"), 5000);
  EXPECT_EQ(events[1].at("what"), "evaluate");
  EXPECT_EQ(events[1].at("after_bytes"), 6000);
}

TEST(MemoryReport, AReportWithoutEventsIsJsonToo) {
  Made made;
  const MemoryReport report(made.plan, made.source(), {});

  EXPECT_TRUE(json::parse(join_memory_reports({value_of(report.to_lines())})).at("events").empty());
}

TEST(MemoryReport, RankZeroWritesThePartsOfAllRanks) {
  const test::TemporaryFolder output;
  auto ends = comm::make_thread_group(3);
  std::vector<std::thread> ranks;
  for (auto& end : ends)
    ranks.emplace_back([&] {
      Made made;
      MemoryReport report(made.plan, made.source(), {.rank = end->rank(), .ranks_in_process = 3});
      io::FileSystem files;
      value_of(report.begin(MemoryPhase::resume, end->rank()));
      value_of(report.end());
      value_of(write_memory_report(*end, files, output.path(), report, true));
    });
  for (auto& rank : ranks) rank.join();

  std::ifstream file(output / "memory.json");
  const json root = json::parse(file);

  ASSERT_EQ(root.at("ranks").size(), 3u);
  ASSERT_EQ(root.at("events").size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(root.at("ranks").at(static_cast<std::size_t>(rank)).at("rank"), rank);
    EXPECT_EQ(root.at("events").at(static_cast<std::size_t>(rank)).at("step"), rank);
  }
}

TEST(MemoryReport, OfARunThatTrainedStaysWhenItsCommandIsGivenAgain) {
  const test::TemporaryFolder output;
  const auto control = comm::make_single();
  io::FileSystem files;
  Made made;
  const auto write = [&](std::int64_t step, bool has_trained) {
    MemoryReport report(made.plan, made.source(), {});
    value_of(report.begin(MemoryPhase::save, step));
    value_of(report.end());
    value_of(write_memory_report(*control, files, output.path(), report, has_trained));
    std::ifstream file(output / "memory.json");
    return json::parse(file).at("events").at(0).at("step").get<std::int64_t>();
  };

  EXPECT_EQ(write(1, false), 1) << "where none stands it is written";
  EXPECT_EQ(write(2, true), 2);
  EXPECT_EQ(write(3, false), 2);
  EXPECT_EQ(write(4, true), 4);
}

class MemoryOfRanks : public testing::TestWithParam<int> {};

TEST_P(MemoryOfRanks, ARealStepStaysWithinThePlanAndNearIt) {
  const int world_size = GetParam();
  const auto golden = test::read_golden("llama_gqa");
  const auto model = value_of(spec::read_model_config(golden.folder));
  planner::Request request = test::request_for(model, golden.batch.row_count());
  request.world_size = world_size;
  request.stage = 3;
  const plan::Plan plan = planner::make_plan(request);
  std::int64_t arena_bytes = 0;
  for (const std::int64_t size_bytes : plan.layout.size_bytes)
    arena_bytes += world_size * round_up(size_bytes, sysconf(_SC_PAGESIZE));
  const std::int64_t planned =
      planned_process_bytes(value_of(read_process_memory()),
                            {.arena_bytes = arena_bytes,
                             .thread_count = 4 * world_size,
                             .packing_bytes = world_size * kernels::cpu_matmul_overhead_bytes(1)});
  const test::TemporaryFolder output;

  test::EngineOptions options;
  options.kernels = &kernels::cpu_kernels();
  test::run_ranks(plan, options, [&](test::Rank& rank) {
    io::FileSystem files;
    MemoryReport report(
        plan, MemorySource::of(rank.executor),
        {.rank = rank.rank, .ranks_in_process = world_size, .planned_process_bytes = planned});
    test::load_weights(rank, golden.folder);
    value_of(rank.executor.run(
        SegmentKind::micro_only,
        test::inputs_of(golden.batch, world_size * golden.batch.trained_count())));
    value_of(rank.executor.run(SegmentKind::update, {}));
    value_of(rank.executor.drain());
    value_of(write_memory_report(rank.control, files, output.path(), report, true));
  });

  std::ifstream file(output / "memory.json");
  const json ranks = json::parse(file).at("ranks");
  ASSERT_EQ(std::ssize(ranks), world_size);
  for (const json& rank : ranks) {
    const json& device = rank.at("spaces").at("device");
    EXPECT_NEAR(device.at("measured_peak_bytes").get<double>(),
                device.at("planned_peak_bytes").get<double>(),
                static_cast<double>(sysconf(_SC_PAGESIZE)));
    for (const char* segment : {"micro.only", "update"}) {
      const json& peak = device.at("by_segment").at(segment);
      EXPECT_EQ(peak.at("measured_peak_bytes"), peak.at("planned_peak_bytes")) << segment;
    }
    const auto most = rank.at("process").at("max_rss_bytes").get<std::int64_t>();
    // AddressSanitizer's shadow and quarantine are no part of the plan.
    if (exec::poisoning_works()) continue;
    EXPECT_LE(most, planned);
    EXPECT_LE(planned, most + most / 10 + 32 * mebibyte);
    RecordProperty("most_bytes", std::to_string(most));
    RecordProperty("planned_bytes", std::to_string(planned));
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, MemoryOfRanks, testing::Values(1, 4),
                         [](const auto& instance) { return std::to_string(instance.param); });

}  // namespace
}  // namespace underkeel::train
