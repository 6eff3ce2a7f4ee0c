// The picture of a plan: phases, the memory of every space, and the lanes, over one axis that is either
// forecast time or the order of operations.

const leftMargin = 86;
const rightMargin = 14;

class PlanPicture {
  constructor(plan) {
    this.plan = plan;
    this.spanCount = plan.spans.begin.length;
    this.end = d3.max(plan.spans.end) || 1;
    this.inTime = true;
    this.curves = plan.spaces.map((space) => ({
      time: new MemoryCurve(plan, space, true), order: new MemoryCurve(plan, space, false)}));
    this.laneSpans = this.spansByLane();
    this.phases = picture(50);
    this.memory = plan.spaces.map((space, i) => picture(i === 0 ? 250 : 110));
    this.lanes = picture(plan.lanes.length * 28 + 8);
    this.axis = picture(26);
    this.all = [this.phases, ...this.memory, this.lanes, this.axis];
    this.begin = 0;
    this.finish = 1;
    this.showUseful();
    this.listen();
    drawings.add(() => this.draw());
  }

  // --- the axis

  whole() { return [0, this.inTime ? this.end : this.spanCount]; }
  positionOf(span) { return this.inTime ? this.plan.spans.end[span] : span + 0.5; }
  rangeOf(segments) {
    return this.inTime ? [d3.min(segments, (s) => s.begin), d3.max(segments, (s) => s.end)]
                       : [segments[0].first, d3.max(segments, (s) => s.first + s.count)];
  }
  show(begin, finish) {
    const [first, last] = this.whole();
    const least = this.inTime ? Math.max((last - first) * 1e-7, 1) : 4;
    const width = Math.min(Math.max(finish - begin, least), last - first);
    this.begin = Math.min(Math.max(begin, first), last - width);
    this.finish = this.begin + width;
    this.draw();
  }
  showPart(part) {
    const chosen = part === null ? null : this.plan.segments.filter((s) => s.part === part);
    this.show(...(chosen === null || chosen.length === 0 ? this.whole() : this.rangeOf(chosen)));
  }
  /** Both steps: loading takes long and shows little. Of a save that takes many steps only the beginning. */
  showUseful() {
    const steps = this.plan.segments.filter((s) => s.part.startsWith("a step"));
    const [begin, last] = steps.length > 0 ? this.rangeOf(steps) : this.whole();
    const first = this.plan.segments.filter((s) => s.part === "a step");
    const alone = first.length > 0 ? this.rangeOf(first)[1] - begin : last - begin;
    const finish = Math.min(last, begin + 3.5 * alone);
    const room = (finish - begin) * 0.01;
    this.show(begin - room, finish + room);
  }
  setAxis(inTime) {
    this.inTime = inTime;
    this.showUseful();
  }
  showPeak(space) {
    const span = this.plan.spaces[space].peak.span;
    if (span === null) return;
    const segment = this.segmentOf(span);
    const [begin, finish] = this.rangeOf([segment]);
    const at = this.positionOf(span);
    const width = (finish - begin) / 8;
    this.show(at - width / 2, at + width / 2);
  }
  scale(width) {
    return d3.scaleLinear().domain([this.begin, this.finish]).range([leftMargin, width - rightMargin]);
  }
  axisText(value) { return this.inTime ? timeText(value) : "operation " + countText(Math.floor(value)); }

  // --- operations

  spansByLane() {
    const lanes = this.plan.lanes.map(() => ({spans: []}));
    for (const segment of this.plan.segments) {
      const list = this.plan.lists[segment.list];
      for (let i = 0; i < segment.count; ++i)
        if (list.work[i] !== 5) lanes[list.lane[i]].spans.push(segment.first + i);
    }
    for (const lane of lanes) lane.begin = Float64Array.from(lane.spans, (span) => this.plan.spans.begin[span]);
    return lanes;
  }
  segmentOf(span) {
    return this.plan.segments[d3.bisectRight(this.plan.segments.map((s) => s.first), span) - 1];
  }
  opOf(span) {
    const segment = this.segmentOf(span);
    const list = this.plan.lists[segment.list];
    const i = span - segment.first;
    return {segment, index: i, name: list.name[i], does: list.does[i], lane: list.lane[i], work: list.work[i],
            begin: this.plan.spans.begin[span], end: this.plan.spans.end[span]};
  }
  workOf(span) {
    const segment = this.lastSegment && span >= this.lastSegment.first &&
        span < this.lastSegment.first + this.lastSegment.count ? this.lastSegment : this.segmentOf(span);
    this.lastSegment = segment;
    return this.plan.lists[segment.list].work[span - segment.first];
  }

  // --- drawing

  draw() {
    if (!this.phases.box.isConnected) return;
    this.drawPhases();
    this.memory.forEach((_, i) => this.drawMemory(i));
    this.drawLanes();
    const {width} = this.axis.start();
    this.axis.svg.selectAll("text.of").data([0]).join("text").attr("class", "of").attr("x", leftMargin - 8).attr("y", 17)
        .attr("text-anchor", "end").text(this.inTime ? "time" : "operation");
    const x = this.scale(width);
    const axis = d3.axisBottom(x).tickValues(x.ticks(width / 130).filter((value) => x(value) < width - 30)).tickSizeOuter(0)
        .tickFormat((value) => this.inTime ? timeText(value) : countText(value));
    this.axis.svg.selectAll("g").data([0]).join("g").attr("class", "axis").call(axis);
  }

  drawPhases() {
    const {width} = this.phases.start();
    const x = this.scale(width);
    const clip = (value) => Math.min(Math.max(value, leftMargin), width - rightMargin);
    const row = (items, y, height, className, click) => {
      const shown = items.map((item) => ({...item, left: clip(x(item.range[0])), right: clip(x(item.range[1]))}))
          .filter((item) => item.right - item.left > 0.3);
      const groups = this.phases.svg.selectAll("g." + className).data(shown).join((enter) => {
        const g = enter.append("g");
        g.append("rect");
        g.append("text");
        return g;
      }).attr("class", (item) => className + " segment " + item.style).on("click", click);
      groups.select("rect").attr("x", (i) => i.left).attr("y", y).attr("height", height).attr("rx", 2)
          .attr("width", (i) => i.right - i.left);
      groups.select("text").attr("x", (i) => (i.left + i.right) / 2).attr("y", y + height / 2 + 4)
          .attr("text-anchor", "middle")
          .text((i) => [i.range[1] > this.finish && i.style === "save" ? i.name + " goes on ▶" : i.name, i.name.replace("micro-step ", "").replace(" of ", "/"), (/\d+/.exec(i.name) || [""])[0]]
                .find((text) => text.length * 6.4 < i.right - i.left - 4) || "");
    };
    const parts = Array.from(new Set(this.plan.segments.map((s) => s.part))).map((part) => {
      const segments = this.plan.segments.filter((s) => s.part === part);
      return {name: part, style: "part", range: this.rangeOf(segments)};
    });
    const segments = this.plan.segments.map((s) => ({
      name: s.name, range: this.rangeOf([s]), style: s.kind.replace(/\..*/, "")}));
    const zoom = (item) => this.show(...item.range);
    // A save runs on under the next step: drawn on a line of its own it does not hide that.
    row(parts, 1, 15, "part", zoom);
    row(segments.filter((s) => s.style !== "save"), 18, 15, "one", zoom);
    row(segments.filter((s) => s.style === "save"), 34, 15, "saving", zoom);
  }

  drawMemory(index) {
    const space = this.plan.spaces[index];
    const pane = this.memory[index];
    const curve = this.curves[index][this.inTime ? "time" : "order"];
    const {context, width, ratio} = pane.start();
    const x = this.scale(width);
    const top = 22;
    const budgetShown = space.budget_bytes !== null && space.budget_bytes <= space.arena_bytes * 1.5;
    const most = Math.max(space.arena_bytes, space.most_in_time.bytes, space.peak.bytes,
                          budgetShown ? space.budget_bytes : 0, 1);
    const y = d3.scaleLinear().domain([0, most]).range([pane.height - 3, top]);

    const pixels = Math.max(Math.round((width - leftMargin - rightMargin) * ratio), 1);
    const entries = curve.entriesByPixel(this.begin, this.finish, pixels);
    const zero = y(0) * ratio;
    const perByte = (pane.height - 3 - top) * ratio / most;
    for (const kind of kindOrder) {
      context.fillStyle = color("kind-" + kind);
      for (let pixel = 0; pixel < pixels;) {
        const entry = entries[pixel];
        let next = pixel + 1;
        while (next < pixels && entries[next] === entry) ++next;
        let below = 0;
        for (const other of kindOrder) {
          if (other === kind) break;
          below += curve.byKind[other][entry];
        }
        const size = curve.byKind[kind][entry];
        if (size > 0) context.fillRect(leftMargin * ratio + pixel, zero - (below + size) * perByte, next - pixel, size * perByte);
        pixel = next;
      }
    }

    const isNarrow = width < 560;  // the cards tell the budgets
    const svg = pane.svg;
    svg.selectAll("*:not(.cross)").remove();
    svg.append("text").attr("class", "name").attr("x", leftMargin).attr("y", 14).text(
        space.name + ": " + bytesText(space.arena_bytes) +
        (space.budget_bytes === null || isNarrow ? "" : " of " + bytesText(space.budget_bytes)));
    for (const tick of byteTicks(most, pane.height / 50))
      svg.append("text").attr("x", leftMargin - 8).attr("y", Math.min(y(tick) + 4, pane.height - 3)).attr("text-anchor", "end").text(bytesText(tick));
    const level = (size, className) => svg.append("line").attr("class", className).attr("x1", leftMargin)
        .attr("x2", width - rightMargin).attr("y1", y(size)).attr("y2", y(size));
    level(space.arena_bytes, "limit");
    let end = width - 4;  // of the words over the picture
    if (budgetShown) {
      level(space.budget_bytes, "budget-ground");
      level(space.budget_bytes, "budget");
    }
    if (budgetShown && !isNarrow) {
      const words = svg.append("text").attr("class", "budget-label").attr("x", width - rightMargin).attr("y", y(space.budget_bytes) - 3).attr("text-anchor", "end")
          .text("allowed " + bytesText(space.budget_bytes));
      if (y(space.budget_bytes) < top + 14) end -= words.node().getComputedTextLength() + 22;
    }
    this.markSaves(svg, x, top, pane.height);
    this.markPeak(svg, space, x, y, width, end);
  }

  markSaves(svg, x, top, bottom) {
    for (const segment of this.plan.segments) {
      if (segment.kind !== "save") continue;
      for (const edge of this.rangeOf([segment])) {
        if (edge < this.begin || edge > this.finish) continue;
        svg.append("line").attr("class", "save-mark").attr("x1", x(edge)).attr("x2", x(edge)).attr("y1", top).attr("y2", bottom);
      }
    }
  }

  markPeak(svg, space, x, y, width, end) {
    const {peak} = space;
    if (peak.span === null) return;
    // The longest that there is room for.
    const size = "peak " + bytesText(peak.bytes);
    const texts = space.at.length === 0 ? ["the same for the whole run", "all through", ""] :
        [size + " · " + peak.name + " · " + peak.segment, size + " · " + peak.name, size, bytesText(peak.bytes), ""];
    const at = x(this.positionOf(peak.span));
    const level = y(peak.bytes);
    const inside = at >= leftMargin && at <= width - rightMargin;
    const label = svg.append("text").attr("class", "peak-label").attr("y", 14);
    const words = svg.select("text.name").node().getComputedTextLength();
    const begin = leftMargin + words + 16;
    const fill = (around) => texts.some((text) => label.text(around(text)).node().getComputedTextLength() <= end - begin);
    if (space.at.length === 0) {
      label.attr("class", "").attr("x", begin);
      fill((text) => text);
      return;
    }
    if (!inside) {
      const before = at < leftMargin;
      fill((text) => before ? "◀ " + text : text + " ▶");
      label.attr("x", before ? begin : end).attr("text-anchor", before ? "start" : "end");
      return;
    }
    svg.append("line").attr("class", "peak-line").attr("x1", at).attr("x2", at).attr("y1", 18).attr("y2", y(0));
    svg.append("circle").attr("class", "peak-dot").attr("cx", at).attr("cy", level).attr("r", 5);
    // Beside the space's own words, over the mark where there is room.
    fill((text) => text);
    const most = end - label.node().getComputedTextLength();
    label.attr("x", Math.max(begin, Math.min(at - 4, most)));
  }

  drawLanes() {
    const {context, width, ratio} = this.lanes.start();
    const x = this.scale(width);
    const height = 20 * ratio;
    this.plan.lanes.forEach((name, lane) => {
      const {spans, begin} = this.laneSpans[lane];
      const top = (6 + lane * 28) * ratio;
      context.fillStyle = color("faint");
      context.fillRect(leftMargin * ratio, top, (width - leftMargin - rightMargin) * ratio, height);
      const first = Math.max((this.inTime ? d3.bisectRight(begin, this.begin) : d3.bisectLeft(spans, this.begin)) - 1, 0);
      // What is narrower than a pixel fills the pixel once, in the colour of the first one there.
      let filled = -Infinity;
      for (let i = first; i < spans.length; ++i) {
        const from = this.inTime ? begin[i] : spans[i];
        if (from > this.finish) break;
        const to = this.inTime ? this.plan.spans.end[spans[i]] : from + 1;
        if (to < this.begin || (to === from && this.inTime)) continue;
        const left = Math.max(x(from), leftMargin) * ratio;
        const right = Math.min(x(to), width - rightMargin) * ratio;
        if (right <= filled) continue;
        const drawn = Math.max(left, filled);
        const end = Math.max(right, Math.floor(drawn) + 1);
        context.fillStyle = this.workColors[this.workOf(spans[i])];
        context.fillRect(drawn, top, end - drawn - (right - left > 4 * ratio ? 0.6 * ratio : 0), height);
        filled = end;
      }
    });
    const labels = this.lanes.svg.selectAll("text").data(this.plan.lanes).join("text");
    labels.attr("x", leftMargin - 8).attr("y", (_, lane) => 20 + lane * 28).attr("text-anchor", "end").text((name) => name);
  }
  get workColors() { return this.plan.works.map((_, i) => color("work-" + i)); }
}
