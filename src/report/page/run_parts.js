// What a run's folder says besides its curves: its state, planned and measured memory, saves, remarks.

const lastOf = (list) => list.length > 0 ? list[list.length - 1] : null;

function runCards(run) {
  const cards = [];
  const step = lastOf(run.steps.step);
  if (step !== null)
    cards.push(card(countText(step) + (run.total_steps ? " of " + countText(run.total_steps) : ""), "steps", run.total_steps ? step / run.total_steps : undefined));
  const loss = lastOf(run.steps.loss);
  if (loss !== null) cards.push(card(numberText(loss), "last loss"));
  const heldOut = lastOf(run.evaluations.loss);
  if (heldOut !== null) cards.push(card(numberText(heldOut), "last held-out loss, step " + countText(lastOf(run.evaluations.step))));
  const speed = lastOf(run.steps.tokens_per_s);
  if (speed !== null) cards.push(card(numberText(speed), "tokens a second"));
  // Of a run that has ended memory.json says more.
  if ((!run.memory || run.state !== "finished") && run.process.measured !== null)
    cards.push(card(bytesText(run.process.measured), "resident in the process" +
                    (run.process.planned === null ? "" : ", planned at most " + bytesText(run.process.planned)),
                    run.process.planned > 0 ? run.process.measured / run.process.planned : undefined));
  if (run.memory) {
    const rank = run.memory.ranks[0];
    for (const space of rank.spaces)
      cards.push(card(bytesText(space.measured), "measured in " + space.name + ", planned " + bytesText(space.planned),
                      space.planned > 0 ? space.measured / space.planned : undefined));
  }
  return cards;
}

function statePill(run) {
  if (run.state === "finished") return el("span", {class: "pill good", "data-state": "finished"}, "finished");
  if (run.state === "stopped") return el("span", {class: "pill warn", "data-state": "stopped"}, "stopped" + (run.stop_reason ? ": " + run.stop_reason : ""));
  if (run.state === "unfinished") return el("span", {class: "pill warn", "data-state": "unfinished"}, live ? "running" : "no end is written: running, or killed");
  return null;
}

/** Whether the plan beside the run is the one that it had: their arenas are compared. */
function otherPlanRemark(plan, run) {
  if (!plan || !run || !run.memory) return [];
  return plan.spaces.flatMap((space) => {
    const had = run.memory.ranks[0].spaces.find((s) => s.name === space.name);
    if (!had || had.planned === null || had.planned === space.arena_bytes) return [];
    return ["the plan of this page is not the one that the run had: " + bytesText(space.arena_bytes) + " in " + space.name +
            " here, " + bytesText(had.planned) + " there (" + countText(space.arena_bytes - had.planned) + " bytes apart): it is another run file, or changes, ranks or data (--data) of the run are missing"];
  });
}

function memoryPanel(run) {
  if (!run.memory) return null;
  const rows = [];
  const bar = (planned, measured) => {
    if (planned === null || measured === null) return "";
    const whole = Math.max(planned, measured);
    return el("div", {class: "stack", title: "measured of planned"},
        el("i", {style: "width:" + 100 * measured / whole + "%;background:var(--" + (measured > planned * 1.01 ? "bad" : "accent") + ")"}));
  };
  const add = (name, both) => rows.push([name, bytesText(both.planned), bytesText(both.measured),
      both.planned && both.measured !== null ? (100 * both.measured / both.planned).toFixed(2) + "%" : "-", bar(both.planned, both.measured)]);
  for (const rank of run.memory.ranks) {
    for (const space of rank.spaces) add("rank " + rank.rank + ", " + space.name, space);
  }
  for (const rank of run.memory.ranks)
    if (rank.ranks_in_process === 1 || rank === run.memory.ranks[0])
      add(rank.ranks_in_process === 1 ? "rank " + rank.rank + ", its process" : "process of " + rank.ranks_in_process + " ranks", rank.process);
  const columns = [{name: "", kind: "name"}, {name: "planned", number: true}, {name: "measured", number: true},
                   {name: "", number: true}, {name: "measured of planned", kind: "bar"}];
  const segments = [];
  for (const rank of run.memory.ranks)
    for (const space of rank.spaces)
      for (const one of space.by_segment)
        if (one.measured > 0 || one.planned > 0)
          segments.push(["rank " + rank.rank, space.name, one.segment, bytesText(one.planned), one.measured > 0 ? bytesText(one.measured) : "did not run"]);
  const events = run.memory.events.map((e) => [countText(e.step), e.what, "rank " + e.rank, e.space, bytesText(e.before), bytesText(e.during), bytesText(e.after)]);
  return panel("measured", el("h2", {}, "Memory, planned and measured"), el("div", {style: "margin-top:8px"}, table(columns, rows)),
      el("div", {class: "hint", style: "margin:6px 0"}, "Measured from outside: resident pages of the arena, and the most that the process ever had. " +
         "An arena is measured in whole pages; a process is planned with a margin."),
      segments.length === 0 ? null : el("details", {}, el("summary", {}, "by phase"), el("div", {class: "scroll"},
          table([{name: "rank", kind: "name"}, {name: "space"}, {name: "phase"}, {name: "planned", number: true}, {name: "measured", number: true}], segments))),
      events.length === 0 ? null : el("details", {open: events.length <= 12 ? "" : null}, el("summary", {}, "around saves, evaluations and resumes"),
          el("div", {class: "scroll"}, table([{name: "step", number: true}, {name: "what"}, {name: "rank", kind: "name"}, {name: "space"},
              {name: "before", number: true}, {name: "most during", number: true}, {name: "after", number: true}], events))));
}

function savePanel(run) {
  if (run.saves.length === 0) return null;
  return panel("saves", el("h2", {}, "Saves"), el("div", {class: "scroll", style: "margin-top:8px"}, table(
      [{name: "step", number: true}, {name: "folder"}, {name: "size", number: true}, {name: "took", number: true}, {name: "training waited", number: true}],
      run.saves.map((save) => save.complete ?
          [countText(save.step), save.folder, bytesText(save.bytes), numberText(save.elapsed_s) + " s", numberText(save.waited_s) + " s"] :
          [countText(save.step), save.folder, "not complete", "", ""]))));
}

function remarkPanel(remarks) {
  return remarks.length === 0 ? null :
      panel("remarks", el("h2", {}, "Missing or not as it should be"), el("ul", {class: "plain", style: "margin-top:6px"}, remarks.map((text) => el("li", {}, text))));
}
