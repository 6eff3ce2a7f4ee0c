// Puts the page together, and keeps it up to date while a run is watched.

const problems = [];
addEventListener("error", (event) => {
  problems.push(event.message);
  document.documentElement.dataset.problems = problems.join("; ");
});

const data = JSON.parse(document.getElementById("data").textContent);
const live = data.live;

function header(plan, run) {
  const verdict = plan === null ? null :
      el("span", {class: "pill " + (plan.fits ? "good" : "bad"), "data-fits": plan.fits}, plan.fits ? "it fits" : "it does not fit");
  return el("header", {}, el("h1", {}, data.title, el("small", {}, [plan && plan.model, run && plan ? run.folder : null].filter((text) => text).join(" · "))), verdict,
      run === null ? null : statePill(run), el("span", {class: "spacer"}),
      el("span", {class: "hint", id: "age"}), el("span", {class: "hint"}, data.made),
      el("button", {onclick: () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark")}, "light / dark"));
}

function runParts(plan, run) {
  if (run === null) return [];
  return [remarkPanel(otherPlanRemark(plan, run).concat(run.remarks)), curvePanel(run), memoryPanel(run), savePanel(run),
          run.notices.length === 0 ? null : panel("notices", el("h2", {}, "Notices of the run"), el("ul", {class: "plain"}, run.notices.map((text) => el("li", {}, text))))];
}

/** Parts that change while a run is watched have a place of their own each. */
const places = {top: el("div", {}), run: el("div", {}), runValues: el("div", {})};

function fillRun(plan, run) {
  for (const part of places.run.children) for (const draw of part.runDrawings || []) drawings.delete(draw);
  places.top.replaceChildren(header(plan, run),
      el("div", {class: "cards"}, plan ? planCards(plan) : [], run ? runCards(run) : []));
  places.run.replaceChildren(...runParts(plan, run).filter((part) => part !== null));
}

function build() {
  const began = performance.now();
  const {plan, run} = data;
  const memory = run && run.memory;
  fillRun(plan, run);
  const parts = [places.top, plan ? refusalPanel(plan) : null, plan ? planPanel(plan) : null, plan ? peakPanel(plan) : null, plan ? phasePanel(plan, memory) : null,
                 places.run, plan ? decisionPanel(plan) : null,
                 plan ? valuePanel("values", "Values in force, planned", plan.values) : null,
                 run ? valuePanel("run-values", "Values in force in the run", run.values) : null];
  document.getElementById("page").replaceChildren(...parts.filter((part) => part !== null));
  redrawAll();
  document.documentElement.dataset.buildMs = (performance.now() - began).toFixed(0);
  document.documentElement.dataset.state = "ready";
}

let shownText = "";
async function follow() {
  const age = document.getElementById("age");
  try {
    const answer = await fetch("report.json", {cache: "no-store"});
    if (!answer.ok) throw new Error("the server answers " + answer.status);
    const text = await answer.text();
    if (text !== shownText) {
      shownText = text;
      data.run = JSON.parse(text).run;
      fillRun(data.plan, data.run);
      redrawAll();
      document.documentElement.dataset.updates = Number(document.documentElement.dataset.updates || 0) + 1;
    }
    const last = data.run.last_event_s;
    document.getElementById("age").textContent = last > 0 ? "last event " + Math.max(0, Math.round(Date.now() / 1000 - last)) + " s ago" : "";
  } catch (error) {
    if (age) age.textContent = "not connected: " + error.message;
  }
  setTimeout(follow, 2000);
}

build();
if (live) follow();
