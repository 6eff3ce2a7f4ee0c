// What the pointer does on the picture of a plan: it names what lies under it, drags, zooms.

Object.assign(PlanPicture.prototype, {
  listen() {
    for (const pane of this.all) {
      const node = pane.svg.node();
      node.addEventListener("mousemove", (event) => this.move(event, pane));
      node.addEventListener("mouseleave", () => this.leave());
      node.addEventListener("dblclick", () => this.showPart(null));
      node.addEventListener("mousedown", (event) => this.drag(event, node));
      node.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;  // else the page scrolls
        event.preventDefault();
        this.zoom(Math.pow(1.0018, event.deltaY), this.valueAt(event, node));
      }, {passive: false});
    }
  },

  valueAt(event, node) {
    const box = node.getBoundingClientRect();
    return this.scale(box.width).invert(event.clientX - box.left);
  },
  zoom(factor, around) {
    const middle = around === undefined ? (this.begin + this.finish) / 2 : around;
    this.show(middle - (middle - this.begin) * factor, middle + (this.finish - middle) * factor);
  },
  drag(event, node) {
    if (event.button !== 0) return;
    event.preventDefault();
    const from = event.clientX;
    const [begin, finish] = [this.begin, this.finish];
    const perPixel = (finish - begin) / (node.getBoundingClientRect().width - leftMargin - rightMargin);
    const move = (now) => {
      const by = (from - now.clientX) * perPixel;
      this.show(begin + by, finish + by);
    };
    const stop = () => {
      removeEventListener("mousemove", move);
      removeEventListener("mouseup", stop);
    };
    addEventListener("mousemove", move);
    addEventListener("mouseup", stop);
  },
  leave() {
    tip.hide();
    for (const pane of this.all) pane.svg.selectAll(".cross").remove();
  },

  move(event, pane) {
    const box = pane.svg.node().getBoundingClientRect();
    const value = this.valueAt(event, pane.svg.node());
    if (value < this.begin || value > this.finish) return this.leave();
    for (const other of this.all) {
      const line = other.svg.selectAll(".cross").data([0]).join("line").attr("class", "cross");
      line.attr("x1", event.clientX - box.left).attr("x2", event.clientX - box.left).attr("y1", 0).attr("y2", other.height);
    }
    const y = event.clientY - box.top;
    const space = this.memory.indexOf(pane);
    if (space >= 0) return tip.show(event, this.memoryWords(space, value, y));
    if (pane === this.lanes) return tip.show(event, this.laneWords(value, y));
    const around = this.plan.segments.filter((s) => {
      const [begin, end] = this.rangeOf([s]);
      return value >= begin && value <= end;
    });
    tip.show(event, el("b", {}, this.axisText(value)), around.map((s) => el("div", {}, s.part + ": " + s.name + " ",
        el("span", {class: "soft"}, s.kind + ", " + timeText(s.end - s.begin) + ", " + countText(s.count) + " operations"))));
  },

  memoryWords(index, value, y) {
    const space = this.plan.spaces[index];
    const curve = this.curves[index][this.inTime ? "time" : "order"];
    const pane = this.memory[index];
    // The peak is easy to hit: near its mark its own entry is shown, as it is drawn.
    const width = pane.svg.node().getBoundingClientRect().width - leftMargin - rightMargin;
    const pixel = (this.finish - this.begin) / width;
    const entries = curve.entriesByPixel(value - pixel / 2, value + pixel / 2, 1);
    const entry = entries[0];
    const span = curve.spanOf(entry);
    const {buffers, kinds} = this.plan;
    const most = Math.max(space.arena_bytes, space.most_in_time.bytes, space.peak.bytes,
                          space.budget_bytes !== null && space.budget_bytes <= space.arena_bytes * 1.5 ? space.budget_bytes : 0, 1);
    const under = (pane.height - 3 - y) / (pane.height - 25) * most;
    let below = 0;
    const kind = kindOrder.find((k) => (below += curve.byKind[k][entry]) > under);
    const alive = curve.aliveAt(entry);
    const shown = (kind === undefined ? alive : alive.filter((id) => buffers.kind[id] === kind)).slice(0, 8);
    const rest = alive.length - shown.length;
    return [
      el("b", {}, exactBytes(curve.total[entry])), el("span", {class: "soft"}, " in " + space.name + ", " + this.axisText(value)),
      span === null ? null : el("div", {class: "soft"}, "since " + this.opOf(span).name + " · " + this.opOf(span).segment.name),
      el("table", {}, kindOrder.filter((k) => curve.byKind[k][entry] > 0).map((k) => el("tr", {},
          el("td", {}, swatch("kind-" + k), k === kind ? el("b", {}, kinds[k]) : kinds[k]),
          el("td", {class: "number"}, bytesText(curve.byKind[k][entry]))))),
      el("div", {class: "soft", style: "margin-top:4px"}, kind === undefined ? "largest buffers" : "largest buffers of " + kinds[kind]),
      el("table", {}, shown.map((id) => el("tr", {}, el("td", {}, buffers.name[id]), el("td", {class: "number"}, bytesText(buffers.bytes[id]))))),
      rest > 0 ? el("div", {class: "soft"}, "and " + countText(rest) + " more buffers") : null,
    ];
  },

  laneWords(value, y) {
    const lane = Math.min(Math.max(Math.floor((y - 2) / 28), 0), this.plan.lanes.length - 1);
    const {spans, begin} = this.laneSpans[lane];
    const width = this.lanes.svg.node().getBoundingClientRect().width - leftMargin - rightMargin;
    const pixel = (this.finish - this.begin) / width;
    const endOf = (i) => this.inTime ? this.plan.spans.end[spans[i]] : spans[i] + 1;
    const beginOf = (i) => this.inTime ? begin[i] : spans[i];
    const found = [];
    const first = Math.max((this.inTime ? d3.bisectRight(begin, value - pixel) : d3.bisectLeft(spans, value - pixel)) - 1, 0);
    for (let i = first; i < spans.length && beginOf(i) <= value + pixel / 2; ++i)
      if (endOf(i) >= value - pixel / 2) found.push(spans[i]);
    if (found.length === 0)
      return [el("b", {}, this.plan.lanes[lane]), el("span", {class: "soft"}, " idle at " + this.axisText(value))];
    const longest = found.reduce((a, b) => this.plan.spans.end[b] - this.plan.spans.begin[b] >
        this.plan.spans.end[a] - this.plan.spans.begin[a] ? b : a);
    const op = this.opOf(longest);
    return [
      el("div", {}, swatch("work-" + op.work), el("b", {}, op.name)),
      el("div", {}, op.does),
      el("div", {class: "soft"}, this.plan.lanes[lane] + " · " + op.segment.name + " (" + op.segment.kind + ") · operation " +
          op.index + " · " + timeText(op.begin) + " + " + timeText(op.end - op.begin)),
      found.length > 1 ? el("div", {class: "soft"}, "and " + countText(found.length - 1) + " more within this pixel") : null,
    ];
  },
});
