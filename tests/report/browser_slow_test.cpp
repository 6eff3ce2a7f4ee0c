// Pages in a real browser: Chromium without a window. Where there is none the tests are passed over, unless
// UNDERKEEL_REQUIRE_BROWSER is set, as .ci/run does.

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "plan/op_text.h"
#include "report/made_page.h"
#include "report/page.h"
#include "report/run_folder.h"
#include "report/server.h"
#include "support/program.h"
#include "support/temporary_folder.h"
#include "support/text_files.h"
#include "support/value_of.h"

namespace underkeel::report {
namespace {

using test::reported;
using test::Reported;
using test::value_of;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Browser : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* path :
         {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"})
      if (program_.empty() && std::filesystem::exists(path)) program_ = path;
    if (!program_.empty()) return;
    ASSERT_EQ(std::getenv("UNDERKEEL_REQUIRE_BROWSER"), nullptr)
        << "no Chromium: scripts/install_packages --ci";
    GTEST_SKIP() << "no Chromium here: scripts/install_packages --ci";
  }

  struct Shown {
    std::string page;     // as the scripts left it
    std::string console;  // what they wrote there
  };
  Shown open(const std::string& url) {
    const test::Ended ended = test::run_program(
        {program_, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--user-data-dir=" + (folder_ / "profile").string(), "--window-size=1400,1000",
         "--enable-logging=stderr", "--virtual-time-budget=8000", "--dump-dom", url},
        {}, 240);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    Shown shown;
    const std::size_t begin = ended.output.find("<!DOCTYPE html>");
    EXPECT_NE(begin, std::string::npos) << ended.output.substr(0, 2000);
    shown.page = ended.output.substr(std::min(begin, ended.output.size()));
    // The script and the data are not what is looked for in a page.
    for (const char* element : {"<script", "<style"})
      for (std::size_t at; (at = shown.page.find(element)) != std::string::npos;)
        shown.page.erase(at, shown.page.find(std::string("</") + (element + 1), at) - at + 2);
    for (std::size_t at = 0; (at = ended.output.find("CONSOLE", at)) != std::string::npos; ++at)
      shown.console += ended.output.substr(at, ended.output.find('\n', at) - at + 1);
    return shown;
  }
  /// Opens the page with `script` run behind its own.
  Shown open_page(std::string html, const std::string& script = "") {
    html.insert(html.rfind("</body>"), "<script>" + script + "</script>");
    test::write_text(folder_ / "page.html", html);
    return open("file://" + (folder_ / "page.html").string());
  }
  static void expect_sound(const Shown& shown) {
    EXPECT_THAT(shown.page, HasSubstr("data-state=\"ready\""));
    EXPECT_THAT(shown.page, Not(HasSubstr("data-problems"))) << shown.page.substr(0, 500);
    EXPECT_EQ(shown.console, "");
    EXPECT_THAT(shown.page, Not(HasSubstr("NaN")));
    EXPECT_THAT(shown.page, Not(HasSubstr("undefined")));
  }

  std::string run_json() {
    test::write_text(folder_ / "run/events.jsonl",
                     "{\"event\":\"begin\",\"time\":1,\"step\":0,\"total_steps\":3}\n"
                     "{\"event\":\"step\",\"time\":2,\"step\":1,\"loss\":4.5,\"lr\":0.0004}\n"
                     "{\"event\":\"step\",\"time\":3,\"step\":2,\"loss\":4.125,\"lr\":0.002}\n");
    test::write_text(folder_ / "run/memory.json",
                     R"({"ranks": [{"rank": 0, "spaces": {"device": {"planned_peak_bytes": 1048576,
                         "measured_peak_bytes": 1052672, "by_segment": {}}}, "process": {
                         "planned_total_bytes": 3145728, "max_rss_bytes": 2097152,
                         "ranks_in_process": 1}}], "events": []})");
    RunFolder folder = value_of(RunFolder::open(files_, (folder_ / "run").string()));
    folder.refresh();
    return to_json(folder.record());
  }

  std::string program_;
  io::FileSystem files_;
  test::TemporaryFolder folder_;
};

TEST_F(Browser, MarksThePlansPeakAndNamesIt) {
  const Reported made = reported();
  const auto& peak = *render::largest_peak(made.plan, plan::MemorySpace::device);

  const Shown shown = open_page(html_of({.title = "a plan", .plan_json = plan_json_of(made)}));

  expect_sound(shown);
  const std::string words = "peak " + format_bytes(peak.size_bytes) + " · ";
  EXPECT_THAT(shown.page, HasSubstr("class=\"peak-dot\""));
  EXPECT_THAT(shown.page, HasSubstr(words));
  EXPECT_THAT(shown.page, HasSubstr(fmt::format("({} bytes) in {}", format_count(peak.size_bytes),
                                                name_of(peak.segment))));
  EXPECT_THAT(shown.page, HasSubstr(">it fits<"));
}

// The pointer at the mark, in both axes and in a zoom, tells the plan's own bytes.
TEST_F(Browser, TellsThePeaksBytesUnderThePointer) {
  const Reported made = reported();
  const auto& peak = *render::largest_peak(made.plan, plan::MemorySpace::device);

  const Shown shown = open_page(html_of({.title = "a plan", .plan_json = plan_json_of(made)}), R"(
    const view = data.plan.view;
    view.setAxis(false);
    view.showPeak(0);
    const svg = view.memory[0].svg.node();
    svg.scrollIntoView();
    const box = svg.getBoundingClientRect();
    const dot = svg.querySelector(".peak-dot");
    svg.dispatchEvent(new MouseEvent("mousemove", {clientX: box.left + Number(dot.getAttribute("cx")),
                                                   clientY: box.top + 200, bubbles: true}));
    document.documentElement.dataset.hovered = tip.element.textContent;)");

  expect_sound(shown);
  EXPECT_THAT(shown.page, ContainsRegex("data-hovered=\"" + format_bytes(peak.size_bytes) + " .*" +
                                        format_count(peak.size_bytes) + " bytes"));
  EXPECT_THAT(shown.page, HasSubstr("largest buffers"));
}

TEST_F(Browser, ShowsEveryPhaseWithItsPeakAndMoment) {
  const Reported made = reported();
  const plan::OpText text(made.plan.schedule);

  const Shown shown = open_page(html_of({.title = "a plan", .plan_json = plan_json_of(made)}));

  expect_sound(shown);
  const auto rows = render::phase_rows(made.plan, plan::MemorySpace::device);
  ASSERT_GE(rows.size(), 8u);
  for (const render::PhaseRow& row : rows) {
    const plan::Segment& segment = *made.plan.schedule.find(row.peak->segment);
    const std::string moment =
        index(row.peak->op) == 0
            ? fmt::format("{}, all through", name_of(row.peak->segment))
            : fmt::format("{}, operation {} {}", name_of(row.peak->segment), index(row.peak->op),
                          text.name_of(segment.ops[index(row.peak->op)]));
    EXPECT_THAT(shown.page,
                ContainsRegex(fmt::format(">{}</td><td class=\"number\">{}</td>.*>{}<", row.name,
                                          format_bytes(row.peak->size_bytes), moment)));
  }
}

TEST_F(Browser, CutsNothingOffInANarrowWindow) {
  Reported made = reported();
  made.outlook.budgets[0]->size_bytes = made.plan.layout.size_bytes[0] * 11 / 10;

  const Shown shown = open_page(
      html_of({.title = "both", .plan_json = plan_json_of(made), .run_json = run_json()}), R"(
    const cut = [];
    for (const width of [1300, 900, 600, 400, 340]) {
      document.getElementById("page").style.width = width + "px";
      for (const axis of [true, false]) {
        data.plan.view.setAxis(axis);
        data.plan.view.showPart("evaluation");  // the peak lies outside
        for (const part of [null, "a step"]) {
          redrawAll();
          const boxes = [];
          for (const text of document.querySelectorAll(".picture svg text")) {
            const box = text.getBoundingClientRect(), whole = text.ownerSVGElement.getBoundingClientRect();
            if (box.width > 0 && (box.left < whole.left - 1 || box.right > whole.right + 1)) cut.push(width + ": " + text.textContent);
            if (text.matches(".name, .peak-label, .budget-label")) boxes.push([text, box]);
          }
          for (const [one, a] of boxes) for (const [other, b] of boxes)
            if (one !== other && a.left < b.right && b.left < a.right && a.top < b.bottom - 4 && b.top < a.bottom - 4)
              cut.push(width + ": " + one.textContent + " over " + other.textContent);
          data.plan.view.showPart(part);
        }
      }
      for (const panel of document.querySelectorAll(".panel"))
        if (panel.scrollWidth > panel.clientWidth + 1) cut.push(width + ": " + panel.id);
    }
    document.documentElement.dataset.cut = cut.join("; ") || "nothing";)");

  expect_sound(shown);
  EXPECT_THAT(shown.page, HasSubstr("data-cut=\"nothing\""))
      << shown.page.substr(0, shown.page.find("<head>"));
}

TEST_F(Browser, SaysWhyAPlanDoesNotFit) {
  Reported made = reported();
  made.outlook.fits = false;

  const Shown shown = open_page(
      html_of({.title = "a plan",
               .plan_json = to_json(PlanRecord{.plan = made.plan,
                                               .outlook = made.outlook,
                                               .shown = made.shown,
                                               .refusal = "error: a <reason>\ntry:   a change"})}));

  expect_sound(shown);
  EXPECT_THAT(shown.page, HasSubstr(">it does not fit<"));
  EXPECT_THAT(shown.page, HasSubstr("<pre>error: a &lt;reason&gt;\ntry:   a change</pre>"));
}

TEST_F(Browser, NamesTheOperationUnderThePointer) {
  const Reported made = reported();

  const Shown shown = open_page(html_of({.title = "a plan", .plan_json = plan_json_of(made)}), R"(
    const view = data.plan.view;
    const span = view.laneSpans[0].spans[100];
    view.setAxis(false);
    view.show(span - 20, span + 20);
    const svg = view.lanes.svg.node();
    svg.scrollIntoView();
    const box = svg.getBoundingClientRect();
    svg.dispatchEvent(new MouseEvent("mousemove", {clientX: box.left + view.scale(box.width)(span + 0.5),
                                                   clientY: box.top + 12, bubbles: true}));
    const named = tip.element.textContent.startsWith(view.opOf(span).name);
    document.documentElement.dataset.hovered = named ? "the operation" : tip.element.textContent;)");

  expect_sound(shown);
  EXPECT_THAT(shown.page, HasSubstr("data-hovered=\"the operation\""));
}

TEST_F(Browser, ShowsARunAndBoth) {
  const std::string run = run_json();

  const Shown alone = open_page(html_of({.title = "a run", .run_json = run}));
  expect_sound(alone);
  EXPECT_THAT(alone.page, HasSubstr("2 of 3"));
  EXPECT_THAT(alone.page, HasSubstr("4.125"));
  EXPECT_THAT(alone.page, HasSubstr("100.39%"));
  EXPECT_THAT(alone.page, HasSubstr("no end is written"));
  // Learning rates from 4e-4 to 2e-3: an axis has one way to write its numbers.
  EXPECT_THAT(alone.page, HasSubstr(">1e-3<"));
  EXPECT_THAT(alone.page, Not(HasSubstr(">0.001<")));

  const Shown both =
      open_page(html_of({.title = "both", .plan_json = plan_json_of(reported()), .run_json = run}),
                "setTheme('dark'); dispatchEvent(new Event('resize'));");
  expect_sound(both);
  EXPECT_THAT(both.page, HasSubstr("peak-dot"));
  EXPECT_THAT(both.page, HasSubstr("the plan of this page is not the one that the run had"));
}

TEST_F(Browser, DrawsAHundredThousandOperations) {
  const Reported made = reported(100'000);
  ASSERT_GE(made.shown.timeline.spans.size(), 100'000u);
  const auto& peak = *render::largest_peak(made.plan, plan::MemorySpace::device);

  // Far out, close in, and a hover anywhere: the peak stays where it is.
  const Shown shown = open_page(html_of({.title = "long", .plan_json = plan_json_of(made)}), R"(
    const view = data.plan.view;
    for (let i = 0; i < 5; ++i) view.zoom(0.5);
    view.showPart(null);
    view.setAxis(false);
    view.showPart(null);
    const svg = view.memory[0].svg.node();
    const box = svg.getBoundingClientRect();
    const dot = svg.querySelector(".peak-dot");
    svg.dispatchEvent(new MouseEvent("mousemove", {clientX: box.left + Number(dot.getAttribute("cx")),
                                                   clientY: box.top + 200, bubbles: true}));
    document.documentElement.dataset.hovered = tip.element.textContent;)");

  expect_sound(shown);
  EXPECT_THAT(shown.page, HasSubstr("peak " + format_bytes(peak.size_bytes) + " · "));
  EXPECT_THAT(shown.page, ContainsRegex("data-hovered=\"" + format_bytes(peak.size_bytes) + " .*" +
                                        format_count(peak.size_bytes) + " bytes"));
}

TEST_F(Browser, AWatchedPageTakesWhatIsNew) {
  const std::string run = run_json();
  RunFolder folder = value_of(RunFolder::open(files_, (folder_ / "run").string()));
  std::atomic<int> asked = 0;
  const Server server = value_of(Server::start(
      {.page = [&] { return html_of({.title = "a run", .run_json = run, .is_live = true}); },
       .figures =
           [&] {
             if (++asked == 2)
               test::write_text(
                   folder_ / "run/events.jsonl",
                   "{\"event\":\"step\",\"time\":3,\"step\":2,\"loss\":3.0625,\"lr\":0.002}\n"
                   "{\"event\":\"finish\",\"time\":4,\"step\":2}\n");
             folder.refresh();
             return live_json(to_json(folder.record()));
           }}));

  const Shown shown = open(fmt::format("http://127.0.0.1:{}/", server.port()));

  expect_sound(shown);
  EXPECT_THAT(shown.page, HasSubstr("3.063"));
  EXPECT_THAT(shown.page, HasSubstr("data-state=\"finished\""));
  EXPECT_GE(asked, 2);
}

}  // namespace
}  // namespace underkeel::report
