// Shared by all parts of the page: elements, words for figures, colours, the tip.

/** Makes an element; children are elements, texts, or null. */
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  return made;
}

/** "91.4 GiB": three figures in binary units, as everywhere in underkeel. */
function bytesText(size) {
  if (size === null || size === undefined) return "-";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  let value = size;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  if (unit === 0) return value + " B";
  return (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1)) + " " + units[unit];
}
const countText = d3.format(",");
function exactBytes(size) { return bytesText(size) + " (" + countText(size) + " bytes)"; }

/** Nanoseconds in words. */
function timeText(nanoseconds) {
  const seconds = nanoseconds / 1e9;
  if (seconds === 0) return "0 s";
  const [factor, unit] = Math.abs(seconds) >= 1 ? [1, "s"] : Math.abs(seconds) >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return +(seconds * factor).toPrecision(4) + " " + unit;
}
/** Seconds for a person who plans a day: "93.2 ms", "17.2 s", "18.4 min", "51.2 h". */
function durationText(seconds) {
  if (seconds < 90) return timeText(Math.round(seconds * 1e9));
  if (seconds < 5400) return +(seconds / 60).toPrecision(3) + " min";
  return seconds < 3600000 ? +(seconds / 3600).toPrecision(3) + " h" : countText(Math.round(seconds / 3600)) + " h";
}
function hasPower(value) {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e7);
}
function powerText(value) { return d3.format(".3~e")(value).replace("−", "-"); }
function numberText(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  if (hasPower(value)) return powerText(value);
  return size >= 1000 ? countText(Math.round(value)) : String(+value.toPrecision(4));
}

function color(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }
function swatch(name) { return el("i", {class: "swatch", style: "background:var(--" + name + ")"}); }

/** Stacked from the bottom: what lives for the whole run first. */
const kindOrder = [0, 2, 1, 3, 4, 5, 6, 7];

const tip = {
  element: document.getElementById("tip"),
  show(event, ...content) {
    this.element.replaceChildren(...content.flat().filter((child) => child));
    this.element.hidden = false;
    const {width, height} = this.element.getBoundingClientRect();
    const right = event.clientX + 18 + width > innerWidth;
    const low = event.clientY + 18 + height > innerHeight;
    this.element.style.left = Math.max(4, right ? event.clientX - width - 14 : event.clientX + 18) + "px";
    this.element.style.top = Math.max(4, low ? event.clientY - height - 10 : event.clientY + 18) + "px";
  },
  hide() { this.element.hidden = true; },
};

/** Redrawn when the window or the colours change. */
const drawings = new Set();
function redrawAll() { for (const draw of drawings) draw(); }
addEventListener("resize", () => requestAnimationFrame(redrawAll));

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  redrawAll();
}
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
document.documentElement.dataset.theme = prefersDark.matches ? "dark" : "light";
prefersDark.addEventListener("change", () => setTheme(prefersDark.matches ? "dark" : "light"));

/** A canvas with an SVG over it for words and the pointer, `height` pixels high. */
function picture(height) {
  const canvas = el("canvas", {height});
  const box = el("div", {class: "picture", style: "height:" + height + "px"}, canvas);
  const svg = d3.select(box).append("svg");
  return {
    box, svg, height,
    /** Clears and returns the context, in pixels of the screen, and the width in pixels of the page. */
    start() {
      const width = Math.max(box.clientWidth, 50);
      const ratio = devicePixelRatio || 1;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = height + "px";
      svg.attr("viewBox", null);
      return {context: canvas.getContext("2d"), width, ratio};
    },
  };
}

/** Round marks of a scale of bytes: at most about `count`, at powers of two. */
function byteTicks(most, count) {
  let step = 1;
  while (most / step > count) step *= 2;
  return d3.range(0, most, step).concat(most % step === 0 ? [most] : []);
}

/** A table from rows of cells; `columns`: {name, number}. */
function table(columns, rows) {
  return el("div", {class: "wide"}, el("table", {},
            el("thead", {}, el("tr", {}, columns.map((c) => el("th", {class: c.number ? "number" : null}, c.name)))),
            el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, i) =>
                el("td", {class: columns[i].number ? "number" : columns[i].kind || null}, cell)))))));
}

/** A bar of kinds, `whole` bytes wide. */
function kindStack(kinds, byKind, whole) {
  return el("div", {class: "stack"}, kindOrder.filter((k) => byKind[k] > 0).map((k) =>
      el("i", {style: "width:" + 100 * byKind[k] / whole + "%;background:var(--kind-" + k + ")",
               title: kinds[k] + ": " + exactBytes(byKind[k])})));
}
