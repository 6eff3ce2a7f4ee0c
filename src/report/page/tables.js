// The parts of the page that are words and bars: cards, phases, holders at the peak, decisions, values.

function card(value, caption, meter) {
  return el("div", {class: "card"}, el("b", {class: value.length > 13 ? "longer" : value.length > 11 ? "long" : null}, value),
            meter === undefined ? null : el("div", {class: "meter"}, el("i", {class: meter > 1 ? "over" : null, style: "width:" + Math.min(100, 100 * meter) + "%"})),
            el("span", {}, caption));
}

function panel(id, ...children) { return el("section", {class: "panel", id}, ...children); }

function planCards(plan) {
  const cards = plan.spaces.map((space) => card(
      bytesText(space.arena_bytes),
      "planned in " + space.name + (space.budget_bytes === null ? "" : " of " + bytesText(space.budget_bytes)),
      space.budget_bytes > 0 ? space.arena_bytes / space.budget_bytes : undefined));
  const {node, disk, times} = plan;
  if (node)
    cards.push(card(bytesText(node.bytes), "host memory of a node, at most" + (node.budget_bytes === null ? "" : ", of " + bytesText(node.budget_bytes)),
                    node.budget_bytes > 0 ? node.bytes / node.budget_bytes : undefined));
  if (disk)
    cards.push(card(bytesText(disk.bytes),
                    "wanted of the disk, at most" + (disk.free_bytes === null ? "" : ", of " + bytesText(disk.free_bytes) + " free"),
                    disk.free_bytes > 0 ? disk.bytes / disk.free_bytes : undefined));
  if (times) {
    cards.push(card(durationText(times.step_s), "a step, forecast"));
    if (times.save_s > 0)
      cards.push(card(durationText(times.save_s), "a save, forecast; " + durationText(times.save_wait_s) + " waited for"));
  }
  return cards.concat(plan.facts.map(([name, value]) => card(value, name)));
}

function kindLegend(plan) {
  return el("div", {class: "legend"}, kindOrder.filter((k) => plan.buffers.kind.includes(k)).map((k) =>
      el("span", {}, swatch("kind-" + k), plan.kinds[k])));
}
function workLegend(plan) {
  return el("div", {class: "legend"}, plan.works.slice(0, 5).map((name, i) => el("span", {}, swatch("work-" + i), name)));
}

function planPanel(plan) {
  const view = new PlanPicture(plan);
  plan.view = view;
  const parts = Array.from(new Set(plan.segments.map((s) => s.part)));
  const axes = el("span", {class: "buttons"});
  const axis = (inTime, name, title) => el("button", {"aria-pressed": String(inTime), title, onclick(event) {
    for (const other of axes.children) other.setAttribute("aria-pressed", String(other === event.target));
    view.setAxis(inTime);
  }}, name);
  axes.append(axis(true, "Time", "forecast time; lanes overlap"),
              axis(false, "Operations", "the order of the plan's list, in which its bytes are exact"));
  const zooms = el("span", {class: "buttons"},
      el("button", {onclick: () => view.showUseful()}, "steps"),
      parts.map((part) => el("button", {onclick: () => view.showPart(part)}, part)),
      el("button", {onclick: () => view.showPart(null)}, "everything"));
  const peaks = plan.spaces.map((space, i) => space.peak.span === null || space.at.length === 0 ? null :
      el("button", {onclick: () => view.showPeak(i)}, "peak of " + space.name));
  return panel("plan",
      el("div", {class: "row"}, el("h2", {}, "Memory and lanes, forecast"), el("span", {class: "spacer"}), kindLegend(plan)),
      el("div", {class: "row"}, axes, zooms, el("span", {class: "buttons"}, peaks),
         el("span", {class: "buttons"}, el("button", {title: "closer", onclick: () => view.zoom(0.5)}, "+"),
            el("button", {title: "farther", onclick: () => view.zoom(2)}, "−"))),
      view.all.map((pane) => pane.box),
      el("div", {class: "row", style: "margin:8px 0 0"}, el("span", {class: "hint"},
         "One rank. Point at something to name it; drag to move, Ctrl and wheel to zoom, double click for everything." +
         (plan.left_out ? " " + plan.left_out : "")),
         el("span", {class: "spacer"}), workLegend(plan)));
}

/** Why the plan does not fit, and what would. */
function refusalPanel(plan) {
  return plan.refusal === "" ? null : el("section", {class: "panel refusal", id: "refusal"}, el("h2", {}, "It does not fit"), el("pre", {}, plan.refusal));
}

/** What holds the bytes of each space at its peak. */
function peakPanel(plan) {
  return panel("peaks", el("h2", {}, "At the peak"), el("div", {class: "two"}, plan.spaces.map((space) => {
    const {peak} = space;
    const gaps = space.arena_bytes - peak.bytes;
    const rows = peak.holders.map((one) =>
        [[swatch("kind-" + one.kind), one.name + (one.count > 1 ? " × " + countText(one.count) : "")],
         plan.kinds[one.kind] + (one.always ? ", always" : ""), bytesText(one.bytes), (100 * one.bytes / peak.bytes).toFixed(1) + "%"]);
    if (peak.rest_count > 0)
      rows.push([countText(peak.rest_count) + " smaller ones", "", bytesText(peak.rest_bytes), (100 * peak.rest_bytes / peak.bytes).toFixed(1) + "%"]);
    return el("div", {}, el("h3", {"data-peak": space.name},
        space.name + ": " + exactBytes(peak.bytes) + (space.at.length === 0 ? " for the whole run" :
            " in " + peak.segment + ", operation " + peak.op + " " + peak.name)),
        kindStack(plan.kinds, peak.by_kind, peak.bytes),
        el("div", {class: "hint", style: "margin:6px 0"}, "The arena has " + exactBytes(space.arena_bytes) +
           (gaps > 0 ? ", " + bytesText(gaps) + " of it between buffers." : ".") +
           (space.most_in_time.bytes === peak.bytes ? "" : " In forecast time, in which lanes overlap, the most at once is " +
            bytesText(space.most_in_time.bytes) + ".")),
        table([{name: "held by"}, {name: "kind", kind: "name"}, {name: "size", number: true}, {name: "", number: true}], rows));
  })));
}

/** "micro.only, operation 174 acquire head.dlogits"; the segment alone where it never holds more than at its start. */
function momentText(one) {
  return one.op === 0 ? one.segment + ", all through" : one.segment + ", operation " + one.op + " " + one.name;
}

/** The peak of each phase and its moment, planned; with a run's memory also measured, of its first rank. */
function phasePanel(plan, memory) {
  const measuredOf = (space, segments) => {
    const rank = memory && memory.ranks[0];
    const found = rank && rank.spaces.find((s) => s.name === space);
    const most = d3.max(found ? found.by_segment.filter((s) => segments.includes(s.segment)) : [], (s) => s.measured);
    return most > 0 ? most : null;
  };
  return panel("phases", el("div", {class: "row"}, el("h2", {}, "By phase"), el("span", {class: "spacer"}), kindLegend(plan)),
      el("div", {class: "two"}, plan.spaces.map((space) => {
    const columns = [{name: "phase", kind: "name"}, {name: "peak", number: true}, {name: "held by, and when most is held", kind: "bar"}];
    if (memory) columns.splice(2, 0, {name: "measured", number: true});
    return el("div", {}, el("h3", {}, space.name), table(columns, space.by_phase.map((one) => {
      const cells = [one.phase, bytesText(one.bytes),
                     [kindStack(plan.kinds, one.by_kind, space.arena_bytes), el("div", {class: "moment"}, momentText(one))]];
      if (memory) cells.splice(2, 0, bytesText(measuredOf(space.name, one.segments)));
      return cells;
    })));
  })), memory ? el("div", {class: "hint"}, "Measured: the most that the operations of a phase held in the whole run, on rank " +
      memory.ranks[0].rank + ".") : null);
}

function decisionPanel(plan) {
  if (plan.decisions.length + plan.suggestions.length + plan.notes.length === 0) return null;
  return panel("decisions", el("h2", {}, "Decisions"),
      plan.decisions.map((d) => el("div", {class: "decision"}, el("b", {}, d.subject + " = " + d.value), " " + d.reason,
          d.alternatives.length === 0 ? null :
          el("ul", {}, d.alternatives.map(([value, effect]) => el("li", {}, value + (effect ? ": " + effect : "")))))),
      plan.suggestions.length === 0 ? null : el("div", {class: "decision"}, el("b", {}, "what would fit"),
          el("ul", {}, plan.suggestions.map((s) => el("li", {}, s.change + ": " +
              s.needs.map(([space, bytes]) => bytesText(bytes) + " in " + space).join(", ") + (s.effect ? ", " + s.effect : ""))))),
      plan.notes.map((note) => el("div", {class: "decision"}, "note: " + note)));
}

function valuePanel(id, title, values) {
  if (values.length === 0) return null;
  const chosen = values.filter(([, , source]) => source !== "default").length;
  const body = el("div", {class: "scroll"});
  const search = el("input", {type: "search", placeholder: "find a key or a value", "aria-label": "find a key or a value"});
  const fill = () => {
    const words = search.value.toLowerCase();
    body.replaceChildren(table([{name: "key", kind: "name"}, {name: "value"}, {name: "from"}],
        values.filter((row) => row.join(" ").toLowerCase().includes(words))));
  };
  search.addEventListener("input", fill);
  fill();
  return panel(id, el("details", {open: ""}, el("summary", {}, title),
      el("div", {class: "row"}, el("span", {class: "hint"}, countText(values.length) + " values, " + countText(chosen) + " of them chosen"),
         el("span", {class: "spacer"}), search), body));
}
