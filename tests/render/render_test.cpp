#include "render/render.h"

#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "plan/lifetimes.h"
#include "simulate/simulate.h"
#include "support/planned.h"

namespace underkeel::render {
namespace {

using nlohmann::json;
using plan::MemorySpace;
using plan::SegmentKind;
using ::testing::HasSubstr;

plan::Plan small_plan() {
  return planner::make_plan(test::two_layer_request(3));
}

plan::Timeline step_of(const plan::Plan& plan) {
  simulate::SimulatedRun run(plan, simulate::rates_of({}, plan.world_size));
  plan::Timeline timeline;
  for (const SegmentKind kind : simulate::window_of(plan)) run.add(kind, 0, &timeline);
  return timeline;
}

TEST(RenderJson, SaysWhatThePlanNeeds) {
  plan::Plan plan = small_plan();
  plan.hash = 0x1234;
  plan.decisions = {{.subject = "recompute",
                     .value = "none",
                     .reason = "it fits",
                     .alternatives = {{"block", "step +30%"}}}};
  Outlook outlook{.fits = false};
  outlook.budgets[0] = plan::Budget{.size_bytes = 1000, .reason = "--memory"};
  outlook.suggestions = {
      {.change = "zero.stage=3", .needs = {{"device", 900}}, .effect = "step +4%"}};
  outlook.times = Times{.step_s = 1.5};
  outlook.node = NodeMemory{.needed_bytes = 70,
                            .outside_bytes = 30,
                            .process_count = 2,
                            .budget = plan::Budget{.size_bytes = 90, .reason = "the machine"}};

  const json found = json::parse(plan_json(plan, outlook));

  EXPECT_EQ(found["fits"], false);
  EXPECT_EQ(found["ranks"], 2);
  EXPECT_EQ(found["parameters"], plan.parameter_count);
  const json& device = found["spaces"]["device"];
  EXPECT_EQ(device["peak_bytes"], plan.layout.size_bytes[0]);
  EXPECT_EQ(device["budget_bytes"], 1000);
  EXPECT_EQ(device["peak_segment"], "micro.first");
  std::size_t kinds = 0;
  for (const plan::Segment& segment : plan.schedule.segments) kinds += 1 + segment.also.size();
  EXPECT_EQ(device["by_segment"].size(), kinds);
  std::int64_t sum = 0;
  for (const auto& [kind, size] : device["by_kind"].items()) sum += size.get<std::int64_t>();
  EXPECT_EQ(sum, plan.layout.size_bytes[0]) << "kinds and gaps make up the arena";
  EXPECT_EQ(found["spaces"]["host"]["budget_bytes"], nullptr);
  EXPECT_FALSE(found["spaces"].contains("nvme"));
  EXPECT_EQ(found["decisions"][0]["alternatives"][0]["effect"], "step +30%");
  EXPECT_EQ(found["suggestions"][0]["peak_bytes"], 900);
  EXPECT_EQ(found["times"]["step_s"], 1.5);
  EXPECT_EQ(found["node"]["host_bytes"], 70);
  EXPECT_EQ(found["node"]["outside_bytes"], 30);
  EXPECT_EQ(found["node"]["budget_bytes"], 90);
  EXPECT_EQ(found["disk"], nullptr) << "not known";
  EXPECT_EQ(found["plan_hash"], "0000000000001234");
  EXPECT_EQ(found["program"].size(), plan.schedule.program.steps.size());
}

TEST(RenderJson, PhasesAreThePeaksOfTheirSegments) {
  const plan::Plan plan = small_plan();

  const json phases = json::parse(plan_json(plan, {}))["phases"];

  const auto peak = [&](SegmentKind kind) {
    const auto live =
        plan::live_bytes(plan.schedule, *plan.schedule.find(kind), MemorySpace::device);
    return *std::max_element(live.begin(), live.end());
  };
  EXPECT_EQ(phases["load"]["device"], peak(SegmentKind::load));
  EXPECT_EQ(phases["resume"]["device"], peak(SegmentKind::resume));
  EXPECT_EQ(phases["update"]["device"], peak(SegmentKind::update));
  EXPECT_EQ(phases["step"]["device"], peak(SegmentKind::micro_only));
  EXPECT_EQ(phases["evaluate"]["device"], peak(SegmentKind::evaluate));
  // A save runs under the next step; nothing is needed once that a later step does not need.
  for (const char* phase : {"first_step", "save", "after_save"})
    EXPECT_EQ(phases[phase], phases["step"]) << phase;
}

TEST(RenderTable, HasARowForEveryPhaseAndAColumnForEveryKindInUse) {
  const plan::Plan plan = small_plan();
  Outlook outlook;
  outlook.budgets[0] = plan::Budget{.size_bytes = 1 << 30, .reason = "--memory"};

  const std::string table = peak_table(plan, outlook);

  const std::string device = table.substr(0, table.find("\nhost"));
  EXPECT_THAT(device, HasSubstr(" of 1.0 GiB (--memory)\n"));
  for (const char* phase : {"load", "resume", "first step", "later steps", "update", "evaluation",
                            "during a save", "after a save"}) {
    EXPECT_THAT(device, HasSubstr(fmt::format("\n  {:13}", phase)));
    EXPECT_THAT(table.substr(device.size()), HasSubstr(fmt::format("\n  {:13}", phase)));
  }
  EXPECT_THAT(device, HasSubstr("  most is held at\n"));
  // What holds a peak adds up to it, and its moment is one of the listing's operations.
  const json moments = json::parse(plan_json(plan, outlook))["moments"];
  const json phases = json::parse(plan_json(plan, outlook))["phases"];
  for (const auto& [phase, spaces] : phases.items())
    for (const auto& [space, size] : spaces.items()) {
      const json& moment = moments[phase][space];
      std::int64_t sum = 0;
      for (const auto& [kind, held] : moment["by_kind"].items()) sum += held.get<std::int64_t>();
      EXPECT_EQ(sum, size.get<std::int64_t>()) << phase << " " << space;
      if (moment["op"] != 0) {
        EXPECT_THAT(moment["at"].get<std::string>(), ::testing::StartsWith("acquire "))
            << phase << " " << space;
      }
    }
}

TEST(RenderTable, SaysWhatOfAnArenaIsBetweenBuffersWhereThatShows) {
  plan::Plan plan = small_plan();
  EXPECT_EQ(peak_table(plan, {}).find("gaps"), std::string::npos);

  plan.layout.size_bytes[0] += 1 << 20;

  EXPECT_THAT(peak_table(plan, {}), HasSubstr(" of buffers and 1.0 MiB of gaps between them)"));
}

TEST(RenderTable, HasRowsThatAddUpInOneUnit) {
  plan::Plan plan;
  plan.schedule.segments = {{.kind = SegmentKind::load}, {.kind = SegmentKind::update}};
  const std::int64_t third = 16 * 1024 * 1024 / 3;  // 5.333 MiB
  plan.peaks = {
      {.segment = SegmentKind::load, .size_bytes = 3 * third, .by_kind = {third, third, third}},
      {.segment = SegmentKind::update,
       .size_bytes = 2 * third + 100,
       .by_kind = {third, 100, third}}};
  plan.layout.size_bytes[0] = 3 * third;

  const std::string table = peak_table(plan, {});

  EXPECT_THAT(
      table,
      HasSubstr(
          "  in MiB           total      weights    gradients    optimizer  most is held at\n"
          "  load             16.00         5.34         5.33         5.33  load, all through\n"));
  EXPECT_THAT(table,
              HasSubstr("  update           10.67         5.34         0.00         5.33  up"));

  plan.layout.size_bytes[0] = plan.peaks[0].size_bytes = 700;
  plan.peaks[0].by_kind = {300, 400};
  plan.peaks.resize(1);

  EXPECT_THAT(peak_table(plan, {}),
              HasSubstr("  in B             total      weights    gradients  most is held at\n"
                        "  load               700          300          400  load, all through\n"));
}

TEST(RenderTable, LeavesOutPhasesThatAPlanDoesNotHave) {
  plan::Plan plan = small_plan();
  std::erase_if(plan.schedule.segments, [](const plan::Segment& segment) {
    return segment.kind == SegmentKind::save || segment.kind == SegmentKind::evaluate;
  });
  std::erase_if(plan.peaks, [](const plan::Peak& peak) {
    return peak.segment == SegmentKind::save || peak.segment == SegmentKind::evaluate ||
           peak.segment == SegmentKind::evaluate_end;
  });

  const std::string table = peak_table(plan, {});

  for (const char* phase : {"evaluation", "during a save", "after a save"})
    EXPECT_EQ(table.find(phase), std::string::npos) << table;
}

TEST(RenderTrace, HasEveryOperationOnItsLane) {
  const plan::Plan plan = small_plan();
  const plan::Timeline timeline = step_of(plan);

  const json events = json::parse(trace_json(plan, timeline, 3))["traceEvents"];

  std::size_t operations = 0;
  double most_bytes = 0;
  double bytes = 0;
  bool has_lane = false;
  for (const json& event : events) {
    EXPECT_EQ(event["pid"], 3);
    EXPECT_TRUE(event["name"].is_string());
    EXPECT_THAT(event["ph"], ::testing::AnyOf("M", "X", "C"));
    EXPECT_GE(event.value("ts", 0.0), 0);
    EXPECT_GE(event.value("dur", 0.0), 0);
    EXPECT_EQ(event.contains("ts"), event["ph"] != "M");
    EXPECT_EQ(event.contains("dur"), event["ph"] == "X");
    if (event["ph"] == "X") {
      const plan::Span& span = timeline.spans[operations++];
      EXPECT_EQ(event["tid"], index(span.lane));
      EXPECT_DOUBLE_EQ(event["ts"].get<double>(), span.begin_s * 1e6);
      EXPECT_EQ(event["cat"], name_of(span.segment));
    }
    if (event["ph"] == "C" && event["name"] == "device bytes") {
      bytes = event["args"]["bytes"];
      most_bytes = std::max(most_bytes, bytes);
    }
    if (event["ph"] == "C" && event["name"] == "device by holder") {
      double sum = 0;
      for (const auto& [kind, size] : event["args"].items()) sum += size.get<double>();
      EXPECT_EQ(sum, bytes) << "holders add up";
    }
    has_lane =
        has_lane || (event["name"] == "thread_name" && event["args"]["name"] == "collective");
  }
  EXPECT_EQ(operations, timeline.spans.size());
  EXPECT_TRUE(has_lane);
  EXPECT_GT(most_bytes, static_cast<double>(plan.persistent_bytes[0]));
  EXPECT_LE(most_bytes, static_cast<double>(plan.layout.size_bytes[0]));
}

TEST(RenderBars, AreAsLongAsTheirBytesAndMarkTheLargest) {
  plan::Plan plan;
  plan.layout.size_bytes[0] = 4096;
  plan.peaks = {{.segment = SegmentKind::load, .size_bytes = 1024, .by_kind = {1024}},
                {.segment = SegmentKind::update, .size_bytes = 2048, .by_kind = {1024, 0, 1024}}};

  EXPECT_EQ(peak_bars(plan, {}, {.columns = 39}),
            "device: 4.0 KiB\n"
            "  load          wwwww         1.0 KiB\n"
            "  first step    wwwwwooooo    2.0 KiB *\n"
            "  later steps   wwwwwooooo    2.0 KiB\n"
            "  update        wwwwwooooo    2.0 KiB\n"
            "  w weights  o optimizer  * peak\n");
}

TEST(RenderBars, AreOneWhereAllPhasesHoldTheSame) {
  plan::Plan plan;
  plan.layout.size_bytes[0] = 1024;
  plan.peaks = {{.segment = SegmentKind::load, .size_bytes = 1024, .by_kind = {1024}},
                {.segment = SegmentKind::update, .size_bytes = 1024, .by_kind = {1024}}};

  EXPECT_EQ(peak_bars(plan, {}, {.columns = 39}),
            "device: 1.0 KiB\n"
            "  all phases    wwwwwwwwww    1.0 KiB *\n"
            "  w weights  * peak\n");
}

TEST(RenderBars, AreNoWiderThanTheTerminal) {
  for (const int columns : {60, 80, 100}) {
    std::istringstream bars(peak_bars(small_plan(), {}, {.columns = columns}));
    std::size_t longest = 0;
    for (std::string line; std::getline(bars, line);) longest = std::max(longest, line.size());

    EXPECT_EQ(longest, static_cast<std::size_t>(columns));
  }
}

// Bars and table name the same phases with the same figures.
TEST(RenderBars, HaveTheRowsOfTheTable) {
  const plan::Plan plan = small_plan();
  const std::vector<PhaseRow> rows = phase_rows(plan, MemorySpace::device);

  const std::string bars = peak_bars(plan, {}, {.columns = 80});
  const std::string table = peak_table(plan, {});

  ASSERT_GE(rows.size(), 8u);
  for (const PhaseRow& row : rows) {
    const std::string begin = fmt::format("\n  {:13}", row.name) + " ";
    EXPECT_THAT(bars,
                ::testing::ContainsRegex(begin + "[^\n]*  " + format_bytes(row.peak->size_bytes)));
    const std::string size =
        fmt::format("{:.2f}", static_cast<double>(row.peak->size_bytes) / mebibyte);
    EXPECT_THAT(table, ::testing::ContainsRegex(begin + " *" + size + " "));
    EXPECT_THAT(row.segments, ::testing::Contains(row.peak->segment));
  }
}

TEST(RenderBars, ColoursAreSwitchedOffBehindEveryPart) {
  plan::Plan plan;
  plan.layout.size_bytes[0] = 1024;
  plan.peaks = {{.segment = SegmentKind::load, .size_bytes = 1024, .by_kind = {1024}}};

  const std::string bars = peak_bars(plan, {}, {.columns = 80, .colored = true});

  EXPECT_THAT(bars, HasSubstr("\x1b[38;5;33m█"));
  EXPECT_THAT(bars, HasSubstr("█\x1b[0m"));
}

}  // namespace
}  // namespace underkeel::render
