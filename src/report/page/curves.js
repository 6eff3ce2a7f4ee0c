// Curves of a run over its steps: loss, learning rate, gradient norm, tokens a second.

class StepChart {
  /** `lines`: {name, color, step, values, dots}. `marks`: steps of saves. */
  constructor(title, lines, marks) {
    this.title = title;
    this.lines = lines.map((line) => this.known(line)).filter((line) => line.values.length > 0);
    this.marks = marks;
    this.pane = picture(190);
    const node = this.pane.svg.node();
    node.addEventListener("mousemove", (event) => this.move(event));
    node.addEventListener("mouseleave", () => {
      tip.hide();
      this.pane.svg.selectAll(".cross").remove();
    });
  }
  known(line) {
    const kept = d3.range(line.values.length).filter((i) => line.values[i] !== null);
    return {...line, step: kept.map((i) => line.step[i]), values: kept.map((i) => line.values[i])};
  }
  get isEmpty() { return this.lines.length === 0; }

  draw() {
    if (!this.pane.box.isConnected) return;
    const {context, width, ratio} = this.pane.start();
    const steps = d3.extent(this.lines.flatMap((line) => [line.step[0], line.step[line.step.length - 1]]));
    const values = d3.extent(this.lines.flatMap((line) => d3.extent(line.values)));
    const span = values[1] - values[0] || Math.abs(values[1]) || 1;
    const low = values[0] >= 0 ? Math.max(0, values[0] - 0.06 * span) : values[0] - 0.06 * span;
    this.x = d3.scaleLinear().domain(steps[0] === steps[1] ? [steps[0] - 1, steps[1] + 1] : steps).range([58, width - 24]);
    this.y = d3.scaleLinear().domain([low, values[1] + 0.06 * span]).range([this.pane.height - 24, 24]);
    const svg = this.pane.svg;
    svg.selectAll("*:not(.cross)").remove();
    svg.append("g").attr("class", "axis").attr("transform", "translate(0," + (this.pane.height - 24) + ")")
        .call(d3.axisBottom(this.x).ticks(Math.max(2, width / 110)).tickSizeOuter(0).tickFormat((v) => Number.isInteger(v) ? countText(v) : ""));
    // An axis has powers at all of its numbers or at none.
    const powers = this.y.ticks(5).some(hasPower);
    svg.append("g").attr("class", "axis").attr("transform", "translate(58,0)")
        .call(d3.axisLeft(this.y).ticks(5).tickSizeOuter(0).tickFormat((v) => powers && v !== 0 ? powerText(v) : numberText(v)));
    svg.append("text").attr("class", "name").attr("x", 58).attr("y", 14).text(this.title);
    let at = width - 12;
    for (const line of this.lines.slice().reverse()) {
      if (this.lines.length < 2) break;
      svg.append("text").attr("x", at).attr("y", 14).attr("text-anchor", "end").text(line.name).style("fill", color(line.color));
      at -= line.name.length * 7 + 16;
    }
    for (const mark of this.marks)
      if (mark >= steps[0] && mark <= steps[1])
        svg.append("line").attr("class", "save-mark").attr("x1", this.x(mark)).attr("x2", this.x(mark))
            .attr("y1", this.pane.height - 34).attr("y2", this.pane.height - 24);
    context.scale(ratio, ratio);
    for (const line of this.lines) this.drawLine(context, line, width);
  }

  /** Of the points on one pixel the first, lowest, highest and last are joined. */
  drawLine(context, line, width) {
    context.strokeStyle = context.fillStyle = color(line.color);
    context.lineWidth = 1.6;
    context.lineJoin = "round";
    context.beginPath();
    let pixel = null;
    let low, high, last;
    const flush = () => {
      if (pixel === null) return;
      for (const value of [low, high, last]) context.lineTo(pixel, this.y(value));
    };
    line.step.forEach((step, i) => {
      const here = line.step.length > 2 * width ? Math.round(this.x(step)) : this.x(step);
      const value = line.values[i];
      if (here === pixel) {
        low = Math.min(low, value);
        high = Math.max(high, value);
      } else {
        flush();
        pixel = here;
        low = high = value;
        context.lineTo(here, this.y(value));
      }
      last = value;
    });
    flush();
    context.stroke();
    if (line.dots || line.step.length === 1)
      line.step.forEach((step, i) => {
        context.beginPath();
        context.arc(this.x(step), this.y(line.values[i]), 3, 0, 7);
        context.fill();
      });
  }

  move(event) {
    if (!this.x) return;
    const box = this.pane.svg.node().getBoundingClientRect();
    const step = this.x.invert(event.clientX - box.left);
    const nearest = this.lines.map((line) => {
      const right = Math.min(d3.bisectLeft(line.step, step), line.step.length - 1);
      const i = right > 0 && step - line.step[right - 1] < line.step[right] - step ? right - 1 : right;
      return {line, step: line.step[i], value: line.values[i]};
    });
    const cross = this.pane.svg.selectAll(".cross").data([0]).join("line").attr("class", "cross");
    const at = this.x(nearest[0].step);
    cross.attr("x1", at).attr("x2", at).attr("y1", 20).attr("y2", this.pane.height - 24);
    tip.show(event, el("table", {}, nearest.map(({line, step: of, value}) => el("tr", {},
        el("td", {}, swatch(line.color), line.name), el("td", {class: "number"}, el("b", {}, String(value))),
        el("td", {class: "soft"}, "step " + countText(of))))));
  }
}

function curvePanel(run) {
  const {steps, evaluations} = run;
  const marks = run.saves.map((save) => save.step);
  const one = (title, name) => new StepChart(title, [{name: title, color: "train", step: steps.step, values: steps[name]}], marks);
  const charts = [
    new StepChart("loss", [{name: "training", color: "train", step: steps.step, values: steps.loss},
                           {name: "held out", color: "held-out", step: evaluations.step, values: evaluations.loss, dots: true}], marks),
    one("learning rate", "learning_rate"), one("gradient norm", "gradient_norm"), one("tokens a second", "tokens_per_s"),
  ].filter((chart) => !chart.isEmpty);
  if (charts.length === 0) return null;
  const kept = steps.step.length < run.step_count ? "; of " + countText(run.step_count) + " steps lows and highs of neighbours, " +
      countText(steps.step.length) + " points" : "";
  const made = panel("curves", el("div", {class: "row"}, el("h2", {}, "Curves"),
      el("span", {class: "hint"}, "from " + run.curve_source + ", by step" + kept + (marks.length > 0 ? "; dashes: saves" : ""))),
      el("div", {class: "charts"}, charts.map((chart) => chart.pane.box)));
  for (const chart of charts) {
    const draw = () => chart.draw();
    drawings.add(draw);
    made.runDrawings = (made.runDrawings || []).concat(draw);
  }
  return made;
}
