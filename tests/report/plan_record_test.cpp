#include "report/plan_record.h"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plan/lifetimes.h"
#include "plan/uses.h"
#include "report/made_page.h"
#include "report/page.h"

namespace underkeel::report {
namespace {

using nlohmann::json;
using test::plan_json_of;
using test::Reported;
using test::reported;
using ::testing::HasSubstr;
using ::testing::Not;

/// Bytes of a space after every change, in the order that `order` gives.
std::vector<std::int64_t> totals(const json& plan, const json& space, const json& order) {
  std::int64_t total = 0;
  const json& bytes = plan["buffers"]["bytes"];
  for (const json& id : space["always"]) total += bytes[id.get<std::size_t>()].get<std::int64_t>();
  std::vector<std::int64_t> all = {total};
  for (const json& position : order) {
    const auto change = space["change"][position.get<std::size_t>()].get<std::int64_t>();
    const auto size = bytes[static_cast<std::size_t>(std::abs(change)) - 1].get<std::int64_t>();
    all.push_back(total += change > 0 ? size : -size);
  }
  return all;
}

json in_order(const json& space) {
  json order = json::array();
  for (std::size_t i = 0; i < space["at"].size(); ++i) order.push_back(i);
  return order;
}

TEST(ShownRun, LoadsStepsSavesUnderAStepAndEvaluates) {
  const Reported made = reported();

  std::vector<std::string> parts;
  for (const ShownSegment& segment : made.shown.segments)
    if (parts.empty() || parts.back() != segment.part) parts.push_back(segment.part);
  EXPECT_THAT(parts, ::testing::ElementsAre("load", "a step", "a step while a save is written",
                                            "evaluation"));
  EXPECT_EQ(made.shown.micro_steps, 3);
  EXPECT_EQ(made.shown.segments[1].name, "micro-step 1 of 3");
  // Every pair is one that the program allows.
  for (std::size_t i = 1; i < made.shown.segments.size(); ++i) {
    const auto& steps = made.plan.schedule.program.steps;
    EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [&](const plan::Program::Step& step) {
      return step.from == made.shown.segments[i - 1].kind && step.to == made.shown.segments[i].kind;
    })) << i;
  }
}

TEST(ShownRun, LeavesOutMiddleMicroStepsOfALongStep) {
  planner::Request request = test::two_layer_request(3);
  request.accumulation_steps = 50;
  const plan::Plan plan = planner::make_plan(request);
  const std::size_t whole = shown_run(plan, {}).timeline.spans.size();

  const ShownRun shown = shown_run(plan, {}, whole / 2);

  EXPECT_EQ(shown.micro_steps, 50);
  EXPECT_LT(shown.shown_micro_steps, 30);
  EXPECT_GT(shown.shown_micro_steps, 15);
  const Reported made{.plan = plan, .shown = shown};
  EXPECT_THAT(plan_json_of(made), HasSubstr("Of the 50 micro-steps of a step"));
  // Numbered as in the run: the first, then the last ones.
  std::vector<std::string> names;
  for (const ShownSegment& segment : shown.segments)
    if (segment.part == "a step") names.push_back(segment.name);
  ASSERT_EQ(names.size(), static_cast<std::size_t>(shown.shown_micro_steps) + 1);
  EXPECT_EQ(names.front(), "micro-step 1 of 50");
  EXPECT_EQ(names[1], fmt::format("micro-step {} of 50", 52 - shown.shown_micro_steps));
  EXPECT_EQ(names[names.size() - 2], "micro-step 50 of 50");
  EXPECT_EQ(names.back(), "update");
}

TEST(PlanRecord, ReachesThePlansPeakAtItsOperation) {
  const Reported made = reported();

  const json plan = json::parse(plan_json_of(made));

  for (const json& space : plan["spaces"]) {
    const std::vector<std::int64_t> bytes = totals(plan, space, in_order(space));
    const auto most = *std::max_element(bytes.begin(), bytes.end());
    EXPECT_EQ(space["peak"]["bytes"], most) << space["name"];
    const auto span = space["peak"]["span"].get<std::size_t>();
    std::size_t entry = 0;  // changes up to that operation
    while (entry < space["at"].size() && space["at"][entry].get<std::size_t>() <= span) ++entry;
    EXPECT_EQ(bytes[entry], most) << space["name"];
    std::int64_t held = space["peak"]["rest_bytes"];
    for (const json& holder : space["peak"]["holders"]) held += holder["bytes"].get<std::int64_t>();
    EXPECT_EQ(held, most) << "holders add up";
  }
  EXPECT_EQ(plan["spaces"][0]["arena_bytes"], made.plan.layout.size_bytes[0]);
}

TEST(PlanRecord, HasTheBytesOfEveryOperationInOrder) {
  const Reported made = reported();
  const json plan = json::parse(plan_json_of(made));
  const json& device = plan["spaces"][0];
  const std::vector<std::int64_t> bytes = totals(plan, device, in_order(device));

  std::size_t entry = 0;
  for (const ShownSegment& segment : made.shown.segments) {
    const auto live = plan::live_bytes(made.plan.schedule, *made.plan.schedule.find(segment.kind),
                                       plan::MemorySpace::device);
    for (std::size_t i = 0; i < live.size(); ++i) {
      while (entry < device["at"].size() &&
             device["at"][entry].get<std::size_t>() <= segment.first_span + i)
        ++entry;
      ASSERT_EQ(bytes[entry], live[i]) << name_of(segment.kind) << " " << i;
    }
  }
}

TEST(PlanRecord, HasTheBytesOfEveryMomentInTime) {
  const Reported made = reported();
  const json plan = json::parse(plan_json_of(made));
  const json& device = plan["spaces"][0];

  const auto moments =
      plan::bytes_over_time(made.plan.schedule, made.shown.timeline, plan::MemorySpace::device);
  const std::vector<std::int64_t> bytes = totals(plan, device, device["by_time"]);

  EXPECT_EQ(bytes.back(), moments.back().size_bytes);
  std::int64_t most = 0;
  for (const plan::Moment& moment : moments) most = std::max(most, moment.size_bytes);
  EXPECT_EQ(device["most_in_time"]["bytes"], most);
  EXPECT_LE(most, made.plan.layout.size_bytes[0]);
}

TEST(PlanRecord, NamesEveryOperationAndItsLane) {
  const Reported made = reported();

  const json plan = json::parse(plan_json_of(made));

  ASSERT_EQ(plan["spans"]["begin"].size(), made.shown.timeline.spans.size());
  std::size_t spans = 0;
  for (const json& segment : plan["segments"]) {
    const json& list = plan["lists"][segment["list"].get<std::size_t>()];
    EXPECT_EQ(segment["count"], list["name"].size());
    EXPECT_EQ(segment["first"], spans);
    spans += segment["count"].get<std::size_t>();
    for (const json& lane : list["lane"]) EXPECT_LT(lane, plan["lanes"].size());
  }
  EXPECT_EQ(spans, made.shown.timeline.spans.size());
}

TEST(Page, HoldsNoEndOfItsOwnElements) {
  const Reported made = reported();

  const std::string html =
      html_of({.title = "</title><b>", .made = "underkeel", .plan_json = plan_json_of(made)});

  const std::size_t begin = html.find("<script id=\"data\"");
  const std::size_t end = html.find("</script>", begin);
  const std::size_t open = html.find('>', begin) + 1;
  const json data = json::parse(html.substr(open, end - open));
  EXPECT_EQ(data["plan"]["values"][0][2], "</script><script>alert(1)</script>");
  EXPECT_EQ(data["title"], "</title><b>");
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
  EXPECT_THAT(html, HasSubstr("<title>&lt;/title&gt;&lt;b&gt;</title>"));
}

TEST(Page, AsksNothingOfTheNetwork) {
  const std::string html = html_of({.title = "a run", .made = "underkeel"});

  EXPECT_THAT(html, Not(HasSubstr(" src=")));
  EXPECT_THAT(html, Not(HasSubstr("@import")));
  EXPECT_THAT(html, Not(HasSubstr("url(")));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, HasSubstr("Redistributions in binary form must reproduce")) << "D3's licence";
}

}  // namespace
}  // namespace underkeel::report
